"""One way out: what rqueue prints and logs goes through what escapes it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path.relative_to(ROOT)
    for base in ("rqueue", "workers/rqueue_workers")
    for path in (ROOT / base).rglob("*.py")
)
MAY_ECHO = {
    "rqueue/cli/output.py": "it escapes",
    "rqueue/cli/root.py": "the version",
    "rqueue/cli/reference.py": "the documentation",
    "rqueue/cli/pipeline/report.py": "a page of HTML, escaped as such",
    "rqueue/cli/pipeline/plan.py": "YAML, written by its own rules",
}
MAY_GET = {"rqueue/logs.py", "workers/rqueue_workers/pool/log_setup.py"}


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_output_is_escaped_in_one_place(path: Path) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    if str(path) not in MAY_ECHO and "demo" not in path.parts:
        assert not re.search(r"\bclick\.echo\(", text), "use rqueue.cli.output.echo"
    if str(path) not in MAY_GET:
        assert not re.search(r"\bgetLogger\((\"rqueue|__name__)", text), "use rqueue.logs.logger"
