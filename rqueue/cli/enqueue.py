"""`rqueue enqueue`: a job from the shell."""

from __future__ import annotations

from typing import Any

import click
import orjson

from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.failures import say
from rqueue.cli.output import echo, json_option, print_json
from rqueue.cli.target import Target, connection_options, pass_target


@click.command()
@click.argument("task")
@click.argument("args", nargs=-1, metavar="[ARG]...")
@click.option("--queue", "-q", default="default", show_default=True, metavar="QUEUE", help="Where.")
@click.option(
    "--kwarg", "-k", "kwargs", multiple=True, metavar="NAME=VALUE", help="A keyword argument."
)
@click.option("--id", metavar="ID", help="The job's id; enqueued twice it is one job.")
@click.option("--priority", "-p", type=int, metavar="0..9", help="Higher first; 4 is normal.")
@click.option("--group", metavar="GROUP", help="One job of a group is in flight at a time.")
@click.option("--key", metavar="KEY", help="Of the jobs of a key only the latest waits.")
@click.option(
    "--sort-key", metavar="VALUE", help="Jobs stand by it: a number; else text, as with --text."
)
@click.option("--unique", is_flag=True, help="One job of this task and these arguments at a time.")
@click.option("--unique-key", metavar="TEXT", help="One job of this task and key at a time.")
@click.option(
    "--unique-until",
    metavar="WHEN",
    help="How long it keeps others away: end, the default, start, or a DURATION.",
)
@click.option("--in", "in_", metavar="DURATION", help="Not before so long from now.")
@click.option("--at", metavar="TIME", help="Not before: 2030-01-31T08:00:00+00:00.")
@click.option("--mandatory", is_flag=True, help="Only into a queue that is there already.")
@click.option("--hold", is_flag=True, help="It keeps the place that it takes now until then.")
@click.option("--front", is_flag=True, help="It comes before all that waits in its level.")
@click.option("--max-deliveries", type=int, metavar="N", help="Attempts in all.")
@click.option(
    "--max-crashes", type=int, metavar="N", help="Attempts that may cost a worker its process."
)
@click.option("--time-limit", metavar="DURATION", help="Hard time limit of an attempt.")
@click.option("--soft-time-limit", metavar="DURATION", help="Soft time limit of an attempt.")
@click.option("--ttl", metavar="DURATION", help="It expires if it is not delivered by then.")
@click.option("--keep", metavar="DURATION", help="How long its result is kept.")
@click.option("--header", multiple=True, metavar="NAME=TEXT", help="A header for the job's code.")
@click.option("--replicas", type=int, metavar="N", help="Wait until so many replicas have it.")
@click.option("--fsync", is_flag=True, help="Wait until it is on disk.")
@click.option("--confirm", metavar="DURATION", help="Wait so long for these two; 1s is usual.")
@click.option("--text", is_flag=True, help="Take all arguments as text, not as JSON.")
@click.option("--wait", metavar="DURATION", help="Wait for the result and print it.")
@json_option
@connection_options
@pass_target
def enqueue(
    target: Target,
    /,
    task: str,
    args: tuple[str, ...],
    queue: str,
    kwargs: tuple[str, ...],
    header: tuple[str, ...],
    text: bool,
    wait: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Enqueue a job by its task's name.

    The task's code need not be here. An ARG or VALUE that is JSON is passed as that (42, true,
    null, '[1, 2]', '{"a": 1}'); everything else, and everything with --text, as text, but what
    begins with {, [ or " and is no JSON is refused. A number below zero stands behind --. Prints
    the job's id.

    \b
    Examples:
      rqueue enqueue app.tasks.welcome 42 -k language=en
      rqueue enqueue app.tasks.report '{"month": "2030-01"}' -q reports --in 10m
      rqueue enqueue app.tasks.add 1 2 --wait 30s
      rqueue enqueue app.tasks.add -q sums -- 1 -2
      rqueue enqueue app.tasks.charge 42 --id order-42 --priority 9
      rqueue enqueue app.tasks.quote 42 --ttl 30s
      rqueue enqueue app.tasks.sync 42 --unique
      rqueue enqueue app.tasks.charge 42 --id order-42 --replicas 1
      rqueue enqueue app.tasks.reset_password 42 --front
    """  # noqa: D301
    from rqueue.cli.failures import exit_code, say_all
    from rqueue.errors import ResultError
    from rqueue.model.times import parse_duration
    from rqueue.protocol.advice import describe

    chosen = _options(options, header, text)
    positional = [value_of(arg, text) for arg in args]
    named = {name: value_of(value, text) for name, value in pairs(kwargs, "--kwarg")}
    seconds = None if wait is None else parse_duration(wait, "wait")
    with target.by_name(queue) as (client, inspector):
        handle = client.send(task, positional, named, chosen)
        if (handle.created or handle.conflict) and not inspector.queue(queue).serving:
            say(f"no worker serves queue '{queue}' now, so the job waits; -q names another queue")
        document: dict[str, Any] = {"id": handle.id, "queue": handle.queue}
        document["created"] = handle.created
        if handle.conflict:
            document["conflict"] = handle.conflict
        code = OK
        if seconds is not None:
            try:
                document["result"] = handle.result(seconds)
            except ResultError as error:
                document["error"] = str(error)
                code = exit_code(error)
                if not as_json:
                    echo(handle.id)
                    if code == NEGATIVE:
                        say_all(error)
                    else:
                        say(describe(error))
                    return code
    if as_json:
        print_json(document)
    elif seconds is not None:
        print_json(document["result"], indent=True)
    else:
        echo(handle.id)
        if handle.conflict:
            say(f"such a job exists, which is {handle.conflict}: nothing was stored")
        elif not handle.created:
            say("a job of this id is known already: nothing was stored")
    return code


def value_of(text: str, as_text: bool) -> Any:
    """An argument of the shell: JSON if it is JSON, else text.

    What begins as JSON's objects, lists and texts do, and is none, is most likely a mistake. Raises
    BadParameter.
    """
    if as_text:
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if text.lstrip()[:1] in ("{", "[", '"'):
            raise click.BadParameter(
                f"{text!r} begins like JSON and is none ({error}); with --text arguments are text"
            ) from None
        return text


def sort_key_of(word: str, as_text: bool) -> str | int | float:
    """A sort key of the shell: what is a number in JSON is that number, all else is text."""
    try:
        value = word if as_text else orjson.loads(word)
    except orjson.JSONDecodeError:
        return word
    return value if type(value) in (int, float) else word


def pairs(given: tuple[str, ...], option: str) -> list[tuple[str, str]]:
    """Names and values of NAME=VALUE. Raises BadParameter."""
    found = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint=option)
        found.append((name, value))
    return found


def _unique(given: dict[str, Any]) -> Any:
    from rqueue.tasks.unique import Unique

    key, until = given["unique_key"], given["unique_until"] or "end"
    if key is None and not given["unique"]:
        if given["unique_until"] is not None:
            raise click.UsageError("--unique-until needs --unique or --unique-key")
        return None
    return Unique(key=key, until=until)


def _options(given: dict[str, Any], headers: tuple[str, ...], text: bool) -> Any:
    from rqueue.errors import ConfigError
    from rqueue.model.times import parse_duration, parse_when
    from rqueue.tasks.options import Options

    if given["in_"] is not None and given["at"] is not None:
        raise click.UsageError("--in and --at exclude each other: a job is due once")
    names = ("id", "priority", "max_deliveries", "max_crashes", "group", "key", "hold", "mandatory")
    values = {name: given[name] for name in (*names, "front", "replicas")}
    values["fsync"] = given["fsync"] or None
    if given["confirm"] is not None:
        values["confirm_ms"] = round(parse_duration(given["confirm"], "confirm") * 1000)
    if given["sort_key"] is not None:
        values["sort_key"] = sort_key_of(given["sort_key"], text)
    for name in ("time_limit", "soft_time_limit", "ttl", "keep"):
        if given[name] is not None:
            values[name] = parse_duration(given[name], name.replace("_", "-"))
    if given["in_"] is not None:
        values["delay_ms"] = round(parse_duration(given["in_"], "in") * 1000)
    if given["at"] is not None:
        at_ms, _ = parse_when(given["at"], "at")
        if at_ms is None:
            raise ConfigError("at", "a time with its zone; for a time from now pass --in")
        values["at_ms"] = at_ms
    values["unique"] = _unique(given)
    return Options(headers=dict(pairs(headers, "--header")), **values)
