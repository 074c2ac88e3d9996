"""`manage.py rqueue ...`: the command line, for the queues of the project's settings."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from rqueue.cli.exit_codes import USAGE
from rqueue.contrib.command_line import Application, run_command_line, with_app
from rqueue.contrib.django.conf import conf, environ
from rqueue.errors import ConfigError

WORKER = "rqueue.contrib.django.worker"
WORDS = """The application is the Django project: the module 'tasks' of each installed app, or those
that RQUEUE['modules'] names, and the tasks of django.tasks. Without a QUEUE the pool serves the
queues of RQUEUE['queues'], or all queues that the tasks name."""


class Command(BaseCommand):
    """Pass everything on, but for Django's own options `--settings` and `--pythonpath`."""

    help = "The command line of rqueue, for the queues of the setting RQUEUE: see 'rqueue --help'."
    requires_system_checks: Sequence[str] = ()

    def run_from_argv(self, argv: list[str]) -> None:
        """Run `manage.py rqueue ...`. Ends with SystemExit; wrong settings are one line, and 2."""
        parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
        for option in ("--settings", "--pythonpath"):
            parser.add_argument(option)
        _, rest = parser.parse_known_args(argv[2:])
        try:
            self._run(rest, f"{argv[0].rpartition('/')[2]} rqueue")
        except CommandError as error:
            self.stderr.write(str(error))
            sys.exit(error.returncode)

    def add_arguments(self, parser: CommandParser) -> None:
        """What `call_command("rqueue", "queues", "--json")` takes."""
        parser.add_argument("args", nargs=argparse.REMAINDER)

    def handle(self, *args: str, **options: Any) -> None:
        """Run a command line; `call_command` comes here. Ends with SystemExit, as the command line
        does. Raises CommandError for wrong settings."""
        self._run(args, "rqueue")

    def _run(self, args: Sequence[str], program: str) -> None:
        try:
            known, said = conf(), environ()
        except ConfigError as error:
            raise CommandError(str(error), returncode=USAGE) from None
        app = Application(WORKER, WORDS, known.queues)
        run_command_line(with_queues(args, known.queues), app, said, program)


def with_queues(args: Sequence[str], queues: Sequence[str]) -> list[str]:
    """The arguments of `worker` with the project's queues, where they name none."""
    pool = with_app(args, "") if queues else None
    if pool is None:
        return list(args)
    from rqueue.cli.worker import worker

    given = worker.make_context("worker", pool[pool.index("") :], resilient_parsing=True)
    if given.params.get("queues") or given.params.get("pool_file"):
        return list(args)
    return [*args, *queues]
