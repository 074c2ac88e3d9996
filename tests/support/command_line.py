"""The command line, run in this process or as a program of its own."""

import subprocess
import sys
from typing import Any

from click.testing import CliRunner, Result

from rqueue.cli import cli


def invoke(*args: str, code: int = 0, **more: Any) -> Result:
    """Run a command line in this process, where nothing is a terminal; it must exit with `code`."""
    result = CliRunner().invoke(cli, args, prog_name="rqueue", **more)
    problem = "".join(map(str, result.exc_info or ())) if result.exception else ""
    assert result.exit_code == code, result.output + problem
    return result


def program(*args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the true command in a process of its own."""
    more.setdefault("timeout", 50)
    return subprocess.run(
        [sys.executable, "-m", "rqueue.cli", *args],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        **more,
    )
