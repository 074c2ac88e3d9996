"""Enqueues that wait until something else has happened: what integrations of databases hold back
until a transaction is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError, LifecycleError, QueueFull
from rqueue.model.cancellation import Cancellation
from rqueue.model.confirmation import Confirmation, stricter
from rqueue.model.job import JobState
from rqueue.protocol.commands.enqueue import BATCH, Put
from rqueue.protocol.job_packer import Batch, as_put
from rqueue.tasks.options import Options, at_once, refuses
from rqueue.tasks.request import JobRequest

if TYPE_CHECKING:
    from rqueue.client._async.job_handle import AsyncJobHandle

__all__ = ["HeldEnqueues", "HeldHandle", "Sender", "require_patient"]

R_co = TypeVar("R_co", covariant=True)
Listener = Callable[["HeldHandle[Any]"], object]


class Sender:
    """Who is to send what is held: it is known only as long as something else holds on to it, as a
    transaction does to what it is to call on its commit. None: nothing is known of it."""

    def __init__(self, sender: object | None = None) -> None:
        self._sender = None if sender is None else ref(sender)

    def unsent(self, what: str) -> LifecycleError:
        """The error for who waits for the result of what is held back: nothing could end it."""
        if self._sender is not None and self._sender() is None:
            return LifecycleError(
                f"{what} was never sent: its transaction was rolled back, or an earlier callback"
                " of its commit failed"
            )
        return LifecycleError(
            f"{what} is not sent yet: it is sent when its transaction is committed; wait for the"
            " result after that"
        )


def require_patient(options: Options, instead: str) -> None:
    """Raise ConfigError for a job that has to be refused at once or not at all: when it is sent,
    who enqueued it is not there any more. `instead`: what to do."""
    if name := at_once(options):
        problem = "a job that waits for a commit cannot be refused at once"
        raise ConfigError(name, f"{problem}; {instead}")
    if refuses(options):
        raise ConfigError("on_conflict", f"a job that waits for a commit cannot raise; {instead}")


class HeldHandle(JobHandle[R_co]):
    """The handle of a job that is held back. It has its id at once; `created` is None until the job
    is sent, and its state is unknown. What is cancelled before is never sent. `enqueued_ms`: when
    the queue took it in, ms since the epoch by Redis's clock, 0 until then."""

    __slots__ = ("_held", "enqueued_ms", "listener")

    def __init__(
        self, queue: Queue, id: str, held: HeldEnqueues, listener: Listener | None = None
    ) -> None:
        self._queue = queue
        self._held = held
        self.listener = listener
        self.enqueued_ms = 0
        self.id = id
        self.conflict = ""
        self.created = None
        self.handed_to = ""

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the result, as `JobHandle.result`. Raises LifecycleError while the job is not
        sent: nothing could end it."""
        self._held.require_sent(self)
        value: Any = super().result(timeout)
        result: R_co = value
        return result

    def states(self, timeout: float | None = None) -> Iterator[JobState]:
        """Its states, as `JobHandle.states`. Raises LifecycleError while the job is not sent."""
        self._held.require_sent(self)
        return super().states(timeout)

    def cancel(
        self,
        *,
        held: bool = True,
        running: bool = False,
        kill: bool = False,
        timeout: float | None = 0.0,
    ) -> Cancellation:
        """Cancel the job, as `JobHandle.cancel`."""
        if self._held.drop(self):
            return Cancellation.ENDED
        return super().cancel(held=held, running=running, kill=kill, timeout=timeout)


class HeldEnqueues:
    """Jobs of one queue: packed, with their ids, and stored when `send` is called, in the order in
    which they were added and together, hundreds in a step. `sender`: who calls it (`Sender`)."""

    def __init__(self, queue: Queue, sender: object | None = None) -> None:
        self.queue = queue
        self._sender = Sender(sender)
        self._batch: list[tuple[Put, bool]] = []
        self._handles: list[JobHandle[Any] | AsyncJobHandle[Any]] = []
        self._waits: list[float] = []
        self._confirm: Confirmation | None = None

    def __len__(self) -> int:
        return len(self._batch)

    def add(self, request: JobRequest, listener: Listener | None = None) -> HeldHandle[Any]:
        """Take in one job; `listener` is called with its handle when it is sent. Raises
        NotEncodable, InvalidName, and ConfigError for an `immediate` one, and one that is to raise
        where its unique key is another's: who would be refused is not there any more when it is
        sent."""
        handle: HeldHandle[Any] = HeldHandle(self.queue, self._packed(request), self, listener)
        self._handles.append(handle)
        return handle

    def add_for(self, request: JobRequest, handle: AsyncJobHandle[Any]) -> None:
        """Take in one job whose handle belongs to an asyncio client; the handle gets its id."""
        handle.id = self._packed(request)
        handle.created = None
        self._handles.append(handle)

    def _packed(self, request: JobRequest) -> str:
        require_patient(request.options, "pass on_commit=False")
        id_, body, own, options = self.queue._packer.pack(request)
        self._batch.append((as_put(id_, body, options), own))
        if options.max_wait is not None:
            self._waits.append(options.max_wait)
        self._confirm = stricter(self._confirm, self.queue._packer.confirmation(options))
        return id_

    def require_sent(self, handle: JobHandle[Any] | AsyncJobHandle[Any]) -> None:
        """Raise LifecycleError for a job that is held back: nothing could end it."""
        if handle.created is not None:
            return
        if any(one is handle for one in self._handles):
            raise self._sender.unsent(f"job {handle.id}")
        raise LifecycleError(
            f"job {handle.id} was not stored: it was cancelled before the commit, or enqueueing it"
            " on the commit failed"
        )

    def drop(self, handle: HeldHandle[Any]) -> bool:
        """Never send this job; False if it is not held here any more."""
        for index, one in enumerate(self._handles):
            if one is handle:
                del self._handles[index], self._batch[index]
                return True
        return False

    def send(self) -> None:
        """Store all of them; the handles learn what became of them, then the listeners. Raises the
        server errors and QueueFull: then what was not stored is held no longer either; NotConfirmed
        when all are stored."""
        batch, handles = self._batch, self._handles
        wait = max(self._waits) if self._waits else None
        confirm, unconfirmed = self._confirm, None
        self._batch, self._handles, self._waits, self._confirm = [], [], [], None
        queue = self.queue
        for start in range(0, len(batch), BATCH):
            part = batch[start : start + BATCH]
            signed = queue._packer.signed_puts([put for put, _ in part])
            jobs = [(put, own) for put, (_, own) in zip(signed, part, strict=True)]
            step = Batch(jobs, confirm)
            try:
                accepted = queue._run(step.call(queue.keys))
            except QueueFull as full:
                accepted = queue._in_pieces(step, full, wait)
            stored, missing = queue._handles(step, accepted)
            unconfirmed = unconfirmed or missing
            for handle, found in zip(handles[start : start + BATCH], stored, strict=True):
                handle.id, handle.created = found.id, found.created
                handle.handed_to, handle.conflict = found.handed_to, found.conflict
                if isinstance(handle, HeldHandle):
                    handle.enqueued_ms = accepted.now
        # all are stored by now, whatever a listener raises
        for handle in handles:
            if isinstance(handle, HeldHandle) and handle.listener is not None:
                handle.listener(handle)
        queue._require_confirmed(unconfirmed, [handle.id for handle in handles])
