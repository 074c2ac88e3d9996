"""The group of all commands: each is loaded when it is called, all end with documented codes."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import click

from rqueue.cli.target import Target, connection_options

EPILOG = """\b
Exit codes:
  0    done; the answer is good
  1    the answer is negative: the job failed, problems were found, nothing to cancel
  2    wrong usage, or a destructive command without --yes
  3    not found: no such queue, job, or running dev server
  4    the Redis server cannot be reached or used
  5    no answer yet: the time given to wait is over
  6    not installed: Spark or Java, which 'rqueue pipeline' needs
  130  stopped by Ctrl-C
'rqueue worker' has more of them: see 'rqueue worker --help'."""


CLOSED_PIPE = 128 + 13
"""The exit code that a shell shows for a program that SIGPIPE ended."""


class Entry(NamedTuple):
    """A command before it is loaded."""

    section: str
    module: str
    help: str


COMMANDS = {
    "worker": Entry("Run", "worker", "Run a pool of worker processes."),
    "enqueue": Entry("Run", "enqueue", "Enqueue a job by its task's name."),
    "dev": Entry("Run", "dev", "Keep a Redis server running for development."),
    "demo": Entry("Run", "demo", "Show the whole system doing real work here."),
    "queues": Entry("Look", "queues", "List the queues, or show one in numbers."),
    "jobs": Entry("Look", "jobs", "List a queue's jobs in one state."),
    "browse": Entry("Look", "browse", "Show waiting jobs as they come."),
    "show": Entry("Look", "show", "Show all that is known of one job."),
    "watch": Entry("Look", "watch", "Show how far a job is, until it ends."),
    "log": Entry("Look", "log", "Show the lines that a job has logged."),
    "result": Entry("Look", "result", "Wait for a job's result and print it."),
    "consumers": Entry("Look", "consumers", "List who consumes a queue."),
    "groups": Entry("Look", "groups", "Show who owns a queue's sticky groups, or free one."),
    "alerts": Entry("Look", "alerts", "Show the alerts of a queue."),
    "unique": Entry("Look", "unique", "Show who has a key of unique jobs, or free it."),
    "history": Entry("Look", "history", "Show what became of jobs."),
    "stats": Entry("Look", "stats", "Measure a queue's rates and latencies."),
    "cancel": Entry("Steer", "cancel", "Cancel jobs."),
    "promote": Entry("Steer", "promote", "Make scheduled jobs ready now."),
    "prioritize": Entry("Steer", "prioritize", "Give waiting jobs another priority, or the front."),
    "move": Entry("Steer", "move", "Move jobs into another queue."),
    "copy": Entry("Steer", "move", "Copy jobs into another queue."),
    "reject": Entry("Steer", "reject", "Make dead letters of waiting jobs."),
    "expire": Entry("Steer", "reject", "End waiting jobs as expired."),
    "dead": Entry("Steer", "dead", "List, requeue or purge dead letters."),
    "cron": Entry("Steer", "cron", "List, add and steer periodic jobs."),
    "pause": Entry("Steer", "pause", "Deliver no more jobs of a queue."),
    "resume": Entry("Steer", "pause", "Deliver a paused queue's jobs again."),
    "limits": Entry("Steer", "limits", "Show and set limits and rates of jobs."),
    "shards": Entry("Steer", "shards", "Spread a queue over shards, show, open and drain them."),
    "shares": Entry("Steer", "shares", "Show the shares of a queue, and set their weights."),
    "configure": Entry("Steer", "configure", "Set a queue's own options, and show them."),
    "delete": Entry("Steer", "delete", "Delete a queue."),
    "purge": Entry("Steer", "purge", "End a queue's waiting jobs."),
    "pipeline": Entry("Data", "pipeline", "Archive, report, replay, plan and load, on Spark."),
    "doctor": Entry("Check", "doctor", "Check a live server's queues, and repair them."),
    "bench": Entry("Check", "bench", "Measure this server with no-op jobs."),
}
"""In the order of `--help`. Kept here so that `--help` loads none of them; a test compares the help
with what each command says itself."""


class Commands(click.Group):
    """Loads a command when it is called, and turns what goes wrong into one line and a code."""

    own: Mapping[str, click.Command] = MappingProxyType({})
    """Commands that are others here than elsewhere, by name: inside a framework's command line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of `--help`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None if there is none of this name."""
        entry = COMMANDS.get(cmd_name)
        if entry is None or cmd_name in self.own:
            return self.own.get(cmd_name)
        module = importlib.import_module(f"rqueue.cli.{entry.module}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands by section, without loading them."""
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            rows = [(n, entry.help) for n, entry in COMMANDS.items() if entry.section == section]
            with formatter.section(section):
                formatter.write_dl(rows, col_spacing=4)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command line; exits with the code that `EPILOG` promises."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, False, **extra)
        try:
            code = super().main(args, prog_name, complete_var, False, **extra)
            sys.stdout.flush()
        except (BrokenPipeError, SystemExit) as error:
            # The reader of our output has seen enough (click turns some of these into its own
            # exit). The interpreter would complain when it flushes the rest.
            if isinstance(error, SystemExit) and error.code != 1:
                raise
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = CLOSED_PIPE
        except Exception as error:
            from rqueue.cli.failures import report

            code = report(error)
        sys.exit(code if isinstance(code, int) else 0)


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"rqueue {version('rqueue')}")
        ctx.exit()


@click.group(
    cls=Commands,
    epilog=EPILOG,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@connection_options
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """A worker queue on Redis: strict order, nothing lost, no polling.

    Where the server is comes from --url, RQUEUE_URL or REDIS_URL, the first that is there. Without
    any, all commands but 'worker' use the development server of this folder, if 'rqueue dev' runs
    here.

    \b
    A first look:
      rqueue dev --background                      a server for development
      rqueue enqueue app.tasks.welcome 42          a job
      rqueue worker app.tasks --dev                who runs it
      rqueue queues                                what there is
      rqueue stats default --watch                 how it goes
    """  # noqa: D301 - click's mark for a paragraph that is not to be wrapped
    ctx.ensure_object(Target)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    cli.main(args=args, prog_name="rqueue")
    raise AssertionError("click's main exits")
