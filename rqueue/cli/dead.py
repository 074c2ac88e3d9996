"""`rqueue dead`: dead letters."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rqueue.cli.exit_codes import NOT_FOUND, Failure, confirm
from rqueue.cli.failures import say
from rqueue.cli.filled import filled
from rqueue.cli.output import echo, json_option, print_json, print_line, yes_option
from rqueue.cli.progress import Counter
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many, some

if TYPE_CHECKING:
    from rqueue.inspector import DeadFilter, Inspector

F = TypeVar("F", bound=Callable[..., Any])


def _filter_options(command: F) -> F:
    for decorate in (
        click.option(
            "--until", type=filled, metavar="WHEN", help="Died before: a time, or so long ago (1h)."
        ),
        click.option(
            "--since", type=filled, metavar="WHEN", help="Died after: a time, or so long ago (2d)."
        ),
        click.option("--text", type=filled, metavar="TEXT", help="In its message or traceback."),
        click.option(
            "--error", type=filled, metavar="TYPE", help="Part of the error's type: TimeoutError."
        ),
        click.option("--task", type=filled, metavar="NAME", help="Of this task."),
    ):
        command = decorate(command)
    return command


def moment(text: str | None, option: str) -> int:
    """ms since the epoch of an ISO time, or of a duration ago by this host's clock; 0 for none."""
    return asked_moment(text, option)(lambda: round(time.time() * 1000))


def asked_moment(text: str | None, option: str) -> Callable[[Callable[[], int]], int]:
    """As `moment`, by a clock that is asked later and only for a duration: the queue's, by which
    its times are. Raises ConfigError at once."""
    if not text:
        return lambda now_ms: 0
    from rqueue.model.times import parse_when

    at_ms, ago_ms = parse_when(text, option)
    return lambda now_ms: at_ms if at_ms is not None else now_ms() - (ago_ms or 0)


def _filter(
    queue: str,
    task: str | None,
    error: str | None,
    text: str | None,
    since: str | None,
    until: str | None,
    ids: tuple[str, ...] = (),
) -> Callable[[Inspector], DeadFilter]:
    from rqueue.inspector import DeadFilter

    first, last = asked_moment(since, "since"), asked_moment(until, "until")

    def by_its_clock(inspector: Inspector) -> DeadFilter:
        def now_ms() -> int:
            return inspector.queue(queue).now

        range_ms = first(now_ms), last(now_ms)
        return DeadFilter(task or "", error or "", text or "", *range_ms, ids)

    return by_its_clock


@click.group(no_args_is_help=True)
def dead() -> None:
    """List, requeue or purge dead letters.

    A job that failed for good is kept with its arguments and the error of each attempt, until it
    is requeued or purged.
    """


@dead.command("list")
@click.argument("queue")
@_filter_options
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    metavar="N",
    help="At the most.",
)
@click.option("--all", "every", is_flag=True, help="All; with --json one line per job.")
@json_option
@connection_options
@pass_target
def list_(
    target: Target, /, queue: str, limit: int, every: bool, as_json: bool, **criteria: Any
) -> None:
    """List dead letters, oldest first.

    \b
    Examples:
      rqueue dead list default
      rqueue dead list default --task app.tasks.send --error Timeout --since 2h
      rqueue dead list default --text 'connection refused' --all --json
    """  # noqa: D301
    from rqueue.cli.documents import job_document
    from rqueue.cli.jobs import print_jobs

    which = _filter(queue, **criteria)
    with target.inspector() as inspector:
        found = inspector.dead(queue, which(inspector))
        if every and as_json:
            for job in found:
                print_line(job_document(job))
            return
        shown = list(found if every else islice(found, limit + 1))
        more = not every and len(shown) > limit
        shown = shown if every else shown[:limit]
        if as_json:
            print_json({"jobs": [job_document(job) for job in shown], "more": more})
            return
        now = inspector.queue(queue).now
    print_jobs(shown, "dead", now, empty=f"no such dead letters in queue '{queue}'")
    if more:
        echo("there are more: --all, or a larger --limit", err=True)


@dead.command()
@click.argument("queue")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@_filter_options
@click.option("--dry-run", is_flag=True, help="Only say how many jobs that would be.")
@yes_option
@json_option
@connection_options
@pass_target
def requeue(
    target: Target, /, queue: str, dry_run: bool, yes: bool, as_json: bool, **criteria: Any
) -> None:
    """Give dead letters another life.

    Each goes to the tail of its level, and its attempts are counted from nothing. Without ids and
    options all of them do. Where one of the ids is no dead letter, nothing is done.

    \b
    Examples:
      rqueue dead requeue default order-42
      rqueue dead requeue default --error ConnectionError --dry-run
      rqueue dead requeue default --task app.tasks.send --since 1d --yes
    """  # noqa: D301
    _steer(target, queue, _filter(queue, **criteria), "requeue", dry_run, yes, as_json)


@dead.command("purge")
@click.argument("queue")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@_filter_options
@click.option("--dry-run", is_flag=True, help="Only say how many jobs that would be.")
@yes_option
@json_option
@connection_options
@pass_target
def purge_(
    target: Target, /, queue: str, dry_run: bool, yes: bool, as_json: bool, **criteria: Any
) -> None:
    """Drop dead letters for good.

    Their arguments and errors are gone then; a row in history stays. Without ids and options all
    of them are dropped. Where one of the ids is no dead letter, nothing is done.

    \b
    Examples:
      rqueue dead purge default order-42 order-43
      rqueue dead purge default --until 30d --dry-run
      rqueue dead purge default --task app.tasks.old --yes
    """  # noqa: D301
    _steer(target, queue, _filter(queue, **criteria), "purge", dry_run, yes, as_json)


def _steer(
    target: Target,
    queue: str,
    asked: Callable[[Inspector], DeadFilter],
    verb: str,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    with target.inspector() as inspector:
        which = asked(inspector)
        found = {job.id: job.position for job in inspector.dead(queue, which)}
        if missing := sorted(set(which.ids) - found.keys()):
            raise Failure(
                f"no such dead letter in queue '{queue}': {', '.join(missing)}; nothing was done",
                NOT_FOUND,
            )
        count = len(found)
        done = 0
        stayed: list[str] = []
        if not dry_run and count:
            confirm(f"{verb.capitalize()} {many(count, 'dead letter')} of queue '{queue}'?", yes)
            work = inspector.requeue_dead if verb == "requeue" else inspector.purge_dead
            with Counter(f"{verb} {queue}", count, quiet=as_json) as counter:
                done = work(queue, which, lambda _looked, finished: counter.update(finished))
            if done < count:
                # one that lived and is dead again has another position
                left = inspector.dead(queue, which)
                stayed = [job.id for job in left if found.get(job.id) == job.position]
    if as_json:
        facts = {"queue": queue, "jobs": count if dry_run else done, "dry_run": dry_run}
        print_json(facts | ({} if dry_run else {"stayed": stayed}))
    elif dry_run:
        echo(f"would {verb} {many(count, 'dead letter')} of queue '{queue}'")
    else:
        echo(f"{verb}d {many(done, 'dead letter')} of '{queue}'")
        if verb == "requeue" and done < count:
            named = f" ({some(stayed)})" if stayed else ""
            say(
                f"{many(count - done, 'dead letter')} stayed{named}: where others have the unique"
                f" keys by now, 'rqueue unique {queue} --job ID' names them"
            )
