"""A file is one noun or one role: none has more than 900 lines, but for the tree of errors."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("rqueue", "workers", "tests", "benchmarks", "tools")
MOST = 900
LARGER = {"rqueue/errors.py"}
"""One tree of classes is read as one page."""


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_no_file_is_too_long() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    files += (ROOT / "lua").rglob("*.lua")
    assert len(files) > 800
    long = {str(path.relative_to(ROOT)): lines(path) for path in files if lines(path) > MOST}
    long = {name: count for name, count in long.items() if name not in LARGER}
    assert not long, "split these into rooms: " + ", ".join(f"{n} ({c})" for n, c in long.items())
