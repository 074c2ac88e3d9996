"""`flask rqueue ...`: the command line, for the queues of the application."""

from __future__ import annotations

import os

import click
from flask.cli import ScriptInfo

from rqueue.contrib.command_line import Application, run_command_line
from rqueue.contrib.flask.conf import given, read
from rqueue.contrib.variables import environ_of

__all__ = ["command"]

WORDS = """The application is the one that Flask has found, with the tasks that it has imported.
Without a QUEUE the pool serves all queues that they name."""
APP = Application("rqueue.contrib.flask.worker", WORDS)


@click.command(
    "rqueue",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    add_help_option=False,
)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def command(ctx: click.Context, args: tuple[str, ...]) -> None:
    """The command line of rqueue, for the queues of the application's config."""
    script = ctx.ensure_object(ScriptInfo)
    config = script.load_app().config
    environ = environ_of(read(config), given(config))
    if script.app_import_path:
        environ["FLASK_APP"] = os.fspath(script.app_import_path)
    run_command_line(args, APP, environ, "flask rqueue")
