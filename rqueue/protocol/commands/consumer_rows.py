"""Build the calls that read the consumers of a queue as they are registered, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, NamedTuple

from rqueue.protocol.call import Arg, CommandCall
from rqueue.protocol.commands.clock import clock_commands, clock_in
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import names, pairs, raw_text, scores


class Leases(NamedTuple):
    """All registered consumers by the ends of their leases in ms, soonest first; the one that
    watches the schedule ("": none); those that stand by, in the order in which they take over."""

    now: int
    ends: dict[str, float]
    timer: str
    standbys: list[str]


class ConsumerRow(NamedTuple):
    """One consumer. `fields`: what it registered with, and the scripts keep of it; {} where there
    is no such consumer. `held`: jobs that it holds; `unread`: messages it has not read."""

    fields: dict[str, str]
    held: int
    unread: int

    def number(self, name: str) -> int:
        """A field that is a number; 0 where it is not set."""
        return number_in(self.fields, name)


def number_in(fields: dict[str, str], name: str) -> int:
    """A number among the fields of a consumer; 0 where it is not set."""
    return int(float(fields.get(name) or 0))


def fields_in(reply: Any) -> dict[str, str]:
    """The fields of a consumer; what is no UTF-8 is shown as such."""
    return {
        name.decode(errors="replace"): value.decode(errors="replace")
        for name, value in pairs(reply).items()
    }


def _read_leases(replies: Sequence[Any]) -> Leases:
    ends, timer, standbys, *clock = replies
    return Leases(clock_in(*clock).now, scores(ends), raw_text(timer), names(standbys))


def _read_last_lease(replies: Sequence[Any]) -> float:
    ends, browsers = scores(replies[0]), set(names(replies[1]))
    return max((end for name, end in ends.items() if name not in browsers), default=inf)


def _read_row(replies: Sequence[Any]) -> ConsumerRow:
    row, held, unread = replies
    return ConsumerRow(fields_in(row), int(held), int(unread))


def _read_names(replies: Sequence[Any]) -> list[str]:
    return names(replies[0])


def _read_text(replies: Sequence[Any]) -> str:
    found: bytes | None = replies[0]
    return (found or b"").decode(errors="replace")


def leases(keys: QueueKeys) -> CommandCall[Leases]:
    """Who is registered, and until when."""
    return CommandCall(
        keys.meta,
        [
            ("ZRANGE", keys.consumers, 0, -1, "WITHSCORES"),
            ("HGET", keys.meta, "timer"),
            ("ZRANGE", keys.standbys, 0, -1),
            *clock_commands(keys),
        ],
        _read_leases,
    )


def last_lease(keys: QueueKeys, browsers: int) -> CommandCall[float]:
    """When the last lease of the consumers that acquire ends, or has ended, in ms; for ever where
    none is found. browsers: how many others there are, whose leases may end later."""
    return CommandCall(
        keys.meta,
        [
            ("ZRANGE", keys.consumers, -1 - browsers, -1, "WITHSCORES"),
            ("SMEMBERS", keys.browsers),
        ],
        _read_last_lease,
    )


def registered_names(keys: QueueKeys) -> CommandCall[list[str]]:
    """Who is registered, the one whose lease ends first before the others."""
    return CommandCall(keys.meta, [("ZRANGE", keys.consumers, 0, -1)], _read_names)


def worker_of(keys: QueueKeys, name: str) -> CommandCall[str]:
    """The worker that a consumer belongs to; "" where there is no such consumer."""
    return CommandCall(keys.meta, [("HGET", keys.consumer(name), "worker")], _read_text)


def consumer_row(keys: QueueKeys, name: str) -> CommandCall[ConsumerRow]:
    """What is kept of one consumer."""
    return CommandCall(
        keys.meta,
        [
            ("HGETALL", keys.consumer(name)),
            ("LLEN", keys.held(name)),
            ("LLEN", keys.wake(name)),
        ],
        _read_row,
    )


def _read_noted(replies: Sequence[Any]) -> list[str]:
    noted, held = map(names, replies)
    return sorted(set(noted) - set(held))


def noted_ids(keys: QueueKeys, name: str) -> CommandCall[list[str]]:
    """The ids of jobs that a consumer was noted to run for a while, and does not hold any more."""
    return CommandCall(
        keys.meta,
        [("HKEYS", keys.running(name)), ("LRANGE", keys.held(name), 0, -1)],
        _read_noted,
    )


def held_ids(keys: QueueKeys, name: str) -> CommandCall[list[str]]:
    """The ids of the jobs that a consumer holds, in the order in which it acquired them."""
    return CommandCall(keys.meta, [("LRANGE", keys.held(name), 0, -1)], _read_names)


class Succession(NamedTuple):
    """live: consumers that take jobs; standbys: those that stand by; most: how many may be live, 0
    = all."""

    live: set[str]
    standbys: list[str]
    most: int


def _read_succession(replies: Sequence[Any]) -> Succession:
    live, standbys, most = replies
    return Succession(set(names(live)), names(standbys), int(most or 0))


def succession(keys: QueueKeys) -> CommandCall[Succession]:
    """Who is live, and who stands by."""
    commands: list[tuple[Arg, ...]] = [
        ("SMEMBERS", keys.live),
        ("ZRANGE", keys.standbys, 0, -1),
        ("HGET", keys.meta, "live_consumers"),
    ]
    return CommandCall(keys.meta, commands, _read_succession)
