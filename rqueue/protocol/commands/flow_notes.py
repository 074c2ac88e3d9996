"""Build the calls that look at what is noted of jobs that wait for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import Arg, CommandCall
from rqueue.protocol.keys import QueueKeys


class Gathered(NamedTuple):
    """A deferred job as it is stored; how many parents it waits for, None where it does not wait;
    how many of those have ended."""

    value: bytes | None
    total: int | None
    ended: int


def _read_gathered(replies: Sequence[Any]) -> Gathered:
    value, total, left, heard = replies
    return Gathered(value, None if total is None else int(total), int(left) + int(heard))


def _read_deadline(replies: Sequence[Any]) -> float | None:
    return None if replies[0] is None else float(replies[0])


def _read_heard(replies: Sequence[Any]) -> list[bool]:
    if not replies:
        return []
    left, bits = replies
    return [one is not None or bit == 1 for one, bit in zip(left, bits, strict=True)]


def _read_each(replies: Sequence[Any]) -> list[bytes | None]:
    return list(replies[0]) if replies else []


def gathered_of(keys: QueueKeys, id: str) -> CommandCall[Gathered]:
    """What is noted of one job that waits."""
    commands = [
        ("HGET", keys.jobs, id),
        ("HGET", keys.deferred, id),
        ("HLEN", keys.gathered(id)),
        ("BITCOUNT", keys.heard(id)),
    ]
    return CommandCall(keys.meta, commands, _read_gathered)


def deadline_of(keys: QueueKeys, id: str) -> CommandCall[float | None]:
    """When the producer of the stream for which this job waits is taken for lost, ms; None where
    that is not noted."""
    return CommandCall(keys.meta, [("ZSCORE", keys.unsealed, id)], _read_deadline)


def places_of(keys: QueueKeys, id: str, places: Sequence[int]) -> CommandCall[list[bool]]:
    """Whether a deferred job has heard of the end of the parents at these places."""
    bits = [word for place in places for word in ("GET", "u1", place)]
    commands: list[tuple[Arg, ...]] = [
        ("HMGET", keys.gathered(id), *places),
        ("BITFIELD_RO", keys.heard(id), *bits),
    ]
    return CommandCall(keys.meta, commands if places else [], _read_heard)


def jobs_of(keys: QueueKeys, ids: Sequence[str]) -> CommandCall[list[bytes | None]]:
    """These jobs as they are stored; None where there is none."""
    return CommandCall(keys.meta, [("HMGET", keys.jobs, *ids)] if ids else [], _read_each)
