import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CALLS = Path("tests/typing/calls.py")


def test_wrong_arguments_of_a_task_are_type_errors() -> None:
    marked = set()
    for number, line in enumerate((ROOT / CALLS).read_text().splitlines(), 1):
        if match := re.search(r"# error: ([a-z, -]+)$", line):
            marked.update((number, code.strip()) for code in match[1].split(","))
    assert len(marked) > 10
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(CALLS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = set()
    for line in run.stdout.splitlines():
        match = re.fullmatch(r"(.*?):(\d+): error: .*\[([a-z-]+)\]", line)
        if match:
            assert Path(match[1]) == CALLS, line
            found.add((int(match[2]), match[3]))
    assert found == marked, run.stdout + run.stderr
