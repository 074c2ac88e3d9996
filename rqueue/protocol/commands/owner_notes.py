"""Build the calls that look at whose the groups of a queue are, where they are sticky."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies.sticky import BUCKETS, MOST
from rqueue.protocol.replies import raw_text


class Owners(NamedTuple):
    """Of a queue with sticky groups: how many buckets they fall into (0: they are not sticky), and
    bucket -> the consumer that owns it."""

    buckets: int
    owners: dict[int, str]


def _read_owners(replies: Sequence[Any]) -> Owners:
    (stamp, said), found = replies
    if "sticky" not in raw_text(stamp or b"").split():
        return Owners(0, {})
    if not isinstance(found, dict):
        found = dict(zip(found[::2], found[1::2], strict=True))
    text = raw_text(said or b"")
    buckets = int(text) if text.isdigit() and 1 <= int(text) <= MOST else BUCKETS
    numbers = {raw_text(bucket): raw_text(name) for bucket, name in found.items()}
    return Owners(buckets, {int(its): name for its, name in numbers.items() if its.isdigit()})


def owners_of(keys: QueueKeys) -> CommandCall[Owners]:
    """Whose the buckets of a queue are."""
    asked: list[tuple[Any, ...]] = [("HMGET", keys.meta, "v", "sticky"), ("HGETALL", keys.owners)]
    return CommandCall(keys.meta, asked, _read_owners)


def stuck_owners(keys: QueueKeys, consumers: Sequence[str]) -> CommandCall[list[str]]:
    """Those of these owners that wait while jobs are ready for them alone."""
    asked: list[tuple[Any, ...]] = [("HGET", keys.meta, "paused")]
    for name in consumers:
        asked += [("ZCARD", keys.own(name)), ("ZSCORE", keys.interested, name)]

    def read(replies: Sequence[Any]) -> list[str]:
        paused, *rest = replies
        pairs = zip(consumers, rest[::2], rest[1::2], strict=True)
        return [] if paused == b"1" else [name for name, its, waits in pairs if its and waits]

    return CommandCall(keys.meta, asked, read)


def own_sizes(keys: QueueKeys, consumers: Sequence[str]) -> CommandCall[list[int]]:
    """How many jobs are ready for each of these owners alone."""
    asked = [("ZCARD", keys.own(name)) for name in consumers]
    return CommandCall(keys.meta, asked, lambda replies: [int(size) for size in replies])


def states_of(keys: QueueKeys, consumers: Sequence[str]) -> CommandCall[list[str]]:
    """The lists that these consumers are in; "" of one that is not registered."""
    asked = [("HGET", keys.consumer(name), "state") for name in consumers]
    return CommandCall(keys.meta, asked, lambda replies: [raw_text(its) for its in replies])
