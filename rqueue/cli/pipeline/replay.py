"""`rqueue pipeline replay`: jobs that SQL chooses, again."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.dead import moment
from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.failures import say
from rqueue.cli.filled import filled
from rqueue.cli.output import Column, echo, json_option, print_json, print_table
from rqueue.cli.pipeline.history_options import (
    cluster_option,
    in_order,
    lake_option,
    lake_rows,
    queue_option,
    require_server,
    source_access,
    spark_options,
    spark_session,
)
from rqueue.cli.pipeline.inputs import check_lake
from rqueue.cli.pipeline.meter import Meter
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.pipeline.replay.replay import Chosen, Replayed, Summary


@click.command()
@click.option("--where", required=True, metavar="SQL", help="Which ones: a condition on columns.")
@click.option(
    "--from",
    "origin",
    type=click.Choice(["dead", "lake"]),
    default="dead",
    show_default=True,
    help="Dead letters in Redis, or jobs of the lake.",
)
@queue_option
@lake_option
@click.option(
    "--since", type=filled, metavar="WHEN", help="Rows of the lake from: a time, or 1d (ago)."
)
@click.option(
    "--until", type=filled, metavar="WHEN", help="Rows of the lake before: a time, or 1h (ago)."
)
@click.option(
    "--limit", type=click.IntRange(1), metavar="N", help="At most, under one name; oldest first."
)
@click.option("--rate", type=click.FloatRange(0), default=0.0, metavar="N", help="Jobs a second.")
@click.option(
    "--to", "to_queue", type=filled, metavar="QUEUE", help="Into another queue than their own."
)
@click.option("--purge", is_flag=True, help="Drop the dead letters that were replayed.")
@click.option(
    "--name",
    metavar="NAME",
    help="Of this replay: under one name no job is replayed twice. Default: made of the choice.",
)
@click.option(
    "--ledger",
    metavar="FOLDER",
    help="Where is noted what was replayed. Default: the lake; without one, rqueue-replays here.",
)
@click.option("--yes", "-y", is_flag=True, help="Do it; without it nothing is enqueued.")
@cluster_option
@spark_options
@json_option
@connection_options
@pass_target
def replay(
    target: Target,
    /,
    where: str,
    origin: str,
    queues: tuple[str, ...],
    lake: str | None,
    since: str | None,
    until: str | None,
    limit: int | None,
    rate: float,
    to_queue: str | None,
    purge: bool,
    name: str | None,
    ledger: str | None,
    yes: bool,
    cluster: bool,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> int:
    """Enqueue jobs again that SQL chooses.

    Without --yes it only says which ones, and how to do it. Dead letters have the columns of the
    source 'rqueue' (id, task, args, kwargs, headers, level, cause, errors, ...) and 'error'; rows
    of the lake those of history. A job gets a new id, and its old one in the header 'replay_of'.
    Run again or killed in the middle, the same replay enqueues each job once. Exit code 1: some of
    the jobs cannot be replayed.

    \b
    Examples:
      rqueue pipeline replay --queue mail --where "error LIKE '%Timeout%'"
      rqueue pipeline replay --where "task = 'app.charge' AND headers['tenant'] = 'a'" \\
        --rate 50 --purge --yes
      rqueue pipeline replay --from lake --lake /data/lake --since 2d \\
        --where "outcome = 'dead' AND task = 'app.send'" --yes
    """  # noqa: D301
    from rqueue.model.names import check_queue

    if origin == "lake" and lake is None:
        raise click.UsageError("which lake? --lake FOLDER")
    if origin == "dead" and (since or until):
        raise click.UsageError("--since and --until are for --from lake")
    for queue in (*queues, *([to_queue] if to_queue is not None else [])):
        check_queue(queue)
    first, last = moment(since, "since"), moment(until, "until")
    in_order(first, last, "--since", "--until")
    if origin == "lake":
        check_lake(lake, master, conf)
    from rqueue.pipeline.replay.replay import check_name, default_name

    run = check_name(name or default_name(where, origin, queues, to_queue))
    with source_access(target, cluster) as access:
        require_server(access)
        with spark_session(master, conf) as spark:
            from rqueue.pipeline.replay.ledger import Ledger
            from rqueue.pipeline.replay.replay import choose_dead, choose_lake
            from rqueue.pipeline.replay.replay import replay as again

            book = Ledger(spark, ledger or lake or os.path.abspath("rqueue-replays"), run)
            if origin == "dead":
                chosen = choose_dead(spark, access, where, book, queues=queues, limit=limit)
            else:
                assert lake is not None
                rows = lake_rows(spark, lake, queues, first, last)
                chosen = choose_lake(spark, access, rows, where, book, limit=limit)
            chosen.rows.persist()
            summary = chosen.summary()
            elsewhere = chosen.elsewhere()
            for other, count in elsewhere.items():
                say(
                    f"warning: {many(count, 'job')} of these {'was' if count == 1 else 'were'} "
                    f"replayed before as '{other}', and would be again: --name {other} leaves them"
                )
            if not yes:
                command = _command(run, name, target.namespace)
                return _dry_run(chosen, summary, elsewhere, run, command, as_json)
            with Meter("jobs", summary.replayable, quiet=as_json) as meter:
                try:
                    done = again(
                        chosen,
                        access,
                        run,
                        rate=rate,
                        to_queue=to_queue,
                        purge=purge,
                        on_progress=meter.update,
                    )
                except BaseException:
                    say(f"not all of it is done; the same command goes on with --name {run}")
                    raise
            place = book.path
    refused = {
        reason: summary.refused.get(reason, 0) + done.refused.get(reason, 0)
        for reason in (*summary.refused, *done.refused)
    }
    _told(summary, done, refused, run, place, as_json)
    return NEGATIVE if refused else OK


def _command(run: str, name: str | None, namespace: str | None) -> str:
    """The command line that does it; without the server, whose address may hold a password."""
    context = click.get_current_context()
    given = ["rqueue", "pipeline", "replay"]
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        default = parameter.get_default(context)
        if not isinstance(parameter, click.Option) or value in (None, (), False, default):
            continue
        option = max(parameter.opts, key=len)
        if parameter.is_flag:
            given.append(option)
        else:
            for one in value if parameter.multiple else (value,):
                given += [option, f"{one:g}" if isinstance(one, float) else str(one)]
    if namespace is not None:
        given += ["--namespace", namespace]
    if name is None:
        given += ["--name", run]
    return shlex.join([*given, "--yes"])


def _dry_run(
    chosen: Chosen,
    summary: Summary,
    elsewhere: dict[str, int],
    run: str,
    command: str,
    as_json: bool,
) -> int:
    sample = chosen.sample()
    if as_json:
        print_json(
            {
                "name": run,
                "dry_run": True,
                "chosen": summary.chosen,
                "replayable": summary.replayable,
                "replayed_before": summary.replayed,
                "replayed_elsewhere": elsewhere,
                "not_replayable": summary.refused,
                "sample": sample,
            }
        )
        return OK
    echo(f"would enqueue {many(summary.replayable, 'job')} again")
    for (queue, task), count in sorted(summary.kinds.items(), key=lambda kind: -kind[1]):
        echo(f"  {count:,} of task {task or '?'} in queue '{queue}'")
    if summary.replayed:
        echo(f"  {summary.replayed:,} more were replayed before as '{run}'")
    _refusals(summary.refused)
    if sample:
        echo()
        heads = [Column("queue"), Column("id"), Column("task"), Column("error")]
        print_table(heads, [[one[head.head] for head in heads] for one in sample])
        echo()
        echo("nothing was enqueued; to do it:")
        echo(f"  {command}")
    return OK


def _told(
    summary: Summary,
    done: Replayed,
    refused: dict[str, int],
    run: str,
    place: str,
    as_json: bool,
) -> None:
    before = summary.replayed + done.before
    if as_json:
        document: dict[str, Any] = {
            "name": run,
            "dry_run": False,
            "chosen": summary.chosen,
            "jobs": done.jobs,
            "replayed_before": before,
            "not_replayable": refused,
            "purged": done.purged,
            "ledger": place,
        }
        print_json(document)
        return
    said = f"replay {run}: {many(done.jobs, 'job')} enqueued again"
    if before:
        said += f", {before:,} were before"
    if done.purged:
        said += f", {many(done.purged, 'dead letter')} dropped"
    echo(said)
    _refusals(refused)


def _refusals(refused: dict[str, int]) -> None:
    for reason, count in sorted(refused.items()):
        say(f"{many(count, 'job')} cannot be replayed: {reason}")
