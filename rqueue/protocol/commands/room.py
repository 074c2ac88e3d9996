"""Build the calls of producers that wait for room in a bounded queue."""

from __future__ import annotations

from typing import Any

from rqueue.protocol.call import ScriptCall, text
from rqueue.protocol.commands.enqueue import Accepted
from rqueue.protocol.keys import QueueKeys


def _read_state(reply: Any) -> str:
    return text(reply[1])


def _read_count(reply: Any) -> int:
    return int(reply[1])


def await_room(
    keys: QueueKeys, producer: str, jobs: int, wait_ms: int, size: int = 0
) -> ScriptCall[str]:
    """Wait for room for so many jobs, `size` bytes in all, or say again that one waits, which is to
    be done within `wait_ms`; 0: give up. Answers granted, waits, free (enqueue, and see) or over.
    Once there may be room, `keys.room(producer)` has a word."""
    return ScriptCall("await_room", keys.meta, (producer, jobs, wait_ms, size), _read_state)


def with_grant(call: ScriptCall[Accepted], producer: str) -> ScriptCall[Accepted]:
    """An enqueue by a producer that waited: what is kept for it is its own, and used up."""
    how, runs, *rest = call.args
    return call._replace(args=(how, f"{runs!s}>{producer}", *rest))


def jobs_of(call: ScriptCall[Accepted]) -> int:
    """How many jobs an enqueue has."""
    return (len(call.args) - 2) // 2


def bytes_of(call: ScriptCall[Accepted]) -> int:
    """How many bytes the envelopes of an enqueue have."""
    return sum(
        len(envelope if isinstance(envelope, bytes) else str(envelope).encode())
        for envelope in call.args[3::2]
    )


def repair_room(keys: QueueKeys) -> ScriptCall[int]:
    """Count again what is kept for producers, and drop what belongs to none; and, where a limit
    counts bytes, how many wait. How much was changed."""
    return ScriptCall("repair_room", keys.meta, (), _read_count)
