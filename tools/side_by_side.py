"""Which versions of other queues install beside rqueue, asked of a resolver: `python -m
tools.side_by_side` writes the tables of `docs/from_*.md`."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

__all__ = ["PEERS", "page", "table", "written"]

ROOT = Path(__file__).resolve().parents[1]
PEERS = {
    "celery": ("celery[redis]", ("5.3.6", "5.4.0", "5.5.3", "5.6.0", "5.7.0")),
    "arq": ("arq", ("0.26.3", "0.27.0", "0.28.0")),
    "dramatiq": ("dramatiq[redis]", ("1.17.1", "1.18.0", "2.0.0", "2.2.1")),
    "rq": ("rq", ("1.16.2", "2.6.0", "3.0.0")),
}
"""By page: the name that is installed, and versions of it."""

_PLACE = re.compile(r"(?<=<!-- side by side -->\n)(?:\|.*\n)*")


def page(peer: str) -> Path:
    """Where the table of a queue stands."""
    return ROOT / "docs" / f"from_{peer}.md"


def table(peer: str) -> str:
    """The table of a queue. Raises CalledProcessError if a version cannot be installed."""
    package, versions = PEERS[peer]
    newest = _redis("highest")
    lines = [f"| `{package}` | redis-py beside rqueue |", "| --- | --- |"]
    for version in versions:
        low, high = (_redis(how, f"{package}=={version}") for how in ("lowest-direct", "highest"))
        said = f"{low} or later" if high == newest else f"{low} to {high}"
        lines.append(f"| {version} | {said} |")
    return "".join(f"{line}\n" for line in lines)


def written(peer: str) -> str:
    """The table that stands in the page."""
    return _PLACE.findall(page(peer).read_text())[0]


def _redis(resolution: str, *needs: str) -> str:
    """The first two numbers of the redis-py that a resolver chooses."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    command = [sys.executable, "-m", "uv", "--quiet", "pip", "compile", "-", "--no-header"]
    run = subprocess.run(
        [*command, "--python-version", "3.11", "--resolution", resolution],
        input="\n".join([*project["dependencies"], *needs]),
        text=True, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    return re.findall(r"^redis==(\d+\.\d+)", run.stdout, re.MULTILINE)[0]


if __name__ == "__main__":
    for _peer in PEERS:
        _text, _made = page(_peer).read_text(), table(_peer)
        page(_peer).write_text(_PLACE.sub(lambda _, made=_made: made, _text, count=1))
