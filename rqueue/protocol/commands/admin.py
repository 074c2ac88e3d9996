"""Build the calls with which an operator steers a queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from rqueue.protocol.call import Arg, ScriptCall, text
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN, POLICIES, Policy, outbox

SLICE = 250
"""Ids that one requeue, purge_dead, purge_held or promote call takes."""

CANCELLED_FROM = frozenset({"ready", "blocked", "scheduled", "deferred", "held"})
"""Answers of `cancel` about a job that it ended: where the job was."""

REORDER_MAX = MOVE_MAX = 50
"""Jobs that one reorder, move, expire or reject call takes: each has to be found in its list."""


class Moved(NamedTuple):
    """A job that goes to another queue. digest: the SHA-1, in hex, of its value here, as it was
    read. terms, envelope: with which it is enqueued there."""

    id: str
    digest: str
    terms: str
    envelope: bytes


def _read_flag(reply: Any) -> bool:
    return bool(reply[1])


def _read_count(reply: Any) -> int:
    return int(reply[1])


def _read_purged(reply: Any) -> tuple[int, bool]:
    return int(reply[1]), bool(reply[2])


def _read_none(_reply: Any) -> None:
    return None


def _read_word(reply: Any) -> str:
    return text(reply[1])


def _read_words(reply: Any) -> list[str]:
    return [text(word) for word in reply[1]]


def _read_names(reply: Any) -> list[str]:
    return [text(name) for name in reply]


def check_rights(keys: QueueKeys) -> ScriptCall[list[str]]:
    """Try what this login may do to the queue's keys; the commands that it may not run."""
    return ScriptCall("check_rights", keys.meta, (), _read_names)


def pause(keys: QueueKeys) -> ScriptCall[bool]:
    """Deliver nothing (A-32); True if that is a change."""
    return ScriptCall("pause", keys.meta, (), _read_flag)


def resume(keys: QueueKeys) -> ScriptCall[bool]:
    """Deliver again; True if that is a change."""
    return ScriptCall("resume", keys.meta, (), _read_flag)


def promote(keys: QueueKeys, ids: Sequence[str] = (), *, others: int = 0) -> ScriptCall[int]:
    """Make scheduled jobs ready now (A-09): these ids, or what is due. others: how many with later
    due times follow in other calls: these stand before them."""
    return ScriptCall("promote", keys.meta, [others, *ids], _read_count)


def reorder(
    keys: QueueKeys, to: int | Literal["front"], jobs: Sequence[tuple[str, bytes, bytes]]
) -> ScriptCall[list[str]]:
    """Give jobs that wait another priority, at the tail of its level, or bring them to the front of
    their own (A-38); answers what became of each, see `lua/reorder.lua`. jobs: (id, its envelope,
    the same signed for this priority), at most `REORDER_MAX`; both b"": the envelope stays."""
    args: list[Arg] = [to]
    for job in jobs:
        args += job
    return ScriptCall("reorder", keys.meta, args, _read_words)


def move(keys: QueueKeys, target: str, left: int, jobs: Sequence[Moved]) -> ScriptCall[list[str]]:
    """Jobs leave for another queue, by way of the outbox (Q-69); answers what became of each, see
    `lua/move.lua`. left: ms, their departure. At most `MOVE_MAX`."""
    args: list[Arg] = [target, left]
    for job in jobs:
        args += job
    return ScriptCall("move", keys.meta, args, _read_words, (outbox.POLICY.name,))


def readmit(
    keys: QueueKeys, jobs: Sequence[tuple[str, int]], *, look: bool = False
) -> ScriptCall[list[str]]:
    """Forget that these jobs left this queue, so that they may come back; answers what each id is:
    free, left or known. jobs: (id, when it left this queue as it says itself, ms; 0 = never), at
    most `SLICE`. look: forget nothing."""
    args: list[Arg] = ["look" if look else "go"]
    for job in jobs:
        args += job
    return ScriptCall("readmit", keys.meta, args, _read_words)


def expire(keys: QueueKeys, ids: Sequence[str]) -> ScriptCall[list[str]]:
    """Jobs that wait end as expired (A-38); answers what became of each, see `lua/expire.lua`. At
    most `MOVE_MAX`."""
    return ScriptCall("expire", keys.meta, ids, _read_words)


def reject(keys: QueueKeys, ids: Sequence[str], message: bytes = b"") -> ScriptCall[list[str]]:
    """Jobs that wait become dead letters (A-38); answers what became of each, see
    `lua/reject.lua`. At most `MOVE_MAX`."""
    return ScriptCall("reject", keys.meta, [message, *ids], _read_words)


def resign(keys: QueueKeys, id: str, envelope: bytes, fresh: bytes) -> ScriptCall[bool]:
    """Put another envelope, signed anew, into a scheduled job; False where its envelope is not the
    given one any more, or it is not scheduled."""
    return ScriptCall("resign", keys.meta, (id, envelope, fresh), _read_flag)


def unpark(keys: QueueKeys, cursor: str, tasks: Sequence[str]) -> ScriptCall[tuple[str, int]]:
    """Put parked jobs of these tasks back into their places: a worker knows them now. Call again
    with the cursor it returns until that is "0" (and begin with "0")."""

    def read(reply: Any) -> tuple[str, int]:
        return text(reply[1]), int(reply[2])

    return ScriptCall("unpark", keys.meta, [cursor, *tasks], read)


def cancel(
    keys: QueueKeys,
    id: str,
    *,
    held: bool = True,
    purge: bool = False,
    force: Literal["", "stop", "kill"] = "",
) -> ScriptCall[str]:
    """Cancel a job; answers what it was (`CANCELLED_FROM`), or why it was not cancelled
    (holds: a consumer holds it and `held` is False; dead, ended, unknown). purge: it ends
    as purged, whichever consumer holds it. force: what runs is to be interrupted, or its process
    killed."""
    how = "purge" if purge else force or ("1" if held else "0")
    return ScriptCall("cancel", keys.meta, [id, how], _read_word)


def note_stop(
    keys: QueueKeys, consumer: str, stage: Literal["delivered", "ended"], ids: Sequence[str]
) -> ScriptCall[int]:
    """Note how far a consumer is with stopping jobs that were cancelled while it ran them; answers
    how many were noted. ids: at most `SLICE`."""
    return ScriptCall("note_stop", keys.meta, [consumer, stage, *ids], _read_count)


class Stopping(NamedTuple):
    """How far the stopping of a job is that was cancelled while it ran. stage: requested,
    delivered, ended; "" if nobody asked for it. gone: True if its consumer is gone, and says no
    more. kill: True if its process is to be killed. now, at_ms: ms, when it was cancelled."""

    stage: str
    gone: bool
    kill: bool
    at_ms: int
    now: int


def _read_stopping(reply: Any) -> Stopping:
    return Stopping(text(reply[1]), bool(reply[2]), bool(reply[3]), int(reply[4]), int(reply[0]))


def read_stop(keys: QueueKeys, id: str) -> ScriptCall[Stopping]:
    """How far the stopping of a job is that was cancelled while it ran."""
    return ScriptCall("read_stop", keys.meta, [id], _read_stopping)


def requeue(keys: QueueKeys, ids: Sequence[str]) -> ScriptCall[int]:
    """Give dead letters another life at the tail of their levels."""
    return ScriptCall("requeue", keys.meta, ids, _read_count)


def purge(
    keys: QueueKeys, limit: int = SLICE, *, scheduled: bool = False
) -> ScriptCall[tuple[int, bool]]:
    """End up to `limit` waiting jobs; (how many, whether there may be more)."""
    return ScriptCall("purge", keys.meta, ["1" if scheduled else "0", limit], _read_purged)


def purge_held(
    keys: QueueKeys, consumer: str, ids: Sequence[str]
) -> ScriptCall[tuple[int, list[str]]]:
    """End jobs that this consumer holds, with a wake-up to it (X-04): how many, and the ids
    of those that are live elsewhere by now."""

    def read(reply: Any) -> tuple[int, list[str]]:
        return int(reply[1]), [text(id) for id in reply[2]]

    return ScriptCall("purge_held", keys.meta, [consumer, *ids], read)


def purge_dead(keys: QueueKeys, ids: Sequence[str]) -> ScriptCall[int]:
    """Drop dead letters for good."""
    return ScriptCall("purge_dead", keys.meta, ids, _read_count)


def _asked(policy: Policy, options: Mapping[str, int | str]) -> bool:
    return any(name in options for name in (*(its[0] for its in policy.options), *policy.names))


def configure(keys: QueueKeys, options: Mapping[str, int | str]) -> ScriptCall[None]:
    """Set options: priorities, max_deliveries, max_crashes, keep_ms, history_rows_max, v, the stamp
    of another kind, and those of policies, which the queue then takes on."""
    args: list[Arg] = []
    for name, value in options.items():
        args += (name, value)
    needs = tuple(
        policy.name
        for policy in POLICIES.values()
        if policy.name not in PLAIN.policies and _asked(policy, options)
    )
    return ScriptCall("configure", keys.meta, args, _read_none, needs)
