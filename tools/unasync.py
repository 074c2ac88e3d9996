"""Make the sync client from its asyncio source, and the sync tests from the asyncio ones.

    python tools/unasync.py            # writes the generated files: `make generate`
    python tools/unasync.py --check    # says which of them are out of date

Each rule is a regular expression for code and docstrings alike. A rule that nothing uses is an
error: it has outlived what it was for. A line that ends in a comment `# async` (or `# async: why`)
is for asyncio only; a comment `# sync: code` is code of the sync half only. What really differs,
waiting on a socket, a thread or a task, stands in `rqueue/transport`, written by hand for each.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]

FOLDERS = {
    "rqueue/client/_async": "rqueue/client/_sync",
    "tests/client/_async": "tests/client/_sync",
}
"""Source and generated folder. Only `__init__.py` and `conftest.py` are written by hand in both."""

BY_HAND = {"__init__.py", "conftest.py"}

WARNING = "# Generated from {source} (`make generate`): do not edit.\n"

RULES = [
    # what is for one half only
    (r"(?m)^.*  # async(?:: .*)?\n", ""),
    (r"(?m)^( *)# sync: (.*)\n", r"\1\2\n"),
    # the language
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter)__\b", r"__\1__"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"\bimport asyncio\b", "import time"),
    (r"\bredis\.asyncio\b", "redis"),
    # our own names
    (r"\bAsync([A-Z]\w*)", r"\1"),
    (r"\b_async\b", "_sync"),
    (r"\basync_(sender|connection|lease_renewer|wake_listener)\b", r"\1"),
    (r"\basync_(connections?_for|(?:node|routed)_connections?)\b", r"\1"),
    (r"\bopen_async_client\b", "open_client"),
    (
        r"\ba(first_look|check_confirmable|enqueue|pull|pull_one|outside|move_time|end_lease)\b",
        r"\1",
    ),
    (r"\ba(forward|forward_soon|refill|run_course)\b", r"\1"),
    (r"\btask_connections\b", "thread_connections"),
    (r"\bTaskConnections\b", "ThreadConnections"),
    (r"\bput_task\b", "put_thread"),
    (r"\bPutTask\b", "PutThread"),
]


def generated() -> dict[Path, str]:
    """The text of each generated file. Raises SystemExit where a rule is not used."""
    used: Counter[str] = Counter()
    files: dict[Path, str] = {}
    for source_folder, target_folder in FOLDERS.items():
        for source in sorted((ROOT / source_folder).glob("*.py")):
            if source.name in BY_HAND:
                continue
            text = source.read_text(encoding="utf-8")
            for pattern, replacement in RULES:
                text, count = re.subn(pattern, replacement, text)
                used[pattern] += count
            warning = WARNING.format(source=source.relative_to(ROOT))
            files[ROOT / target_folder / source.name] = warning + text
    if unused := [pattern for pattern, _ in RULES if not used[pattern]]:
        raise SystemExit(f"unasync: rules that nothing uses: {unused}")
    return formatted(files)


def formatted(files: dict[Path, str]) -> dict[Path, str]:
    """As `make format` would have them: names in order, lines joined that fit now."""
    ruff = [sys.executable, "-m", "ruff"]
    settings = ["--no-cache", "--config", str(ROOT / "pyproject.toml")]
    with TemporaryDirectory() as folder:
        copies = {path: Path(folder, path.relative_to(ROOT)) for path in files}
        for path, copy in copies.items():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(files[path], encoding="utf-8")
        for step in (["check", "--select", "I,F401,RUF022", "--fix-only"], ["format"]):
            command = [*ruff, *step, "-q", *settings, folder]
            subprocess.run(command, capture_output=True, check=True, cwd=ROOT)
        return {path: copy.read_text(encoding="utf-8") for path, copy in copies.items()}


def out_of_date() -> list[str]:
    """What differs from what would be generated, and what is there without a source."""
    files = generated()
    wrong = [
        str(path.relative_to(ROOT))
        for path, text in files.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for folder in FOLDERS.values():
        for path in (ROOT / folder).glob("*.py"):
            if path not in files and path.name not in BY_HAND:
                wrong.append(str(path.relative_to(ROOT)))
    return sorted(wrong)


def main(arguments: list[str]) -> int:
    """Write or check; the exit code."""
    if arguments == ["--check"]:
        if wrong := out_of_date():
            print(f"out of date: {', '.join(wrong)}; run `make generate`", file=sys.stderr)
        return bool(wrong)
    for path, text in generated().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
