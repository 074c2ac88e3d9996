"""The ends of jobs, whatever their cause: a feed from the history, whose place the reader keeps.

The step that ends a job writes its row, so none is missing, whatever dies. A reader that saves its
place together with what it did reads each end once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rqueue.inspector.history import PAGE, Row, rows_of
from rqueue.inspector.parts import Part, Parts
from rqueue.model.expect import expect
from rqueue.model.job import JobState
from rqueue.protocol.commands.history import BEGIN, HistoryPart, history_part, order
from rqueue.transport.redis_client import execute

__all__ = ["EndedJob", "EndedJobs", "ended_jobs"]

STATES = {
    "ack": JobState.DONE,
    **{state.value: state for state in JobState if state.ended and state is not JobState.DONE},
}
"""The outcomes of a row that end a job, and its state then."""


@dataclass(frozen=True, slots=True)
class EndedJob:
    """The end of a job. state: DONE, DEAD, CANCELLED, EXPIRED, PURGED, DISPLACED or MOVED. worker:
    "" if none had it. error: the exception's dotted name or the
    kind of failure, "" without one. A dead letter that is requeued ends once more."""

    id: str
    task: str
    queue: str
    state: JobState
    at_ms: int
    worker: str
    error: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class EndedJobs:
    """Some ends, in their order. after: the place behind them, to be saved with what was done, and
    given again; plain JSON. lost: the queue's history did not reach back to the place that was
    given, or an entry of it cannot be read: ends are missing, and the states of the jobs have to be
    compared."""

    jobs: list[EndedJob]
    after: dict[str, str]
    lost: bool


def ended_jobs(parts: Parts, after: Mapping[str, str] | None) -> Iterator[EndedJobs]:
    """The ends since a place, None: all that the history has; up to now. Raises the server errors,
    of a queue that is spread ConnectionLost, which names the shard."""
    expect("after", after or {}, Mapping, "the `after` of a batch, or None")
    places = dict(after or {})
    for part in parts:
        first = True
        while True:
            start = places.get(part.name, BEGIN)
            found = _read(parts, part, start)
            if not found.entries:
                break
            rows = rows_of(found.entries, part.name)
            places[part.name] = found.entries[-1].id
            lost = first and start != BEGIN and order(found.trimmed) > order(start)
            first, lost = False, lost or any(row["outcome"] == "damaged" for row in rows)
            yield EndedJobs(
                [_end(row) for row in rows if row["outcome"] in STATES], {**places}, lost
            )


def _read(parts: Parts, part: Part, after: str) -> HistoryPart:
    with parts.named(part):
        return execute(part.client, history_part(part.keys, after, "+", count=PAGE))


def _end(row: Row) -> EndedJob:
    return EndedJob(
        row["id"],
        row["task"],
        row["queue"],
        STATES[row["outcome"]],
        row["finished"],
        row["worker"],
        row["error"],
        row["labels"],
    )
