"""Build the calls by which jobs report how far they are, and by which one watches a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.model.job import JobState, parse_record
from rqueue.model.progress import Progress, progress_of
from rqueue.protocol.call import Arg, CommandCall, ScriptCall, text
from rqueue.protocol.keys import QueueKeys

REPORTS_MOST, OVER_MOST = 100, 500
"""Jobs that one call names."""


class JobReport(NamedTuple):
    """Of a job that was delivered so many times, this one included: its report, as it is kept."""

    id: str
    delivery: int
    said: bytes


class Watched(NamedTuple):
    """Where a job is, and how far. bell: what a watcher knows of, "" of a job that does not
    live."""

    bell: str
    state: JobState
    progress: Progress | None


def _read_strangers(reply: Any) -> list[str]:
    return [text(id) for id in reply[1]]


def _read_watched(reply: Any) -> Watched:
    _, bell, state, record, delivery, at_ms, said = reply
    known = parse_record(record).state if text(state) == "ended" else JobState(text(state))
    return Watched(text(bell), known, progress_of(text(delivery), text(at_ms), said))


def _read_bell(reply: Any) -> str:
    return text(reply[1])


def _read_progress(replies: Sequence[Any]) -> Progress | None:
    ((delivery, at_ms, said),) = replies
    return None if said is None else progress_of(text(delivery or ""), text(at_ms or ""), said)


def report(
    keys: QueueKeys,
    consumer: str,
    term: str,
    reports: Sequence[JobReport],
    over: Sequence[str] = (),
) -> ScriptCall[list[str]]:
    """How far jobs are that this consumer holds; `over`: of which an attempt has ended. The ids
    that it does not hold: of these nothing is noted."""
    args: list[Arg] = [consumer, term, len(reports)]
    for one in reports:
        args += one
    return ScriptCall("report", keys.meta, [*args, *over], _read_strangers)


def watch(keys: QueueKeys, id: str) -> ScriptCall[Watched]:
    """Where a job is, and how far."""
    return ScriptCall("watch", keys.meta, [id, "look"], _read_watched)


def watch_on(keys: QueueKeys, id: str) -> ScriptCall[str]:
    """The bell of a job that is watched, which is kept for another minute."""
    return ScriptCall("watch", keys.meta, [id, "wait"], _read_bell)


def progress(keys: QueueKeys, id: str) -> CommandCall[Progress | None]:
    """What a job reported last."""
    command = ("HMGET", keys.progress(id), "delivery", "at", "said")
    return CommandCall(keys.meta, [command], _read_progress)
