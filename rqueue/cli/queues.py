"""`rqueue queues`: what there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.configure import setting_in_words
from rqueue.cli.output import Column, age, json_option, print_facts, print_json, print_table, span
from rqueue.cli.stats import named_queues
from rqueue.cli.target import (
    Target,
    connection_options,
    pass_target,
    say_held_up,
    say_missing,
    say_without,
)
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.errors import ServerError
    from rqueue.inspector import FoundQueues, QueueInfo
    from rqueue.inspector.queues import Bound


@click.command()
@click.argument("name", required=False, metavar="[QUEUE]")
@click.option("--shards", is_flag=True, help="Also each shard of a queue that is spread.")
@click.option("--nodes", is_flag=True, help="Also the node of a Redis Cluster that each is on.")
@json_option
@connection_options
@pass_target
def queues(target: Target, /, name: str | None, shards: bool, nodes: bool, as_json: bool) -> int:
    """List the queues, or show one in numbers.

    'oldest' is the age of the oldest ready job: the number to watch. 'parked' jobs wait for a
    worker that knows their task, 'deferred' ones for other jobs, 'unserved' queues have jobs and
    no worker, or none whose lease has not ended, 'unheard' ones jobs with labels that no consumer
    selects. Consumers are counted by the list they are in: waiting for work, notified of work, busy
    (no room for more), browsing.

    Queues are found by a scan of the server's keys: with millions of other keys it takes a while.
    Of a Redis Cluster all nodes are asked, and of a queue that is spread over shards all of these,
    for their sums; what cannot be asked is named, and the exit code is 4.

    \b
    Examples:
      rqueue queues
      rqueue queues orders --shards
      rqueue queues --nodes
      rqueue queues mail --json
    """  # noqa: D301
    from rqueue.errors import RedisUnavailable, SlotBusy, UnknownQueue
    from rqueue.inspector import FoundQueues

    with target.inspector() as inspector:
        places = FoundQueues({name: ""}) if name is not None else inspector.find_queues()
        asked = [name] if name is not None else []
        names = named_queues(inspector, list(places.nodes), asked, shards)
        missing = dict(places.missing)
        without: dict[str, ServerError] = {}
        away: dict[str, ServerError] = {}
        held_up: dict[str, ServerError] = {}
        lacking: dict[str, int] = {}
        found: list[QueueInfo] = []
        for one in inspector.each(names):
            node = places.nodes.get(one, "")
            try:
                survey = inspector.survey(one)
            except UnknownQueue:
                if name == one:
                    raise
                continue  # what is left of a deleted one is none
            except RedisUnavailable as error:
                away[one] = error
                if one not in places.nodes:
                    without[one] = error  # a shard
                elif isinstance(error, SlotBusy) and name != one:
                    held_up[one] = error  # of its node others are there
                elif node and not isinstance(error, SlotBusy):
                    missing[node] = error  # it went away meanwhile
                else:
                    raise
                continue
            without |= survey.missing
            lacking[one] = len(survey.missing)
            found.append(survey.whole)
        if name is not None and nodes:
            places = FoundQueues({one: inspector.node_of(one) for one in names})
        if name is None or shards:
            if as_json:
                print_json([_document(info, places, nodes) for info in found])
            else:
                namespace = inspector.settings.namespace
                _print_table(found, lacking, away, places.nodes if nodes else {}, namespace)
        elif as_json:
            print_json(_document(found[0], places, nodes))
        else:
            _print_one(found[0], places.nodes[name] if nodes else "")
        return max(say_missing(missing), say_without(without), say_held_up(held_up))


def _print_one(info: QueueInfo, place: str) -> None:
    where = info.consumers
    print_facts(
        {
            "queue": info.name,
            **({"node": place} if place else {}),
            **({"shards": info.shards} if info.shards else {}),
            **({"waits for the shards": _numbers(info.fences)} if info.fences else {}),
            "paused": "yes: 'rqueue resume' delivers again" if info.paused else "",
            "ready": info.ready,
            **({"of shares that take turns": info.shares} if info.shares else {}),
            **({"blocked by their groups": info.blocked} if info.blocked else {}),
            **({"on their way to other queues": info.outgoing} if info.outgoing else {}),
            **({"limit": _bound_in_words(info.bounded)} if info.bounded else {}),
            **(
                {"ring": f"{info.ring_bytes:,} of {info.settings['ring_bytes']:,} bytes"}
                if info.settings.get("ring_bytes")
                else {}
            ),
            "oldest": span(info.oldest_ms) if info.oldest_enqueued_ms else "",
            "by level": _levels_in_words(info),
            "scheduled": info.scheduled - info.parked,
            "next due": age(info.next_due_ms, info.now),
            "parked": f"{many(info.parked, 'job')} waiting for a worker that knows the task"
            if info.parked
            else "",
            **({"deferred, wait for other jobs": info.deferred} if info.deferred else {}),
            "unserved": _unserved_in_words(info),
            "unheard": "; ".join(f"{n} with {which}" for which, n in info.unheard.items()),
            "held": info.held,
            "dead": info.dead,
            "consumers": f"{sum(where.values())}: {where['interested']} waiting,"
            f" {where['notified']} notified, {where['not_interested']} busy,"
            f" {where['browsers']} browsing",
            "accepted": info.accepted,
            **info.counters,
            "history rows": info.history_rows,
            "settings": ", ".join(setting_in_words(*one) for one in sorted(info.settings.items())),
        }
    )


def _document(info: QueueInfo, places: FoundQueues, nodes: bool) -> dict[str, Any]:
    from rqueue.cli.documents import queue_document

    return {**queue_document(info), **({"node": places.nodes.get(info.name, "")} if nodes else {})}


def _print_table(
    found: list[QueueInfo],
    lacking: Mapping[str, int],
    away: Mapping[str, ServerError],
    nodes: Mapping[str, str],
    namespace: str,
) -> None:
    """lacking: without how many shards their numbers are. away: queues that could not be asked.
    nodes: of the queues, where these are to be shown."""
    heads = ["ready", "scheduled", "parked", "deferred", "held", "dead", "oldest"]
    heads += ["consumers", "accepted", "done"]
    print_table(
        [
            Column("queue"),
            *([Column("node")] if nodes else []),
            *(Column(head, right=True) for head in heads),
            Column(""),
        ],
        [
            (
                info.name,
                *([nodes.get(info.name, "")] if nodes else []),
                info.ready,
                info.scheduled - info.parked,
                info.parked or "",
                info.deferred or "",
                info.held,
                info.dead,
                span(info.oldest_ms) if info.oldest_enqueued_ms else "",
                sum(info.consumers.values()),
                info.accepted,
                info.counters["acked"],
                _remarks(info, lacking.get(info.name, 0)),
            )
            for info in found
        ]
        + [
            (
                name,
                *([nodes.get(name, "")] if nodes else []),
                *[""] * len(heads),
                _why_away(error),
            )
            for name, error in away.items()
        ],
        empty=f"no queues in namespace '{namespace}'",
    )


def _why_away(error: ServerError) -> str:
    """In place of the numbers of a queue."""
    from rqueue.errors import SlotBusy
    from rqueue.protocol.unreachable import silent_server

    if isinstance(error, SlotBusy):
        return "its slot is being moved, or is served by nobody"
    return f"no answer from {silent_server(error) or error}"


def _unserved_in_words(info: QueueInfo) -> str:
    if not info.waiting or info.serving:
        return ""
    if not info.acquiring:
        return "no worker serves this queue"
    return (
        f"the leases of its consumers have ended, the last one {span(info.forsaken_ms)} ago, and no"
        " pool has reclaimed what they hold: none is alive; 'rqueue doctor' says more"
    )


def _levels_in_words(info: QueueInfo) -> str:
    said = ", ".join(f"{n}: {count}" for n, count in info.levels.items() if count)
    ended = sum(info.levels.values()) - info.ready
    if ended <= 0:
        return said
    return (
        f"{said}; {ended} of them {'has' if ended == 1 else 'have'} ended, and leave at their turn"
    )


def _bound_in_words(bound: Bound) -> str:
    said = [f"{bound.jobs:,} of {bound.limit:,} jobs"] if bound.limit else []
    if bound.limit_bytes:
        said.append(f"{bound.bytes:,} of {bound.limit_bytes:,} bytes")
    if bound.granted:
        of_bytes = f" ({bound.granted_bytes:,} bytes)" if bound.limit_bytes else ""
        said.append(f"room for {bound.granted:,}{of_bytes} kept for producers that waited")
    if bound.producers:
        said.append(f"{many(bound.producers, 'producer')} waiting for room")
    return ", ".join(said)


def _numbers(shards: Sequence[int]) -> str:
    return ", ".join(map(str, shards))


def _remarks(info: QueueInfo, lacking: int) -> str:
    unserved = info.waiting and not info.serving
    bound = info.bounded
    waiting = bound.producers if bound else 0
    said = {
        "paused": info.paused,
        "unserved": unserved,
        "unheard": info.unheard and not unserved,
        f"{many(waiting, 'producer')} waiting": waiting,
        "full": bound and bound.full and not waiting,
        many(info.shards, "shard"): info.shards,
        f"without {many(lacking, 'shard')}": lacking,
        f"waits for {_numbers(info.fences)}": info.fences,
    }
    return ", ".join(word for word, holds in said.items() if holds)
