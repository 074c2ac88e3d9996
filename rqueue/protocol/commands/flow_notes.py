"""Build the calls that look at what is noted of jobs that wait for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys


class Gathered(NamedTuple):
    """A deferred job as it is stored; how many parents it waits for, None where it does not wait;
    how many of those have ended."""

    value: bytes | None
    total: int | None
    ended: int


def _read_gathered(replies: Sequence[Any]) -> Gathered:
    value, total, ended = replies
    return Gathered(value, None if total is None else int(total), int(ended))


def _read_deadline(replies: Sequence[Any]) -> float | None:
    return None if replies[0] is None else float(replies[0])


def _read_each(replies: Sequence[Any]) -> list[bytes | None]:
    return list(replies[0]) if replies else []


def gathered_of(keys: QueueKeys, id: str) -> CommandCall[Gathered]:
    """What is noted of one job that waits."""
    commands = [
        ("HGET", keys.jobs, id),
        ("HGET", keys.deferred, id),
        ("HLEN", keys.gathered(id)),
    ]
    return CommandCall(keys.meta, commands, _read_gathered)


def deadline_of(keys: QueueKeys, id: str) -> CommandCall[float | None]:
    """When the producer of the stream for which this job waits is taken for lost, ms; None where
    that is not noted."""
    return CommandCall(keys.meta, [("ZSCORE", keys.unsealed, id)], _read_deadline)


def places_of(keys: QueueKeys, id: str, places: Sequence[int]) -> CommandCall[list[bytes | None]]:
    """What those of a deferred job's parents that have these places left; None where they have not
    ended."""
    return CommandCall(keys.meta, [("HMGET", keys.gathered(id), *places)], _read_each)


def jobs_of(keys: QueueKeys, ids: Sequence[str]) -> CommandCall[list[bytes | None]]:
    """These jobs as they are stored; None where there is none."""
    return CommandCall(keys.meta, [("HMGET", keys.jobs, *ids)] if ids else [], _read_each)
