"""The demo, run as people run it: exit code 0 says that nothing was lost and the totals agree."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.timeout(180)
def test_the_demo_loses_nothing_though_it_kills_a_worker() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rqueue.cli", "demo", "--modules", "150"],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "with SIGKILL" in done.stdout
    assert "every job ended exactly once" in done.stdout
