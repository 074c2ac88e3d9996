"""The jobs that one Spark task enqueues: rows of one partition, each exactly once however often it
is tried.

Spark runs a task again when it fails, runs two attempts of it side by side (speculation), and
repeats a whole epoch of a stream after a crash; the rows may then come in another order. What holds
against all of that:

- A row's id is derived from the run, the epoch, the partition, what the row says, and its number
  among rows of the partition that say the same: not from its place. An id never stands for two
  different rows, so that nothing is lost when the order changes. Its mark is the same in every
  partition.
- Every step notes, in the same atomic step as the enqueue, a mark of each of its rows in the log
  of this run, epoch and partition. A later attempt begins by reading the log, and leaves out what
  is there. Queues forget the ids of ended jobs after `keep`; the log is kept until the epoch after
  next, or for the option `remember`.
- A step names the length that the log had when it was made. Where it has grown since, another
  attempt was faster: nothing is enqueued, the log is read on, and what it has is left out.
- A step of an epoch before the last committed one is refused.

Rows that say the same in two partitions are two jobs. So a row that moves to another partition
would be a second job. A named run that is executed again refuses to write a row which an earlier
execution wrote from another partition: its table is divided otherwise now. Within one execution, if
a plan may move rows (a shuffle over data that changed), give the rows ids of their own.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import TypeVar, cast

import numpy as np
import redis

from rqueue.errors import ConfigError, LifecycleError, RedisUnavailable, ScriptError
from rqueue.model.ids import digits62, shortened
from rqueue.model.signing import Signer
from rqueue.model.terms import NORMAL_TERMS
from rqueue.protocol import commands
from rqueue.protocol.call import Arg
from rqueue.protocol.commands.enqueue import Accepted, Note
from rqueue.protocol.commands.write_log import write_logs, written_marks
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.put_buffer import BATCH_BYTES
from rqueue.spark.patience import patiently
from rqueue.spark.write.rows import Job
from rqueue.transport.redis_client import execute
from rqueue.transport.thread_connections import Flight, ThreadConnections

__all__ = ["Counts", "Sink", "Task"]

R = TypeVar("R")

MARK = 8
"""Bytes that stand for a row in a log."""

FLIGHTS = 8
"""Steps, of different queues, that are under way at once."""


@dataclass(frozen=True, slots=True)
class Task:
    """Which part of which write this is, and how it is to be done. Times are seconds.

    execution: of a named run, tells this execution from those before; "" where none is compared.
    """

    run: str
    epoch: int
    partition: int
    batch_size: int
    rows_per_second: float
    patience: float
    remember: float
    execution: str = ""


@dataclass(slots=True)
class Counts:
    """How rows ended: enqueued as new jobs; left out, because an earlier attempt had written
    them; refused, because the queue knew their ids."""

    jobs: int = 0
    repeated: int = 0
    known: int = 0


# -- ids -------------------------------------------------------------------------------------------


class _Ids:
    """Derives ids and marks of the rows that one task writes into one queue.

    An id is 22 letters and digits: 9 for 48 bits of the write, 13 for 72 of the row. A mark is the
    first 8 bytes of the latter.
    """

    __slots__ = ("_equal", "_person", "_prefix", "_salt", "_seen")

    def __init__(self, run: str, epoch: int, partition: int, queue: str) -> None:
        write = f"{run}\0{epoch}\0{queue}".encode()
        seed = blake2b(write, digest_size=32).digest()
        self._salt, self._person = seed[:16], seed[16:]
        part = blake2b(b"%d" % partition, digest_size=6, key=seed).digest()
        self._prefix = shortened(part)
        self._seen: set[bytes] = set()
        self._equal: dict[bytes, int] = {}

    def derive(self, body: bytes, terms: str) -> tuple[str, bytes]:
        """The id and the mark of a row that brings none."""
        said = body if terms is NORMAL_TERMS else terms.encode() + body
        digest = self._digest(said)
        mark = digest[:MARK]
        seen = self._seen
        if mark in seen:
            first = mark
            while mark in seen:
                number = self._equal[first] = self._equal.get(first, 0) + 1
                digest = self._digest(b"%d %b" % (number, said))
                mark = digest[:MARK]
        seen.add(mark)
        return self._prefix + digits62(int.from_bytes(digest[:9], "big"), 13), mark

    def mark(self, id_: str) -> bytes:
        """The mark of a row that brings its id."""
        return self._digest(id_.encode())[:MARK]

    def _digest(self, said: bytes) -> bytes:
        return blake2b(said, digest_size=16, salt=self._salt, person=self._person).digest()


# -- one queue -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Step:
    """Jobs that are enqueued together: [id, envelope, ...], and terms and marks of each."""

    flat: list[Arg] = field(default_factory=list)
    terms: list[str] = field(default_factory=list)
    marks: list[bytes] = field(default_factory=list)
    size: int = 0

    def without(self, written: set[bytes]) -> _Step:
        """The rest of it."""
        left = _Step()
        for index, mark in enumerate(self.marks):
            if mark not in written:
                left.flat += self.flat[2 * index : 2 * index + 2]
                left.terms.append(self.terms[index])
                left.marks.append(mark)
        return left


class _QueueWriter:
    """The rows that one task writes into one queue."""

    def __init__(self, sink: Sink, queue: str) -> None:
        self.sink = sink
        self.keys = sink.keys_of(queue)
        task = sink.task
        self.ids = _Ids(task.run, task.epoch, task.partition, queue)
        self.written: set[bytes] = set()
        self.length = 0
        self.step = _Step()
        self.sent: tuple[_Step, Flight[Accepted]] | None = None
        self.elsewhere = self.marks_elsewhere()
        self.read_on()

    def marks_elsewhere(self) -> np.ndarray | None:
        """The marks of rows that earlier executions wrote from other partitions, sorted."""
        task = self.sink.task
        if not task.execution:
            return None
        logs = execute(self.sink.client, write_logs(self.keys, task.run))
        others = [
            partition
            for (epoch, partition), execution in logs.items()
            if epoch == task.epoch and partition != task.partition and execution != task.execution
        ]
        calls = [written_marks(self.keys, task.run, task.epoch, one, 0) for one in others]
        found = b"".join(execute(self.sink.client, call) for call in calls)
        return np.sort(np.frombuffer(found, np.uint64)) if found else None

    def refuse_moved(self, step: _Step) -> None:
        """Raise ConfigError if an earlier execution wrote a row of the step elsewhere."""
        if self.elsewhere is None:
            return
        marks = np.frombuffer(b"".join(step.marks), np.uint64)
        at = np.searchsorted(self.elsewhere, marks)
        moved = self.elsewhere[np.minimum(at, len(self.elsewhere) - 1)] == marks
        if moved.any():
            raise ConfigError(
                "runId",
                f"run '{self.sink.task.run}' wrote rows of this partition from another one before:"
                " the table is divided otherwise now, and they would be enqueued twice. Divide it"
                " as it was (repartition), or give the rows ids of their own (idColumn)",
            )

    def read_on(self) -> None:
        """Learn what other attempts have written."""
        task = self.sink.task
        call = written_marks(self.keys, task.run, task.epoch, task.partition, self.length)
        more = execute(self.sink.client, call)
        self.written.update(more[at : at + MARK] for at in range(0, len(more), MARK))
        self.length += len(more)

    def add(self, job: Job) -> None:
        _, _, id_, body, terms = job
        if id_ is None:
            id_, mark = self.ids.derive(body, terms)
        else:
            mark = self.ids.mark(id_)
        if mark in self.written:
            self.sink.counts.repeated += 1
            return
        step = self.step
        step.flat += (id_, body)
        step.terms.append(terms)
        step.marks.append(mark)
        step.size += len(body)
        if len(step.marks) >= self.sink.task.batch_size or step.size >= BATCH_BYTES:
            self.send()

    def send(self) -> None:
        """Send what is there, after what is under way has arrived."""
        self.settle()
        step, self.step = self.step, _Step()
        if self.written:
            step = self.left_of(step)
        if step.marks:
            self.refuse_moved(step)
            self.sent = step, self.sink.begin(self, self.call(step))

    def settle(self) -> None:
        """Wait until what is under way is stored, by us or by another attempt."""
        if self.sent is None:
            return
        step, flight = self.sent
        self.sent = None
        sink = self.sink
        accepted: Accepted | None = None
        try:
            accepted = sink.finish(flight, self.keys.queue)
        except RedisUnavailable:
            pass  # repeated below: what was stored all the same is found in the log
        except ScriptError as refused:
            step = self.overtaken(step, refused)
        while accepted is None:
            if not step.marks:
                return
            try:
                accepted = sink.patiently(partial(sink.run, self.call(step), self.keys.queue))
            except ScriptError as refused:
                step = self.overtaken(step, refused)
        self.length += MARK * len(step.marks)
        sink.counts.jobs += accepted.accepted
        sink.counts.known += len(accepted.known)
        sink.pace(len(step.marks))

    def overtaken(self, step: _Step, refused: ScriptError) -> _Step:
        """The log has grown: read on; what is left of the step. Raises other refusals."""
        word, _, number = refused.reply.partition(" ")
        if word == "PASSED":
            task = self.sink.task
            raise LifecycleError(
                f"run '{task.run}' has committed epoch {number} to queue '{self.keys.queue}', and "
                f"this is epoch {task.epoch}: either this task is a straggler, and nothing is "
                "wrong, or the checkpoint of the stream was put back to an earlier state; then its "
                "rows may have been enqueued before. To enqueue them all the same, name another "
                "run with the option runId"
            ) from None
        if word != "WRITTEN":
            raise refused
        if int(number) < self.length:  # forgotten meanwhile: `remember` is over
            self.length = 0
        self.sink.patiently(self.read_on)
        return self.left_of(step)

    def left_of(self, step: _Step) -> _Step:
        left = step.without(self.written)
        self.sink.counts.repeated += len(step.marks) - len(left.marks)
        return left

    def call(self, step: _Step) -> commands.ScriptCall[Accepted]:
        task = self.sink.task
        keep_ms = round(task.remember * 1000)
        marks = b"".join(step.marks)
        log = task.run, task.epoch, task.partition, self.length
        note = Note(*log, keep_ms, marks, task.execution)
        flat = self.signed(step) if self.sink.signer else step.flat
        terms = step.terms[0]
        if step.terms.count(terms) == len(step.terms):
            return commands.enqueue_alike(self.keys, flat, terms, note=note)
        return commands.enqueue_flat(self.keys, flat, step.terms, note=note)

    def signed(self, step: _Step) -> list[Arg]:
        """Its jobs with signatures made now: an outage may have passed since they were packed."""
        signer = self.sink.signer
        assert signer is not None
        flat: list[Arg] = []
        for id_, body, terms in zip(step.flat[::2], step.flat[1::2], step.terms, strict=True):
            job, envelope = cast("str", id_), cast("bytes", body)
            flat += (job, signer.sign(self.keys.queue, job, envelope, terms))
        return flat


# -- all queues ------------------------------------------------------------------------------------


class Sink:
    """Takes the jobs of one partition, for whichever queues, and enqueues them in steps; the next
    step of a queue is packed while the one before is under way. `flush` stores the rest.

    client: of one server, or with `cluster` of a Redis Cluster. `keys_of` gives the keys of a
    queue. signer: signs envelopes.
    """

    def __init__(
        self,
        client: redis.Redis,
        keys_of: Callable[[str], QueueKeys],
        task: Task,
        signer: Signer | None = None,
        *,
        cluster: bool = False,
    ) -> None:
        self.client = client
        self.keys_of = keys_of
        self.task = task
        self.signer = signer
        self.counts = Counts()
        self._connections: ThreadConnections | None = None
        if not cluster:  # a connection would be a connection to one node of it
            timeout = client.connection_pool.connection_kwargs.get("socket_timeout")
            self._connections = ThreadConnections(client, timeout)
        self._writers: dict[str, _QueueWriter] = {}
        self._under_way: deque[_QueueWriter] = deque()
        self._free_at = time.monotonic()

    @property
    def queues(self) -> tuple[str, ...]:
        """The queues that rows were for."""
        return tuple(sorted(self._writers))

    def add(self, job: Job) -> None:
        """Enqueue a job, soon. Raises the tree of `rqueue.errors`."""
        writer = self._writers.get(job.queue)
        if writer is None:
            writer = self._writers[job.queue] = self.patiently(
                partial(_QueueWriter, self, job.queue)
            )
        writer.add(job)

    def flush(self) -> None:
        """Wait until all jobs that were added are stored. Raises the tree of `rqueue.errors`."""
        for writer in self._writers.values():
            writer.send()
        for writer in self._writers.values():
            writer.settle()

    def close(self) -> None:
        """Close the connections; what was not flushed may not be stored."""
        if self._connections is not None:
            self._connections.close()

    def begin(self, writer: _QueueWriter, call: commands.ScriptCall[R]) -> Flight[R]:
        """Send a writer's call, so that not too many are under way."""
        if self._connections is None:
            return Flight(call, None)
        if len(self._under_way) == FLIGHTS:
            self._under_way.popleft().settle()
        self._under_way.append(writer)
        return self._connections.begin(call)

    def finish(self, flight: Flight[R], queue: str) -> R:
        """The reply of a call that was begun."""
        if self._connections is None:
            return execute(self.client, flight.call, queue=queue)
        return self._connections.finish(flight, queue=queue)

    def run(self, call: commands.ScriptCall[R], queue: str) -> R:
        """The reply of a call."""
        if self._connections is None:
            return execute(self.client, call, queue=queue)
        return self._connections.run(call, queue=queue)

    def patiently(self, action: Callable[[], R]) -> R:
        """Do it; while Redis cannot be used now, again and again for `patience`."""
        return patiently(action, self.task.patience)

    def pace(self, rows: int) -> None:
        """Keep within `rows_per_second`."""
        if self.task.rows_per_second:
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + rows / self.task.rows_per_second
            time.sleep(self._free_at - now)
