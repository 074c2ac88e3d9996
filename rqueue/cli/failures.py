"""Errors as one line that says what to do, and as an exit code."""

from __future__ import annotations

import re
from difflib import get_close_matches

import click

from rqueue import errors
from rqueue.cli.exit_codes import (
    INTERRUPTED,
    MISSING,
    NEGATIVE,
    NOT_FOUND,
    NOT_YET,
    SERVER,
    USAGE,
    Failure,
)
from rqueue.cli.output import echo
from rqueue.text.escape import escaped


def exit_code(error: BaseException) -> int:
    """The exit code for an error, as `rqueue --help` lists them."""
    if isinstance(error, click.Abort | KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, Failure):
        return error.code
    if isinstance(error, click.ClickException):
        return error.exit_code
    if isinstance(
        error,
        errors.ConfigError | errors.InvalidName | errors.NotEncodable | errors.BadArguments,
    ):
        return USAGE
    if isinstance(
        error, errors.UnknownQueue | errors.UnknownJob | errors.UnknownTask | errors.UnknownSchedule
    ):
        return NOT_FOUND
    if isinstance(error, errors.ServerError | errors.EmbeddedRedisError):
        return SERVER
    if isinstance(error, errors.ResultTimeout | errors.ResultNotReady):
        return NOT_YET
    return MISSING if isinstance(error, _missing()) else NEGATIVE


def _missing() -> tuple[type[BaseException], ...]:
    from rqueue.spark.errors import JavaMissing, SparkMissing

    return SparkMissing, JavaMissing


def report(error: Exception) -> int:
    """Print one line to stderr for what was expected to go wrong, and return its exit code.

    An unexpected error is raised again: a traceback helps with a bug.
    """
    if isinstance(error, click.Abort):
        echo("stopped", err=True)
        return INTERRUPTED
    if isinstance(error, _HELP):
        error.show()
        return error.exit_code
    if isinstance(error, click.UsageError):
        hint = usage_hint(error)
        if hint and isinstance(error, click.NoSuchOption):
            error = click.NoSuchOption(error.option_name, ctx=error.ctx)  # without click's guesses
        said = error.format_message()
        said = f"{said.rstrip('.')}. {hint}" if hint else said
        click.UsageError(escaped(said), error.ctx).show()
        return error.exit_code
    if isinstance(error, click.ClickException):
        say(error.format_message())
        return exit_code(error)
    if isinstance(error, errors.EmbeddedRedisError):
        say_all(error)  # with the end of the server's log
        return exit_code(error)
    if isinstance(error, errors.RQueueError):
        from rqueue.protocol.advice import describe

        say(describe(error))
        return exit_code(error)
    if type(error).__module__.startswith("redis."):
        # not one of those that our connection knows: the answer was no sense
        say(f"what answers there is no Redis, or a broken one: {' '.join(str(error).split())}")
        return SERVER
    if isinstance(error, UnicodeEncodeError):
        say(f"{error.object!a} is not UTF-8, which names, ids and arguments are")
        return USAGE
    if isinstance(error, OSError) and error.filename:
        say(f"{error.strerror}: {error.filename}")
        return USAGE
    raise error


_HELP: tuple[type[click.UsageError], ...] = tuple(
    filter(None, [getattr(click.exceptions, "NoArgsIsHelpError", None)])
)
"""A group without a command, from click 8.2 on: its text is the help, which ours alone wrote."""

ELSEWHERE = {
    "-A": "Modules are arguments here: rqueue worker app.tasks",
    "--app": "Modules are arguments here: rqueue worker app.tasks",
    "-Q": "Queues stand behind the modules: rqueue worker app.tasks mail reports",
    "--queues": "Queues stand behind the modules: rqueue worker app.tasks mail reports",
    "-c": "Did you mean --processes, or --threads?",
    "--concurrency": "Did you mean --processes, or --threads?",
    "--pool": "Did you mean --processes, --threads or --async-slots?",
    "--workers": "Did you mean --processes?",
    "--delay": "It is called --in: rqueue enqueue TASK --in 10m",
    "--countdown": "It is called --in: rqueue enqueue TASK --in 10m",
    "--eta": "It is called --at: rqueue enqueue TASK --at 2030-01-31T08:00:00+00:00",
    "--wait": "It is called --timeout: rqueue result ID --timeout 30s",
    "--loglevel": "It is called --log-level: rqueue worker app.tasks --log-level warning",
}
"""Options of other queues' commands that newcomers look for, and ours."""


OTHER_WORDS = {
    "list": "Did you mean 'queues', or 'jobs QUEUE'?",
    "ls": "Did you mean 'queues', or 'jobs QUEUE'?",
    "status": "Did you mean 'queues', 'stats' or 'show ID'?",
    "info": "Did you mean 'queues QUEUE', or 'show ID'?",
    "inspect": "Did you mean 'show ID', or 'consumers QUEUE'?",
    "ping": "Did you mean 'doctor'? It checks the server too.",
    "top": "Did you mean 'stats --watch', or 'queues'?",
    "monitor": "Did you mean 'stats --watch', or 'history QUEUE --follow'?",
    "version": "Did you mean '--version'?",
    "retry": "Did you mean 'dead requeue QUEUE [ID]...'?",
    "requeue": "Did you mean 'dead requeue QUEUE [ID]...'?",
    "delete": "Did you mean 'cancel ID', 'purge QUEUE' or 'dead purge QUEUE'?",
    "start": "Did you mean 'worker', 'dev' or 'resume'?",
    "run": "Did you mean 'worker'?",
    "stop": "Did you mean 'pause'? A pool ends with SIGTERM.",
    **{
        word: f"Did you mean 'pipeline {word}'?"
        for word in ("archive", "report", "replay", "plan", "load", "compact")
    },
}
"""Commands that others have, by the words of ours."""


def usage_hint(error: click.UsageError) -> str:
    """The command that was probably meant; "" where click names it, or none is close."""
    context = error.ctx
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        if re.match(r"-[\d.]", name) and context is not None:
            example = f"{context.command_path} ... -- -1"
            return f"Numbers below zero stand at the end, behind '--': {example}"
        return queue_hint(context, option=True) if name in QUEUE_OPTION else ELSEWHERE.get(name, "")
    if context is None or not isinstance(context.command, click.Group):
        extra = "unexpected extra argument" in error.format_message()
        return queue_hint(context, option=False) if extra else ""
    missing = re.match(r"No such command '(.*)'\.$", error.format_message())
    if missing is None:
        return ""
    if context.parent is None and missing[1] in OTHER_WORDS:
        return OTHER_WORDS[missing[1]]
    near = get_close_matches(missing[1], context.command.list_commands(context), 3)
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else ""


QUEUE_OPTION = ("-q", "--queue")


def queue_hint(context: click.Context | None, *, option: bool) -> str:
    """Where a command wants the queue, and the lake, for who named one by an option, or without;
    "" where it wants none."""
    parameters = () if context is None else context.command.params
    lake = any("--lake" in parameter.opts for parameter in parameters)
    for parameter in parameters:
        path = context.command_path if context is not None else ""
        if option and isinstance(parameter, click.Argument):
            if parameter.name in ("queue", "queues", "source"):
                return f"The queue stands without an option here: {path} QUEUE"
        elif not option and isinstance(parameter, click.Option) and "-q" in parameter.opts:
            both = f"The lake and the queue are named by options here: {path} --lake FOLDER"
            alone = f"The queue is named by an option here: {path}"
            return f"{both if lake else alone} -q QUEUE"
    return ""


def say(line: str) -> None:
    """A line for people, beside the output proper."""
    echo(f"rqueue: {line}", err=True)


def say_all(error: BaseException) -> None:
    """An error with all its lines: of a job that failed, with the traceback of its worker."""
    first, *others = str(error).split("\n")
    say(first)
    for line in others:
        echo(line, err=True)
