"""The keys that a queue has where its jobs wait for others."""

from __future__ import annotations

__all__ = ["WorkflowKeys"]


class WorkflowKeys:
    """Some of the keys of a queue; see `rqueue.protocol.keys`."""

    __slots__ = ()

    base: str

    @property
    def deferred(self) -> str:
        """hash: deferred job -> how many parents it has."""
        return self.base + "deferred"

    @property
    def edges(self) -> str:
        """hash: job -> those that wait for it by name, a line `<place> <job>` each."""
        return self.base + "edges"

    @property
    def stops(self) -> str:
        """hash: deferred jobs that are to end -> why, JSON."""
        return self.base + "stops"

    @property
    def unsealed(self) -> str:
        """zset: jobs that wait for a stream which goes on, by when its producer is lost, ms."""
        return self.base + "unsealed"

    def heard(self, id: str) -> str:
        """string: a bit for each parent of this deferred job that has ended, by its place, where
        nobody wants what they left."""
        return f"{self.base}heard:{id}"

    def gathered(self, id: str) -> str:
        """hash: place of each parent of this deferred job that has ended -> what it left."""
        return f"{self.base}gathered:{id}"
