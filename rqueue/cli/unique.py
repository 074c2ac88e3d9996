"""`rqueue unique`: who has a key of unique jobs."""

from __future__ import annotations

import click

from rqueue.cli.exit_codes import NEGATIVE, OK
from rqueue.cli.failures import say
from rqueue.cli.filled import filled
from rqueue.cli.output import json_option, print_facts, print_json, span
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.model.unique_key import UniqueKey


def unique_words(text: str) -> str:
    """A unique key and how long it is a job's own, of terms or a header; "" where there is none."""
    said = UniqueKey.parse(text)
    if said is None:
        return ""
    if said.on_conflict == "throttle":
        return f"{said.key}, throttled: one in {span(int(said.until))}"
    if said.on_conflict == "debounce":
        most = f" for {span(said.most_ms)} at the most" if said.most_ms else ""
        return f"{said.key}, debounced: further calls put it off{most}"
    if isinstance(said.until, int):
        return f"{said.key}, for {span(said.until)} from its enqueue"
    return f"{said.key}, until its {said.until}"


@click.command()
@click.argument("queue")
@click.argument("key", required=False)
@click.option("--job", type=filled, metavar="ID", help="The key of this job.")
@click.option("--clear", is_flag=True, help="Free the key: the next job of it is enqueued.")
@json_option
@connection_options
@pass_target
def unique(
    target: Target, /, queue: str, key: str | None, job: str | None, clear: bool, as_json: bool
) -> int:
    """Show who has a key of unique jobs, or free it.

    `rqueue show` names the key of a job, `task.unique_key(...)` that of a call. A key is its job's
    as long as that waits or runs, and is free in the step that ends it: freeing one by hand lets
    another job in beside the one that has it, which goes on.

    \b
    Exit codes: 0 a job has, or had, the key, 1 none has.

    \b
    Examples:
      rqueue unique default 3q2-7wEXAMPLEkeyOf22ch
      rqueue unique default --job order-42
      rqueue unique default --job order-42 --clear
    """  # noqa: D301
    if (key is None) == (job is None):
        raise click.UsageError("name a key, or a job with --job")
    with target.queues(queue) as (clients, inspector):
        if key is None:
            look = inspector.job(str(job), queue).job
            said = UniqueKey.parse(look.unique)
            if said is None:
                say(f"job '{look.id}' is not unique")
                return NEGATIVE
            key = said.key
        owners = clients.each(lambda one: one.unique.clear(key) if clear else one.unique.owner(key))
        owner = next(filter(None, owners), None)
        state = str(owner.state()) if owner else ""
    if as_json:
        facts = {"queue": queue, "key": key, "job": owner.id if owner else None}
        print_json({**facts, "state": state or None, "cleared": clear})
    else:
        what = ("had by" if clear else "job") if owner else "free"
        print_facts({"key": key, what: owner.id if owner else "no job has it", "state": state})
    return OK if owner else NEGATIVE
