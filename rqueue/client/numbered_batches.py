"""Batches of jobs with numbers, each stored once however often it is sent: what moves jobs from a
database into a queue, and may be killed between the two."""

from __future__ import annotations

from collections.abc import Sequence

from rqueue.client._sync.queue import Queue
from rqueue.errors import ScriptError
from rqueue.model.terms import aged
from rqueue.protocol import commands
from rqueue.protocol.call import Arg
from rqueue.protocol.commands.enqueue import Accepted, Note, Put

__all__ = ["NumberedBatches"]

REMEMBERED_MS = 10 * 365 * 86_400_000
"""How long the queue knows the number of the last batch, where no other one follows."""

_STORED = b"\1"


class NumberedBatches:
    """The batches that one `source` sends to a queue. A batch is sent until `store` answers; the
    next one, under a greater number, only when nothing can need this one any more.

    The queue notes the number in the step that stores the jobs. So a batch that comes again is
    known whatever became of its jobs meanwhile: it does not matter whether they have ended, and how
    long ago.
    """

    def __init__(self, queue: Queue, source: str) -> None:
        self.queue = queue
        self._source = source

    def store(self, number: int, puts: Sequence[tuple[Put, int]]) -> Accepted | None:
        """Store all jobs of a batch, 1000 at most, in one step and in order; None if that was done
        before. puts: each with its age, ms; it counts as enqueued, and signed, then.

        Raises QueueFull, ScriptError and other refusals (then none is stored), and the server
        errors (then it is not known: send it again).
        """
        queue = self.queue
        note = Note(self._source, number, 0, 0, REMEMBERED_MS, _STORED)
        flat: list[Arg] = []
        terms: list[str] = []
        for put, age in puts:
            flat += put.id, queue._packer.signed(put.id, put.envelope, put.terms, age)
            terms.append(aged(put.terms, age))
        call = commands.enqueue_flat(queue.keys, flat, terms, note=note)
        try:
            return queue._run(call)
        except ScriptError as refused:
            if refused.reply.partition(" ")[0] in ("WRITTEN", "PASSED"):
                return None
            raise

    def forget_before(self, number: int) -> None:
        """No batch before this one will be sent again: what was noted of them goes, and those that
        come all the same are taken for stored. Raises the server errors."""
        queue = self.queue
        queue._run(commands.commit_write(queue.keys, self._source, number, REMEMBERED_MS))
