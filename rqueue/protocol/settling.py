"""A settle that is prepared: what is said of which job."""

from __future__ import annotations

from typing import Any

import orjson

from rqueue.errors import Undecodable
from rqueue.model.job import Delivery
from rqueue.protocol.commands.settle import Retried
from rqueue.protocol.settled import Known


class Settling:
    """A settle that is prepared: ids, and what goes with them. `freed`: bytes of their values.
    `jobs`, `known`: what is held again where the call fails: values, and what the rows need."""

    __slots__ = (
        "ack",
        "batch",
        "done",
        "freed",
        "jobs",
        "known",
        "reject",
        "release",
        "retry",
        "rows",
    )

    def __init__(
        self,
        ack: list[str],
        done: list[tuple[str, int | None, bytes]],
        retry: list[Retried],
        reject: list[tuple[str, bytes]],
        release: list[str],
        batch: bytes,
        rows: int,
    ) -> None:
        self.ack = ack
        self.done = done
        self.retry = retry
        self.reject = reject
        self.release = release
        self.batch = batch
        self.rows = rows
        self.freed = 0
        self.jobs: dict[bytes, bytes] = {}
        self.known: Known = {}

    def ids(self) -> list[str]:
        """Of all the jobs."""
        return [
            *self.ack,
            *[id_ for id_, _, _ in self.done],
            *[text_of(retried.id) for retried in self.retry],
            *[id_ for id_, _ in self.reject],
            *self.release,
        ]


def retried(
    job: Delivery | str, delay: float, error: dict[str, Any] | None, place: str, charge: bool
) -> Retried:
    """A retry in `delay` seconds. place: as in `Consumer.retry`."""
    where = place or ("head" if delay > 0 else "old")
    return Retried(
        id_of(job),
        round(delay * 1000),
        where,
        charge,
        orjson.dumps(error) if error else b"",
        None if isinstance(job, str) else _deliveries_before(job),
    )


def _deliveries_before(job: Delivery) -> int | None:
    try:
        return job.deliveries
    except Undecodable:
        return None  # nothing to compare with


def id_of(job: Delivery | str) -> str:
    """Of a delivery, or the id itself."""
    return job if isinstance(job, str) else job.id


def text_of(id_: str | bytes) -> str:
    """An id as text."""
    return id_ if isinstance(id_, str) else id_.decode()
