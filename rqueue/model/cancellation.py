"""What came of cancelling a job."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Cancellation"]


class Cancellation(StrEnum):
    """How far a cancel has come. False where the job was not cancelled.

    NONE: it had ended before, is not known, or was left alone. REQUESTED: its worker is
    notified; the job has ended as cancelled, its code may still run. DELIVERED: that code was
    interrupted and has not returned yet. ENDED: nothing of the job runs.
    """

    NONE = "none"
    REQUESTED = "requested"
    DELIVERED = "delivered"
    ENDED = "ended"

    def __bool__(self) -> bool:
        return self is not Cancellation.NONE
