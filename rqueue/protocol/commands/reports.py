"""Build the calls by which jobs report how far they are, and by which one watches a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.model.envelope import parse_record
from rqueue.model.job import JobState
from rqueue.model.log_line import LogLine
from rqueue.model.progress import Progress, progress_of
from rqueue.protocol.call import Arg, CommandCall, ScriptCall, text
from rqueue.protocol.keys import QueueKeys

REPORTS_MOST, OVER_MOST, LINES_MOST = 100, 500, 1000
"""Jobs that one call names, and lines that it has."""

LINES_PAGE = 200
"""Lines that one look shows."""


class JobReport(NamedTuple):
    """Of a job that was delivered so many times, this one included: its report, as it is kept, b""
    for none, and lines. token: of the attempt, which counts its lines; first: of the first one
    here, from 1."""

    id: str
    delivery: int
    said: bytes = b""
    token: str = ""
    first: int = 1
    lines: Sequence[bytes] = ()


class Watched(NamedTuple):
    """Where a job is, and how far; a job that is done does not say how far any more. bell: what a
    watcher knows of, "" of a job that does not live."""

    bell: str
    state: JobState
    progress: Progress | None
    lines: tuple[LogLine, ...]


def _read_strangers(reply: Any) -> list[str]:
    return [text(id) for id in reply[1]]


def _read_watched(reply: Any) -> Watched:
    _, bell, state, record, delivery, at_ms, said, lines = reply
    known = parse_record(record).state if text(state) == "ended" else JobState(text(state))
    done = known is JobState.DONE
    progress = None if done else progress_of(text(delivery), text(at_ms), said)
    return Watched(text(bell), known, progress, tuple(map(LogLine.of, lines)))


def _read_bell(reply: Any) -> str:
    return text(reply[1])


def _read_progress(replies: Sequence[Any]) -> Progress | None:
    ((delivery, at_ms, said),) = replies
    return None if said is None else progress_of(text(delivery or ""), text(at_ms or ""), said)


def _read_lines(replies: Sequence[Any]) -> list[LogLine]:
    return [LogLine.of(line) for line in replies[0]]


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
        args += (*one[:5], len(one.lines), *one.lines)
    return ScriptCall("report", keys.meta, [*args, *over], _read_strangers)


def watch(keys: QueueKeys, id: str, after: int = 0) -> ScriptCall[Watched]:
    """Where a job is, how far, and its lines behind the one of this number: `LINES_PAGE` of them
    at the most."""
    return ScriptCall("watch", keys.meta, [id, "look", after], _read_watched)


def watch_on(keys: QueueKeys, id: str) -> ScriptCall[str]:
    """The bell of a job that is watched, which is kept for another minute."""
    return ScriptCall("watch", keys.meta, [id, "wait", 0], _read_bell)


def progress(keys: QueueKeys, id: str) -> CommandCall[Progress | None]:
    """What a job reported last."""
    command = ("HMGET", keys.progress(id), "delivery", "at", "said")
    return CommandCall(keys.meta, [command], _read_progress)


def log_lines(keys: QueueKeys, id: str) -> CommandCall[list[LogLine]]:
    """The lines that are kept of a job, oldest first."""
    return CommandCall(keys.meta, [("LRANGE", keys.log(id), 0, -1)], _read_lines)
