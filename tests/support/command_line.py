"""The command line, run in this process or as a program of its own."""

import inspect
import subprocess
import sys
from typing import Any

from click.testing import CliRunner, Result

from rqueue.cli import cli


class BothResult(Result):
    """As that of click 8.2: `output` has what went to both."""

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


class OlderRunner(CliRunner):
    """That of click before 8.2, which keeps output and errors apart only if asked to."""

    def invoke(self, *args: Any, **options: Any) -> Result:
        result = super().invoke(*args, **options)
        result.__class__ = BothResult
        return result


def runner() -> CliRunner:
    """Runs command lines; their results are the same with all versions of click."""
    if "mix_stderr" in inspect.signature(CliRunner).parameters:
        return OlderRunner(mix_stderr=False)
    return CliRunner()


def invoke(*args: str, code: int = 0, **more: Any) -> Result:
    """Run a command line in this process, where nothing is a terminal; it must exit with `code`."""
    result = runner().invoke(cli, args, prog_name="rqueue", **more)
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
