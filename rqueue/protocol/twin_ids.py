"""Jobs whose ids another process made too, in the same millisecond: they get other ones."""

from __future__ import annotations

from rqueue.logs import logger
from rqueue.model.ids import new_id
from rqueue.protocol.commands.enqueue import Accepted, Put

__all__ = ["another_id", "renamed"]

log = logger("rqueue")


def another_id(taken: str, queue: str) -> str:
    """A new id for a job whose own one another process made too, in the same millisecond."""
    fresh = new_id()
    log.warning("queue %s has another job %s: this one is %s now", queue, taken, fresh)
    return fresh


def renamed(batch: list[tuple[Put, bool]], accepted: Accepted, queue: str) -> list[int]:
    """Which of a batch were refused because another process made the same id; each has another one
    now. Where the batch may have been stored by a try whose answer was lost, none."""
    twins = [] if accepted.again else [index for index in accepted.known if batch[index][1]]
    for index in twins:
        put, own = batch[index]
        batch[index] = put._replace(id=another_id(put.id, queue)), own
    return twins
