"""The command line of rqueue inside a framework's: `manage.py rqueue ...`, `flask rqueue ...`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NoReturn

__all__ = ["run_command_line", "with_app"]

_WITH_VALUE = ("--url", "--namespace")
"""Options that may stand before the command."""


def with_app(args: Sequence[str], app: str) -> list[str] | None:
    """The arguments of `rqueue worker` with the module `app` in its place; None for another
    command."""
    skip = False
    for index, arg in enumerate(args):
        if skip or arg.startswith("-"):
            skip = not skip and arg in _WITH_VALUE
            continue
        if arg != "worker":
            return None
        return [*args[: index + 1], app, *args[index + 1 :]]
    return None


def run_command_line(
    args: Sequence[str], app: str, environ: Mapping[str, str], program: str
) -> NoReturn:
    """Run a command line and exit with its code.

    app: the module that `worker` imports. environ: variables that say where the queues are. A pool
    takes the place of this process, as a new one: its supervisor imports no code of the
    application, so that a reload (SIGHUP) brings new code in.
    """
    os.environ.update(environ)
    pool = with_app(args, app)
    if pool is None:
        from rqueue.cli.root import cli

        cli.main(args=list(args), prog_name=program)
        raise AssertionError("click's main exits")
    # where manage.py is, and what --pythonpath says; behind them comes the standard library
    places = takewhile(lambda place: not place.endswith(".zip"), sys.path)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    options = [f"-W{option}" for option in sys.warnoptions]
    options += [f"-X{k}" if v is True else f"-X{k}={v}" for k, v in sys._xoptions.items()]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *options, "-m", "rqueue.cli", *pool])
