import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path("tests/typing")


NAMES = ("calls.py", "clients.py")


@pytest.fixture(scope="module")
def said() -> str:
    """What mypy says of all of them: most of its time goes into what they import."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--strict", "--no-error-summary"),
            *(str(HERE / name) for name in NAMES),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


@pytest.mark.parametrize("name", NAMES)
def test_wrong_arguments_are_type_errors(name: str, said: str) -> None:
    checked = HERE / name
    marked = set()
    for number, line in enumerate((ROOT / checked).read_text().splitlines(), 1):
        if match := re.search(r"# error: ([a-z, -]+)$", line):
            marked.update((number, code.strip()) for code in match[1].split(","))
    assert len(marked) >= 10
    found = set()
    for line in said.splitlines():
        match = re.fullmatch(r"(.*?):(\d+): error: .*\[([a-z-]+)\]", line)
        if match:
            assert Path(match[1]) in {HERE / name for name in NAMES}, line
            if Path(match[1]) == checked:
                found.add((int(match[2]), match[3]))
    assert found == marked, said
