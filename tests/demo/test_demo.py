"""The demo, run as people run it: exit code 0 says that nothing was lost and the totals agree."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import NoReturn

import pytest
from rich.console import Console

from rqueue.demo.show import run
from rqueue.errors import EmbeddedRedisError


def test_what_it_says_of_an_error_keeps_its_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> NoReturn:
        raise EmbeddedRedisError("pip install rqueue[embedded]")

    monkeypatch.setattr("rqueue.embedded.server.find_server", none)
    output = io.StringIO()
    assert run(Console(file=output, width=200), limit=1) == 1
    assert "the demo failed: pip install rqueue[embedded]" in output.getvalue()


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
