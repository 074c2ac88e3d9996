"""From a stream of calls to the jobs that are stored, a few hundred at a time."""

from __future__ import annotations

from time import monotonic
from typing import Any

from rqueue.errors import ConfigError, WorkflowEnded
from rqueue.model.confirmation import stricter
from rqueue.model.envelope import parse_record
from rqueue.model.job import JobState, parse_header
from rqueue.model.parents import LOST_MS, PARENTS_MAX, Parents
from rqueue.protocol.commands.enqueue import BATCH
from rqueue.protocol.commands.streams import StreamRead
from rqueue.protocol.job_packer import Batch, JobPacker
from rqueue.protocol.workflow_packing import packed_steps, signed
from rqueue.tasks.stream import Stream

__all__ = ["StreamPacking"]

LINGER_S = 1.0
"""How long a member waits for others that are drawn slowly."""


class StreamPacking:
    """What is known of a stream while it is drawn. `total`: its members so far, those included
    that an earlier call of it has stored."""

    def __init__(self, packer: JobPacker, stream: Stream[Any], root: str, *, spread: bool) -> None:
        self._packer = packer
        self._stream = stream
        self._spread = spread
        self._batch = Batch([], None)
        self._sent_at = monotonic()
        self._stored = 0
        self.root = root
        self.total = 0

    def opening(self) -> Batch:
        """The job that waits for the others, signed. Raises BadArguments, ConfigError and
        NotEncodable."""
        (batch,) = packed_steps(self._packer, [self._stream.opening(self.root)])
        return signed(self._packer, batch)

    def goes_on(self, found: StreamRead) -> bool:
        """The job that waits was there before. Whether its stream is open: then the members that
        it has are passed over. False: it was sealed. Raises WorkflowEnded where it waits no more,
        and was not sealed, and ConfigError where it is no stream's."""
        if not found.value:
            if found.record and parse_record(found.record).state is JobState.DONE:
                return False
            raise WorkflowEnded(self._packer.queue, self.root)
        header = parse_header(found.value.partition(b";")[0])
        parents = Parents.parse(header.waits) if header else None
        if parents is None or not parents.streamed:
            raise ConfigError("id", f"job '{self.root}' is there, and waits for no stream")
        if found.joined is None or not parents.open:
            return False
        self._stored = found.joined
        return True

    def sealed(self, found: StreamRead) -> int:
        """How many members a stream had that was sealed before; 0 where nobody knows any more."""
        header = parse_header(found.value.partition(b";")[0])
        parents = Parents.parse(header.waits) if header else None
        return 0 if parents is None else parents.total

    def take(self, member: object) -> Batch | None:
        """Another member is drawn; what is to be stored now, in one step. Raises BadArguments,
        ConfigError and NotEncodable."""
        place = self.total
        if place == PARENTS_MAX:
            raise ConfigError(
                "stream",
                f"it has more than {PARENTS_MAX:,} members: let each of them do more, or let some"
                " of them be streams of their own",
            )
        step = self._stream.step(f"{self.root}.{place}", member, spread=self._spread)
        self.total = place + 1
        if place < self._stored:
            return None
        (one,) = packed_steps(self._packer, [step])
        self._batch.jobs.extend(one.jobs)
        self._batch = self._batch._replace(confirm=stricter(self._batch.confirm, one.confirm))
        late = monotonic() - self._sent_at >= LINGER_S
        return self.rest() if late or len(self._batch.jobs) >= BATCH else None

    def rest(self) -> Batch | None:
        """What is drawn and not stored."""
        if not self._batch.jobs:
            return None
        batch, self._batch = self._batch, Batch([], None)
        self._sent_at = monotonic()
        return signed(self._packer, batch)

    def note(self) -> str:
        """What is to be said where the stream stops before its end."""
        return (
            f"stream {self.root!r} is open: enqueued again as id={self.root!r}, with the same"
            f" members, it goes on; it ends as cancelled (ProducerLost) where nobody does so in"
            f" {LOST_MS // 60_000} minutes"
        )
