"""Build the calls with which a checkup looks at consumers: each is the view of one moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import Arg, CommandCall
from rqueue.protocol.commands.consumer_rows import fields_in, number_in
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import names, raw_text, score, scores

WAITERS_MAX = 1000
"""Waiting consumers that a look at all of them names."""


class ConsumerNames(NamedTuple):
    """Who is registered, and who is in one of the four lists."""

    registered: set[str]
    listed: set[str]


class ConsumerPlaces(NamedTuple):
    """One name, wherever it is. `fields`: {} where it is not registered; `lease`: when it ends, ms;
    `lists`: those of the four that it is in; `notified`: when it is to have pulled, ms, where it is
    in that one; `held`: how many jobs it holds; `unread`: whether messages wait for it."""

    fields: dict[str, str]
    lease: float | None
    lists: list[str]
    notified: float | None
    held: int
    unread: bool


class HeldBytes(NamedTuple):
    """A consumer's `window` in bytes (0: none), the bytes that it is `counted` to hold, and the ids
    it holds."""

    window: int
    counted: int
    held: list[str]


class Movement(NamedTuple):
    """What would move jobs: ready ones, the first `due` time (ms; None: nothing is scheduled), who
    watches for it, the waiting consumers, and how many were notified."""

    paused: bool
    timer: str
    ready: int
    due: float | None
    waiting: list[str]
    notified: int


def _read_names(replies: Sequence[Any]) -> ConsumerNames:
    registered, *lists = (names(reply) for reply in replies)
    return ConsumerNames(set(registered), {name for listed in lists for name in listed})


def _read_places(replies: Sequence[Any]) -> ConsumerPlaces:
    row, lease, interested, notified, busy, browses, held, unread = replies
    there = {
        "interested": interested is not None,
        "notified": notified is not None,
        "not_interested": bool(busy),
        "browsers": bool(browses),
    }
    return ConsumerPlaces(
        fields_in(row),
        score(lease),
        [name for name, inside in there.items() if inside],
        score(notified),
        int(held),
        bool(unread),
    )


def _read_bytes(replies: Sequence[Any]) -> HeldBytes:
    (window, counted), held = replies
    fields = {"bytes": raw_text(window), "held_bytes": raw_text(counted)}
    return HeldBytes(number_in(fields, "bytes"), number_in(fields, "held_bytes"), names(held))


def _read_movement(replies: Sequence[Any]) -> Movement:
    (paused, timer, marked), waiting, notified, first, *lengths = replies
    return Movement(
        paused == b"1",
        raw_text(timer),
        sum(map(int, lengths)) - int(marked or 0),
        next(iter(scores(first).values()), None),
        names(waiting),
        int(notified),
    )


def consumer_names(keys: QueueKeys) -> CommandCall[ConsumerNames]:
    """The names that the queue speaks of."""
    return CommandCall(
        keys.meta,
        [
            ("ZRANGE", keys.consumers, 0, -1),
            ("ZRANGE", keys.interested, 0, -1),
            ("ZRANGE", keys.notified, 0, -1),
            ("SMEMBERS", keys.not_interested),
            ("SMEMBERS", keys.browsers),
        ],
        _read_names,
    )


def consumer_places(keys: QueueKeys, name: str) -> CommandCall[ConsumerPlaces]:
    """Everywhere that one consumer is."""
    return CommandCall(
        keys.meta,
        [
            ("HGETALL", keys.consumer(name)),
            ("ZSCORE", keys.consumers, name),
            ("ZSCORE", keys.interested, name),
            ("ZSCORE", keys.notified, name),
            ("SISMEMBER", keys.not_interested, name),
            ("SISMEMBER", keys.browsers, name),
            ("LLEN", keys.held(name)),
            ("EXISTS", keys.wake(name)),
        ],
        _read_places,
    )


def held_bytes(keys: QueueKeys, name: str) -> CommandCall[HeldBytes]:
    """What a consumer's window in bytes is counted with."""
    return CommandCall(
        keys.meta,
        [
            ("HMGET", keys.consumer(name), "bytes", "held_bytes"),
            ("LRANGE", keys.held(name), 0, -1),
        ],
        _read_bytes,
    )


def movement(keys: QueueKeys, levels: Iterable[int]) -> CommandCall[Movement]:
    """Whether anything moves the jobs that wait in these levels, and the scheduled ones."""
    commands: list[tuple[Arg, ...]] = [
        ("HMGET", keys.meta, "paused", "timer", "marked"),
        ("ZRANGE", keys.interested, 0, WAITERS_MAX - 1),
        ("ZCARD", keys.notified),
        ("ZRANGE", keys.scheduled, 0, 0, "WITHSCORES"),
    ]
    for level in levels:
        commands += [("LLEN", keys.ready(level)), ("LLEN", keys.due(level))]
    return CommandCall(keys.meta, commands, _read_movement)
