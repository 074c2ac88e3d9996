"""Problems of one consumer, and of the notifications among all of them."""

from __future__ import annotations

from collections.abc import Sequence

import redis

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.protocol.commands.consumer_checks import consumer_places, held_bytes, movement
from rqueue.protocol.commands.consumer_rows import number_in
from rqueue.protocol.commands.job_notes import job_sizes
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.waiting import LEASE_GRACE_MS
from rqueue.text.numbers import many
from rqueue.transport.redis_client import execute

DEAF_MS = 15_000
"""How long past its deadline a notified consumer counts as deaf."""
DUE_GRACE_MS = 2_000
"""How late a due job may be: the one that watches it has a way to go."""


def diagnose_consumer(client: redis.Redis, keys: QueueKeys, name: str, now: int) -> list[Finding]:
    """The problems of this consumer, read in one step; [] where it has none."""
    places = execute(client, consumer_places(keys, name))
    lease, lists = places.lease, places.lists
    found: list[Finding] = []
    jobs = many(places.held, "job")

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

    if lease is None or not places.fields:
        if lease is None and not places.fields and not lists and not places.held:
            if places.unread:
                note(
                    "consumers",
                    "old-wake",
                    f"consumer {name!r} is gone, its wake-ups are still there: they take room",
                    "drop them",
                    only_a_note=True,
                )
            return found
        has = ([f"holds {jobs}"] if places.held else []) + [f"is in {x}" for x in lists]
        says = f"consumer {name!r} is not registered, but " + (" and ".join(has) or "half there")
        if places.held:
            says += ": no worker will run these jobs or release them"
        elif lists:
            says += ": work may be delivered to no worker"
        remedy = "release the jobs that it holds, uncharged, and take it off all lists"
        note("owner" if places.held else "consumers", "ghost", says, remedy)
        return found

    if lease < now - LEASE_GRACE_MS:
        note(
            "liveness",
            "lease-ended",
            f"the lease of consumer {name!r} ended {(now - lease) / 1000:.0f} s ago and no pool has"
            f" reclaimed the {jobs} it holds: no pool of this queue is alive to look",
            "do what a pool would: reclaim its jobs, charging those that may have been running",
            # no job waits for that: so it stays in a shard that was closed
            only_a_note=not places.held,
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
    state = places.fields.get("state", "")
    if state != lists[0]:
        note(
            "consumers",
            "state",
            f"consumer {name!r} is in {lists[0]}, and says it is in {state or 'none'}:"
            " its next pull moves it wrongly",
            "put it into the one that its window and the jobs it holds call for",
        )
        return found
    window, held = number_in(places.fields, "jobs"), places.held
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
    if places.notified is not None and places.notified < now - DEAF_MS:
        note(
            "liveness",
            "deaf",
            f"consumer {name!r} was notified of work and has not pulled for"
            f" {(now - places.notified) / 1000:.0f} s; no pool has passed the work on",
            "do what a pool would: count it as waiting again, and notify another one",
        )
    return found


def diagnose_bytes(client: redis.Redis, keys: QueueKeys, name: str) -> list[Finding]:
    """Whether a consumer's window in bytes is kept right; where jobs move while the sum is made, it
    says nothing."""
    before = execute(client, held_bytes(keys, name))
    window, counted, held = before
    if window <= 0:
        return []
    actual = sum(execute(client, job_sizes(keys, held)))
    if execute(client, held_bytes(keys, name)) != before:
        return []
    if actual == counted or not held:  # where nothing is held the next pull begins at 0
        return []
    return [
        Finding(
            "credit",
            "bytes",
            keys.queue,
            name,
            f"consumer {name!r} holds jobs of {actual} bytes and counts {counted}: it gets too"
            f" {'much' if counted < actual else 'little'} of its window of {window} bytes",
            "count again",
            action=Action("consumer", (name,)),
        )
    ]


def diagnose_liveness(
    client: redis.Redis, keys: QueueKeys, levels: Sequence[int], now: int
) -> list[Finding]:
    """Whether work waits beside consumers none of which was notified, read in one step."""
    paused, timer, ready, due, waiting, notified = execute(client, movement(keys, levels))
    if paused or not waiting or notified:
        return []
    action = Action("look")
    if ready > 0:
        says = (
            f"{many(ready, 'job')} ready, {many(len(waiting), 'consumer')} waiting, and none was"
            " notified: nothing moves until the next job arrives"
        )
        return [Finding("liveness", "stuck", keys.queue, "", says, "notify one", action=action)]
    if due is not None and timer not in waiting:
        says = "jobs are scheduled, consumers wait, and none of them watches for the next due one"
        return [
            Finding("liveness", "unwatched", keys.queue, "", says, "let one watch", action=action)
        ]
    if due is not None and due < now - DUE_GRACE_MS:
        says = (
            f"a job is due since {(now - due) / 1000:.0f} s, and"
            f" {timer!r}, which watches the schedule, has not pulled"
        )
        return [Finding("liveness", "late", keys.queue, "", says, "notify one", action=action)]
    return []
