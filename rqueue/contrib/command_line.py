"""The command line of rqueue inside a framework's: `manage.py rqueue ...`, `flask rqueue ...`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import click

__all__ = ["Application", "run_command_line", "with_app"]

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


@dataclass(frozen=True, slots=True)
class Application:
    """What a framework's pools run. module: what a worker imports. words: what that is, for the
    help of `worker`. queues: names of the queues that the framework's settings know."""

    module: str
    words: str
    queues: tuple[str, ...] = ()


def run_command_line(
    args: Sequence[str], app: Application, environ: Mapping[str, str], program: str
) -> NoReturn:
    """Run a command line and exit with its code.

    environ: variables that say where the queues are. A pool takes the place of this process, as a
    new one: its supervisor imports no code of the application, so that a reload (SIGHUP) brings new
    code in.
    """
    os.environ.update(environ)
    from rqueue.cli.root import cli

    own = copy(cli)
    pool = with_app(args, app.module)
    if pool is not None:
        own.own = {"worker": _worker(pool, app, program)}
    own.main(args=list(args), prog_name=program)
    raise AssertionError("click's main exits")


def _worker(pool: Sequence[str], app: Application, program: str) -> click.Command:
    """The command `worker` of an application, which is not named on its command line."""
    import click

    from rqueue.cli.worker import worker

    def run(queues: tuple[str, ...], **_: Any) -> None:
        if queues and _is_module(queues[0], app):
            raise click.UsageError(
                f"{queues[0]!r} is a module; the application is known here, so name queues only:"
                f" {program} worker mail (where it is a queue's name too, 'rqueue worker"
                f" {app.module} {queues[0]}' serves it)"
            )
        _become(pool)

    own = copy(worker)
    own.params = [parameter for parameter in worker.params if parameter.name != "app"]
    first, _, *others = str(worker.help).split("\n\n")
    text = "\n\n".join([first, app.words, *others])
    own.help = text.replace("rqueue worker app.tasks", f"{program} worker").replace(
        "rqueue worker --pool-file", f"{program} worker --pool-file"
    )
    own.callback = run
    return own


def _is_module(word: str, app: Application) -> bool:
    """Whether a word in the place of a queue names modules. One without a dot may be a queue's
    name: it is where the settings do not say which queues there are."""
    name = word.partition(",")[0]
    if word in app.queues or name.partition(".")[0] in sys.stdlib_module_names:
        return False
    if "." not in name and not app.queues:
        return False
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _become(pool: Sequence[str]) -> NoReturn:
    """Go on as `rqueue worker ...`."""
    # where manage.py is, and what --pythonpath says; behind them comes the standard library
    places = takewhile(lambda place: not place.endswith(".zip"), sys.path)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, places))
    options = [f"-W{option}" for option in sys.warnoptions]
    options += [f"-X{k}" if v is True else f"-X{k}={v}" for k, v in sys._xoptions.items()]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *options, "-m", "rqueue.cli", *pool])
