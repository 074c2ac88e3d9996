import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path("tests/typing")


@pytest.mark.parametrize("name", ["calls.py", "clients.py"])
def test_wrong_arguments_are_type_errors(name: str) -> None:
    checked = HERE / name
    marked = set()
    for number, line in enumerate((ROOT / checked).read_text().splitlines(), 1):
        if match := re.search(r"# error: ([a-z, -]+)$", line):
            marked.update((number, code.strip()) for code in match[1].split(","))
    assert len(marked) >= 10
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(checked)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = set()
    for line in run.stdout.splitlines():
        match = re.fullmatch(r"(.*?):(\d+): error: .*\[([a-z-]+)\]", line)
        if match:
            assert Path(match[1]) == checked, line
            found.add((int(match[2]), match[3]))
    assert found == marked, run.stdout + run.stderr
