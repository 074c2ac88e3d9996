"""`python -m rqueue` is the command line."""

import subprocess
import sys


def test_python_runs_the_package() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "rqueue", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("rqueue")
    wrong = subprocess.run(
        [sys.executable, "-m", "rqueue", "quues"], capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2 and "queues" in wrong.stderr
