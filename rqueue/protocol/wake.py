"""What an element of a wake list says to the consumer that it is for (H-07: a hint, no more)."""

from __future__ import annotations

from typing import NamedTuple

from rqueue.model.job import Delivery

__all__ = ["JOB", "RECONNECTED", "Wake"]

RECONNECTED = b"R"
"""Stands for an element where the connection was lost."""

JOB = b"J"
"""Begins an element that brings a job: the length of its id in four bytes, the id, the value."""

_SHARDS = b"T"
_FORCES = {b"X": "", b"S": "stop", b"K": "kill"}
_KINDS = {
    JOB: "job",
    RECONNECTED: "reconnected",
    _SHARDS: "shards",
    **dict.fromkeys(_FORCES, "revoked"),
}


class Wake(NamedTuple):
    """A message to a consumer: an element of its wake list, read when it is asked."""

    consumer: str
    element: bytes

    @property
    def kind(self) -> str:
        """What it says: "pull" (work waits), "job" (one was delivered), "revoked" (`id` was
        cancelled while it held it), "reconnected" (wake-ups may be lost: pull, with recall),
        "shards" (the queue is one of several over which one is spread: what their table asks for is
        to be looked at)."""
        return _KINDS.get(self.element[:1], "pull")

    @property
    def job(self) -> Delivery | None:
        """The job that was delivered."""
        element = self.element
        if element[:1] != JOB:
            return None
        end = 5 + int.from_bytes(element[1:5], "big")
        return Delivery(element[5:end], element[end:])

    @property
    def id(self) -> str:
        """Of the job that was cancelled; "" else."""
        return self.element[1:].decode() if self.element[:1] in _FORCES else ""

    @property
    def force(self) -> str:
        """What is to become of the code of the job that was cancelled: "stop" (interrupt it),
        "kill" (its process), "" (nothing: its outcome does not count)."""
        return _FORCES.get(self.element[:1], "")
