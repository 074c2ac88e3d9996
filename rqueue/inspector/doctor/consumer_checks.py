"""Problems of one consumer, and of the notifications among all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import redis

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.protocol.keys import QueueKeys
from rqueue.text.numbers import many
from rqueue.transport.redis_client import translated

LISTS = ("interested", "notified", "not_interested", "browsers")
LEASE_GRACE_MS = 5_000
"""A lease that ended has to be reclaimed; for so long it is no problem that it was not yet."""
DEAF_MS = 15_000
"""How long past its deadline a notified consumer counts as deaf."""
DUE_GRACE_MS = 2_000
"""How late a due job may be: the one that watches it has a way to go."""


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "surrogateescape")


def consumer_names(client: redis.Redis, keys: QueueKeys) -> tuple[set[str], set[str]]:
    """Names of the registered consumers, and of all those that are in one of the lists."""
    with translated(client, queue=keys.queue), client.pipeline(transaction=True) as pipe:
        pipe.zrange(keys.consumers, 0, -1)
        pipe.zrange(keys.interested, 0, -1)
        pipe.zrange(keys.notified, 0, -1)
        pipe.smembers(keys.not_interested)
        pipe.smembers(keys.browsers)
        found: list[Any] = pipe.execute()
    registered = {_text(name) for name in found[0]}
    return registered, {_text(name) for names in found[1:] for name in names}


def diagnose_consumer(client: redis.Redis, keys: QueueKeys, name: str, now: int) -> list[Finding]:
    """The problems of this consumer, read in one step; [] where it has none."""
    with translated(client, queue=keys.queue), client.pipeline(transaction=True) as pipe:
        pipe.hgetall(keys.consumer(name))
        pipe.zscore(keys.consumers, name)
        pipe.zscore(keys.interested, name)
        pipe.zscore(keys.notified, name)
        pipe.sismember(keys.not_interested, name)
        pipe.sismember(keys.browsers, name)
        pipe.lrange(keys.held(name), 0, -1)
        pipe.exists(keys.wake(name))
        row, lease, interested, notified, busy, browses, held_ids, unread = pipe.execute()
        row = cast("dict[bytes, bytes]", row)
    there = (interested is not None, notified is not None, bool(busy), bool(browses))
    lists = [list_ for list_, inside in zip(LISTS, there, strict=True) if inside]
    found: list[Finding] = []
    jobs = many(len(held_ids), "job")

    def note(
        invariant: str, kind: str, says: str, remedy: str, *, only_a_note: bool = False
    ) -> None:
        found.append(
            Finding(
                invariant,
                kind,
                keys.queue,
                name,
                says,
                remedy,
                "note" if only_a_note else "problem",
                Action("look" if kind in ("lease-ended", "deaf") else "consumer", (name,)),
            )
        )

    if lease is None or not row:
        if lease is None and not row and not lists and not held_ids:
            if unread:
                note(
                    "consumers",
                    "old-wake",
                    f"consumer {name!r} is gone, its wake-ups are still there: they take room",
                    "drop them",
                    only_a_note=True,
                )
            return found
        has = ([f"holds {jobs}"] if held_ids else []) + [f"is in {x}" for x in lists]
        says = f"consumer {name!r} is not registered, but " + (" and ".join(has) or "half there")
        if held_ids:
            says += ": no worker will run these jobs or release them"
        elif lists:
            says += ": work may be delivered to no worker"
        remedy = "release the jobs that it holds, uncharged, and take it off all lists"
        note("owner" if held_ids else "consumers", "ghost", says, remedy)
        return found

    if lease < now - LEASE_GRACE_MS:
        note(
            "liveness",
            "lease-ended",
            f"the lease of consumer {name!r} ended {(now - lease) / 1000:.0f} s ago and no pool has"
            f" reclaimed the {jobs} it holds: no pool of this queue is alive to look",
            "do what a pool would: reclaim its jobs, charging those that may have been running",
        )
        return found
    if len(lists) != 1:
        note(
            "consumers",
            "lists",
            f"consumer {name!r} is in {' and '.join(lists) or 'none of the four lists'}:"
            + (" it may be notified twice" if lists else " it is never notified of work"),
            "put it into the one that its window and the jobs it holds call for",
        )
        return found
    state = _text(row.get(b"state"))
    if state != lists[0]:
        note(
            "consumers",
            "state",
            f"consumer {name!r} is in {lists[0]}, and says it is in {state or 'none'}:"
            " its next pull moves it wrongly",
            "put it into the one that its window and the jobs it holds call for",
        )
        return found
    window, held = int(float(row.get(b"jobs") or 0)), len(held_ids)
    if held >= window and lists[0] in ("interested", "notified"):
        note(
            "credit",
            "over-window",
            f"consumer {name!r} holds {jobs}, its window is {window}, and it counts as one that"
            " waits for work: work may be promised to who cannot take it",
            "let it count as busy",
        )
    elif held > window and lists[0] == "not_interested":
        note(
            "credit",
            "window-lowered",
            f"consumer {name!r} holds {jobs}, more than its window of {window}: right if it has"
            " just lowered it",
            "",
            only_a_note=True,
        )
    if notified is not None and notified < now - DEAF_MS:
        note(
            "liveness",
            "deaf",
            f"consumer {name!r} was notified of work and has not pulled for"
            f" {(now - notified) / 1000:.0f} s; no pool has passed the work on",
            "do what a pool would: count it as waiting again, and notify another one",
        )
    return found


def _held_bytes(
    client: redis.Redis, keys: QueueKeys, name: str
) -> tuple[list[bytes | None], list[bytes]]:
    """A consumer's window in bytes, its count of them, and the ids it holds, read in one step."""
    with translated(client, queue=keys.queue), client.pipeline(transaction=True) as pipe:
        pipe.hmget(keys.consumer(name), ["bytes", "held_bytes"])
        pipe.lrange(keys.held(name), 0, -1)
        row, held = pipe.execute()
    return row, held


def diagnose_bytes(client: redis.Redis, keys: QueueKeys, name: str) -> list[Finding]:
    """Whether a consumer's window in bytes is kept right; where jobs move while the sum is made, it
    says nothing."""
    before = _held_bytes(client, keys, name)
    (window, count), held = before
    bytes_, kept = int(float(window or 0)), int(float(count or 0))
    if bytes_ <= 0:
        return []
    with translated(client, queue=keys.queue), client.pipeline(transaction=False) as pipe:
        for id_ in held:
            pipe.hstrlen(keys.jobs, cast("str", id_))
        actual = sum(pipe.execute())
    if _held_bytes(client, keys, name) != before:
        return []
    if actual == kept or not held:  # where nothing is held the next pull begins at 0
        return []
    return [
        Finding(
            "credit",
            "bytes",
            keys.queue,
            name,
            f"consumer {name!r} holds jobs of {actual} bytes and counts {kept}: it gets too"
            f" {'much' if kept < actual else 'little'} of its window of {bytes_} bytes",
            "count again",
            action=Action("consumer", (name,)),
        )
    ]


def diagnose_liveness(
    client: redis.Redis, keys: QueueKeys, levels: Sequence[int], now: int
) -> list[Finding]:
    """Whether work waits beside consumers none of which was notified, read in one step."""
    with translated(client, queue=keys.queue), client.pipeline(transaction=True) as pipe:
        pipe.hmget(keys.meta, ["paused", "timer", "marked"])
        pipe.zrange(keys.interested, 0, 999)
        pipe.zcard(keys.notified)
        pipe.zrange(keys.scheduled, 0, 0, withscores=True)
        for level in levels:
            pipe.llen(keys.ready(level))
            pipe.llen(keys.due(level))
        meta, waiters, notified, first, *lengths = pipe.execute()
    paused, timer, marked = meta
    if paused == b"1" or not waiters or notified:
        return []
    ready = sum(lengths) - int(marked or 0)
    names = [_text(name) for name in waiters]
    action = Action("look")
    if ready > 0:
        says = (
            f"{many(ready, 'job')} ready, {many(len(names), 'consumer')} waiting, and none was"
            " notified: nothing moves until the next job arrives"
        )
        return [Finding("liveness", "stuck", keys.queue, "", says, "notify one", action=action)]
    if first and _text(timer) not in names:
        says = "jobs are scheduled, consumers wait, and none of them watches for the next due one"
        return [
            Finding("liveness", "unwatched", keys.queue, "", says, "let one watch", action=action)
        ]
    if first and first[0][1] < now - DUE_GRACE_MS:
        says = (
            f"a job is due since {(now - first[0][1]) / 1000:.0f} s, and"
            f" {_text(timer)!r}, which watches the schedule, has not pulled"
        )
        return [Finding("liveness", "late", keys.queue, "", says, "notify one", action=action)]
    return []
