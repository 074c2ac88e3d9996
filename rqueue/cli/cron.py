"""`rqueue cron`: periodic jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.enqueue import pairs, value_of
from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.failures import say
from rqueue.cli.output import echo, json_option, print_facts, print_json, print_table
from rqueue.cli.schedule_words import COLUMNS, document, facts, next_words, row
from rqueue.cli.target import Target, connection_options, pass_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rqueue.client._sync.queue import Queue
    from rqueue.inspector import Inspector
    from rqueue.model.schedule_info import ScheduleInfo

MISSED = ("last", "skip", "all")
OVERLAP = ("allow", "skip", "queue")


def _timing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for decorate in (
        click.option("--window", metavar="DURATION", help="How old a missed tick may be, for all."),
        click.option("--jitter", metavar="DURATION", help="Each job is due up to so much later."),
        click.option(
            "--overlap",
            type=click.Choice(OVERLAP),
            help="While the job before waits or runs: allow (the default), skip, or queue one.",
        ),
        click.option(
            "--missed",
            type=click.Choice(MISSED),
            help="Of ticks that nobody looked for in time: the last (the default), none, or all.",
        ),
        click.option("--tz", metavar="ZONE", help="Time zone of the expressions; default UTC."),
        click.option("--every", metavar="DURATION", help="An interval instead, from now on."),
        click.option(
            "--cron", multiple=True, metavar="EXPRESSION", help="When: '0 3 * * *', @daily."
        ),
    ):
        command = decorate(command)
    return command


def _timing(given: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (list(value) if name == "cron" else value)
        for name, value in given.items()
        if value not in (None, ())
    }


@click.group(no_args_is_help=True)
def cron() -> None:
    """List, add and steer periodic jobs.

    A schedule enqueues its job at each of its ticks. It needs no process of its own: whichever
    worker of the queue waits, does it.
    """


@cron.command("list")
@click.argument("queue")
@click.option("--next", "count", type=int, metavar="N", help="Also the next N ticks of each.")
@json_option
@connection_options
@pass_target
def list_(target: Target, /, queue: str, count: int | None, as_json: bool) -> None:
    """List a queue's schedules.

    \b
    Examples:
      rqueue cron list reports
      rqueue cron list reports --next 5
    """  # noqa: D301
    with target.queue(queue) as (client, inspector):
        inspector.require_queue(queue)
        found = client.schedules.list()
        ticks = {info.name: client.schedules.next(info.name, count) for info in found if count}
        parked = _parked(inspector, found)
    if as_json:
        print_json([document(info, ticks.get(info.name, ())) for info in found])
        return
    print_table(COLUMNS, map(row, found), empty=f"queue '{queue}' has no schedules")
    for info in found:
        if info.last_id in parked:
            say(
                f"schedule '{info.name}': job '{info.last_id}' is parked, for no worker of the"
                f" queue knows task '{info.task}'"
            )
    for info in found:
        if count:
            echo(f"{info.name}: " + ", ".join(tick.isoformat() for tick in ticks[info.name]))


@cron.command()
@click.argument("queue")
@click.argument("name")
@json_option
@connection_options
@pass_target
def show(target: Target, /, queue: str, name: str, as_json: bool) -> None:
    """Show a schedule: what it enqueues, what it did so far, and when it ticks next.

    \b
    Example:
      rqueue cron show reports nightly
    """  # noqa: D301
    with target.queue(queue) as (client, inspector):
        info = client.schedules.get(name)
        ticks = client.schedules.next(name)
        parked = _parked(inspector, [info])
    if as_json:
        print_json(document(info, ticks))
    else:
        print_facts(facts(info, ticks, info.last_id in parked))


def _parked(inspector: Inspector, found: Sequence[ScheduleInfo]) -> frozenset[str]:
    """Which of their last jobs wait for a worker that knows their task."""
    ids = [info.last_id for info in found if info.last_id]
    return inspector.parked(found[0].queue, ids) if ids else frozenset()


@cron.command()
@click.argument("queue")
@click.argument("name")
@click.argument("task")
@click.argument("args", nargs=-1, metavar="[ARG]...")
@click.option(
    "--kwarg", "-k", "kwargs", multiple=True, metavar="NAME=VALUE", help="A keyword argument."
)
@click.option("--text", is_flag=True, help="Take all arguments as text, not as JSON.")
@_timing_options
@json_option
@connection_options
@pass_target
def add(
    target: Target,
    /,
    queue: str,
    name: str,
    task: str,
    args: tuple[str, ...],
    kwargs: tuple[str, ...],
    text: bool,
    as_json: bool,
    **timing: Any,
) -> None:
    """Make a schedule, or change the one of this name; the same again changes nothing.

    Arguments are as of 'rqueue enqueue'.

    \b
    Examples:
      rqueue cron add reports nightly app.tasks.report --cron '0 3 * * *' --tz Europe/Berlin
      rqueue cron add default poll app.tasks.poll acme --every 5m --overlap skip
    """  # noqa: D301
    with target.queue(queue) as (client, _):
        positional = [value_of(arg, text) for arg in args]
        named = {key: value_of(value, text) for key, value in pairs(kwargs, "--kwarg")}
        info = client.schedules.set(name, task, positional, named, **_timing(timing))
    _say(info, "is set", as_json)


@cron.command()
@click.argument("queue")
@click.argument("name")
@_timing_options
@json_option
@connection_options
@pass_target
def edit(target: Target, /, queue: str, name: str, as_json: bool, **timing: Any) -> None:
    """Change when a schedule ticks, and what becomes of ticks.

    \b
    Example:
      rqueue cron edit reports nightly --cron '30 3 * * *'
    """  # noqa: D301
    with target.queue(queue) as (client, _):
        if not _timing(timing):
            raise click.UsageError("say what is to change, such as --every or --cron")
        info = client.schedules.edit(name, **_timing(timing))
    _say(info, "is changed", as_json)


def _declared(client: Queue, name: str) -> bool:
    """Whether the code of workers declares this schedule."""
    from rqueue.errors import UnknownSchedule

    try:
        info = client.schedules.get(name)
    except UnknownSchedule:
        return False
    return bool(info.code) and info.state != "retired"


def _steering(verb: str, done: str, doc: str) -> click.Command:
    @click.argument("queue")
    @click.argument("name")
    @json_option
    @connection_options
    @pass_target
    def steer(target: Target, /, queue: str, name: str, as_json: bool) -> int:
        with target.queue(queue) as (client, _):
            declared = verb == "remove" and _declared(client, name)
            changed = getattr(client.schedules, verb)(name)
        if as_json:
            print_json({"name": name, "queue": queue, verb: changed})
        else:
            there = changed or verb != "remove"
            said = f"schedule {name} {done}" if there else f"there was no schedule '{name}'"
            echo(said + ("" if changed else ": nothing was to be done"))
        if declared and changed:
            say(
                "code declares it: the next worker that starts brings it back."
                f" 'rqueue cron pause {queue} {name}' keeps it from ticking, through deploys"
            )
        return OK if changed else NEGATIVE

    steer.__doc__ = f"{doc}\n\n\b\nExample:\n  rqueue cron {verb} reports nightly"
    return click.command(verb)(steer)


cron.add_command(
    _steering(
        "pause",
        "is paused",
        "Enqueue nothing for a schedule until 'rqueue cron resume': what ticks is not missed.",
    )
)
cron.add_command(
    _steering(
        "resume", "goes on", "Go on with a schedule that was paused, with its next tick from now."
    )
)
cron.add_command(
    _steering(
        "remove",
        "is removed",
        "Remove a schedule: it enqueues no more, and its jobs stay as they are.",
    )
)


@cron.command()
@click.argument("queue")
@click.argument("name")
@json_option
@connection_options
@pass_target
def reset(target: Target, /, queue: str, name: str, as_json: bool) -> None:
    """Take back what was changed by hand of a schedule that code declares.

    \b
    Example:
      rqueue cron reset reports app.tasks.nightly
    """  # noqa: D301
    with target.queue(queue) as (client, _):
        info = client.schedules.reset(name)
    _say(info, "is as its code says", as_json)


@cron.command("run-now")
@click.argument("queue")
@click.argument("name")
@json_option
@connection_options
@pass_target
def run_now(target: Target, /, queue: str, name: str, as_json: bool) -> int:
    """Enqueue a schedule's job now; its ticks are as they were. Prints the job's id.

    \b
    Exit codes: 0 enqueued, 1 not: another job has its unique key, and is named.

    \b
    Example:
      rqueue cron run-now reports nightly
    """  # noqa: D301
    with target.queue(queue) as (client, _):
        handle = client.schedules.run_now(name)
    if as_json:
        print_json(
            {
                "name": name,
                "queue": queue,
                "id": handle.id,
                "created": handle.created,
                "conflict": handle.conflict or None,
            }
        )
    else:
        echo(handle.id)
        if handle.conflict:
            say(f"such a job exists, which is {handle.conflict}: nothing was stored")
    return OK if handle.created else NEGATIVE


def _say(info: ScheduleInfo, what: str, as_json: bool) -> None:
    if as_json:
        print_json(document(info))
    else:
        echo(f"schedule {info.name} {what}: next {next_words(info) or 'never'}")
