"""Errors of a lake."""

from __future__ import annotations

from rqueue.errors import RQueueError

__all__ = ["LakeBusy", "LakeError"]


class LakeError(RQueueError):
    """A lake cannot be read or written; says what to do."""


class LakeBusy(LakeError):
    """Another archiver writes into the same lake; nothing was written twice."""
