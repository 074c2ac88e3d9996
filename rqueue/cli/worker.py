"""`rqueue worker`: run a pool."""

from __future__ import annotations

import importlib.util
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from rqueue.cli.exit_codes import MISSING, USAGE, Failure
from rqueue.cli.failures import say
from rqueue.cli.target import Target, connection_options, pass_target

NO_URL = (
    "no server: set RQUEUE_URL, pass --url redis://host:6379/0, or put url into the pool file"
    " (--dev uses the development server that 'rqueue dev' keeps in this folder)"
)

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
_LATER = (signal.SIGHUP, signal.SIGUSR1, signal.SIGTTIN, signal.SIGTTOU)
"""What these ask of a pool that works means nothing to one that has no worker yet."""

EPILOG = """\b
Exit codes of a pool:
  0    drained: all that was started is finished
  1    the application is at fault (a module cannot be imported)
  2    wrong usage; an option, the pool file or a variable is wrong, or no server is named
  3    drained, but running jobs had to be released
  4    Redis cannot be used: not reachable at start, too old, evicts keys, refuses the login
  6    not installed: watchfiles, which --reload needs
  70   a bug in rqueue; the log has the traceback"""


@click.command(epilog=EPILOG)
@click.argument("app", required=False)
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--processes", type=int, metavar="N", help="Worker processes; default 2.")
@click.option(
    "--threads",
    type=int,
    metavar="N",
    help="Run sync tasks in N threads of each process; default 0: in its main thread, one by one.",
)
@click.option(
    "--async-slots",
    type=int,
    metavar="N",
    help="Async tasks that run at once in each process; default 100.",
)
@click.option(
    "--prefetch",
    type=int,
    metavar="N",
    help="Jobs a process holds per queue; default 0: as many as are about 50 ms of work.",
)
@click.option(
    "--strict",
    is_flag=True,
    default=None,
    help="Serve the queues in the order given: a later one only while the earlier ones are empty.",
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="QUEUE=N",
    help="N turns of this queue for each one of another; may be said for several queues.",
)
@click.option(
    "--priority",
    type=int,
    metavar="N",
    help="Of these consumers, default 0: higher ones get jobs first while they have room.",
)
@click.option(
    "--select",
    metavar="EXPRESSION",
    help='Only jobs whose labels match: "gpu and version >= 42"; default: all jobs.',
)
@click.option("--max-jobs", type=int, metavar="N", help="Replace a process after N jobs.")
@click.option(
    "--max-memory",
    metavar="SIZE",
    help="Replace a process that has grown beyond this (512MB), when its job is done.",
)
@click.option(
    "--max-crashes",
    type=int,
    metavar="N",
    help="A job that cost N processes is dead, where its task says nothing; default: the queue's.",
)
@click.option(
    "--drain",
    metavar="DURATION",
    help="What running jobs get after the first SIGTERM; default 30s.",
)
@click.option(
    "--grace",
    metavar="DURATION",
    help="What a process gets after that to leave, until it is killed; default 2s.",
)
@click.option(
    "--patience",
    metavar="DURATION",
    help="How long Redis may be unreachable at the start; default 5s.",
)
@click.option(
    "--lease",
    metavar="DURATION",
    help="How long a silent pool keeps its jobs; default RQUEUE_LEASE, or 30s.",
)
@click.option(
    "--time-limit",
    metavar="DURATION",
    help="Hard limit of one attempt, where the task sets none: its process is killed.",
)
@click.option(
    "--soft-time-limit",
    metavar="DURATION",
    help="Soft limit of one attempt, where the task sets none: an exception in the job.",
)
@click.option(
    "--history-bodies",
    type=click.Choice(["none", "failed", "all"]),
    help="Keep the arguments too in the history of failed attempts, or of all; default none.",
)
@click.option(
    "--history-labels",
    metavar="NAMES",
    help="Labels and headers that the history keeps, with commas between them; default *: all"
    " labels. Or none.",
)
@click.option(
    "--pool-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Take options from this TOML file; the command line wins.",
)
@click.option("--name", metavar="NAME", help="The pool's name, as 'rqueue consumers' shows it.")
@click.option("--pidfile", metavar="FILE", help="Write the supervisor's process id here.")
@click.option("--quiet", is_flag=True, default=None, help="Log only what went wrong.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="The least level that rqueue's own loggers say; default info.",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    help="One line of text for each event, or one JSON object; default text.",
)
@click.option(
    "--reload",
    is_flag=True,
    help="For development: load the code anew when a Python file below this folder changes.",
)
@click.option("--dev", is_flag=True, help="Use the development server of this folder (rqueue dev).")
@connection_options
@pass_target
def worker(
    target: Target,
    /,
    app: str | None,
    queues: tuple[str, ...],
    pool_file: Path | None,
    dev: bool,
    reload: bool,
    **options: Any,
) -> int:
    """Run a pool of worker processes.

    APP is the module that defines the tasks (app.tasks), or several, separated by commas. It is
    imported by the workers, never by the supervisor. Without a QUEUE the pool serves all queues
    that its tasks name.

    The first SIGTERM or Ctrl-C drains: no new jobs, running ones may finish. Jobs that are not
    done in time go back to their places. A second signal stops at once.

    A pool file holds the same options (app, queues, processes, max_memory, ...), and url.

    \b
    Examples:
      rqueue worker app.tasks
      rqueue worker app.tasks mail reports --processes 4 --threads 8
      rqueue worker app.tasks urgent default --strict
      rqueue worker app.tasks mail reports --weight mail=5
      rqueue worker app.tasks --select "gpu and version >= 42"
      rqueue worker app.tasks --max-jobs 10000 --max-memory 512MB --time-limit 10m
      rqueue worker --pool-file pool.toml
      rqueue worker app.tasks --dev --reload
    """  # noqa: D301
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    given.update(
        url=_dev_url() if dev else target.url,
        namespace=target.namespace,
        app=tuple(part.strip() for part in app.split(",")) if app else None,
        queues=queues or None,
        weights=options["weights"] or None,
    )
    if app is None and pool_file is None:
        raise click.UsageError(
            "name the module with the tasks (rqueue worker app.tasks), or pass --pool-file"
        )
    if target.url and urlsplit(target.url).password:
        say(
            "everybody on this host can read the password in --url in the list of processes: set"
            " RQUEUE_URL instead, or url in a pool file"
        )
    with _ended_by_signals():
        from rqueue.errors import ConfigError
        from rqueue_workers.pool_file import load_pool_file
        from rqueue_workers.run import run_pool

        try:
            spec = load_pool_file(pool_file, given)
        except ConfigError as error:
            if error.setting == "url" and not dev and target.url is None:
                raise Failure(NO_URL, USAGE) from None
            raise
        with _reloading() if reload else nullcontext():
            return int(run_pool(spec))


def _reloading() -> AbstractContextManager[None]:
    """Raises Failure without watchfiles."""
    if importlib.util.find_spec("watchfiles") is None:
        raise Failure("--reload needs watchfiles: pip install 'rqueue[reload]'", MISSING)
    from rqueue_workers.reloading import reloading

    return reloading()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Until the pool takes the signals over, while its modules are imported, one that asks it to
    end does so at once: with code 0, since nothing was begun."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (*_ENDING, *_LATER)}
    for number in _ENDING:
        signal.signal(number, lambda *_: os._exit(0))
    for number in _LATER:
        signal.signal(number, lambda *_: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _dev_url() -> str:
    from rqueue.transport.discovery import DEV_DIRECTORY, running

    url = running(DEV_DIRECTORY)
    if url is None:
        raise Failure("no development server runs in this folder: start it with rqueue dev", USAGE)
    from rqueue.cli.dev import other_variable

    if variable := other_variable(url):
        say(
            f"{variable} is set to another server: this pool serves the development server (--dev),"
            f" not that one; set RQUEUE_URL={url} for programs that are to enqueue here, or unset"
            f" {variable}"
        )
    return url
