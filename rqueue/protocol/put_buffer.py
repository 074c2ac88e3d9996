"""The buffer of background puts and its book-keeping, without I/O, threads or event loops.

Jobs leave it in the order in which they came, in batches; a batch stays until it is confirmed or
refused, so that it can be sent again after an outage: with the same ids, so nothing is doubled.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

from rqueue.errors import (
    ConfigError,
    NotConfirmed,
    QueueFull,
    RedisUnavailable,
    ServerError,
    ShardsChanged,
)
from rqueue.logs import logger
from rqueue.model.confirmation import Confirmation, stricter
from rqueue.model.expect import expect_number, misfit, shown
from rqueue.model.terms import NORMAL_TERMS
from rqueue.protocol import commands
from rqueue.protocol.call import Arg
from rqueue.protocol.commands.enqueue import BATCH_MAX, Accepted, Put
from rqueue.protocol.error_mapping import unsure
from rqueue.protocol.job_packer import JobPacker, terms_of
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.room_wait import RoomWait, piece_of
from rqueue.protocol.twin_ids import another_id
from rqueue.tasks.options import Options, at_once, refuses
from rqueue.tasks.request import JobRequest
from rqueue.text.numbers import many

__all__ = ["ErrorListener", "Item", "PutBuffer", "PutListeners", "PutTarget", "Refused", "backoff"]

Refused = dict[Exception, list["Item"]]
"""Jobs that cannot be stored, by the reason."""

ErrorListener = Callable[[Exception, list[Put]], object]

log = logger("rqueue")

BATCH = 500
LINGER_S = 0.003
LIMIT = 10_000
LIMIT_BYTES = 64 * 1024**2
CLOSE_S = 5.0

BATCH_BYTES = 4 * 1024**2
"""A batch ends when its jobs have so many bytes."""


class PutTarget(Protocol):
    """A handle, as the buffer sees it."""

    id: str
    created: bool | None
    conflict: str
    error: Exception | None
    number: int


class Item(NamedTuple):
    """One job in the buffer, not signed yet. `own`: its id was made here; `terms`: see
    `rqueue.model.terms`."""

    handle: PutTarget
    body: bytes
    terms: str
    own: bool
    confirm: Confirmation | None

    def put(self) -> Put:
        """The job as `Queue.enqueue_puts` takes it."""
        return Put.of_terms(self.handle.id, self.body, self.terms)


def backoff(attempt: int) -> float:
    """Seconds to wait after the n-th failure in a row: 50 ms, doubling up to 1 s."""
    return float(min(1.0, 0.05 * 2 ** min(attempt - 1, 10)))


class PutListeners:
    """The listeners of one putter. Their exceptions are logged: no caller waits for them."""

    def __init__(self, queue: str, on_error: ErrorListener | None) -> None:
        self._queue = queue
        self.stored: list[Callable[[Any], object]] = []
        self.failed: list[ErrorListener] = []
        if on_error is not None:
            self.add_failed(on_error)

    def add_failed(self, listener: ErrorListener) -> None:
        """One more for jobs that cannot be stored. Raises ConfigError where it could not be called:
        that would show when it is needed, and those jobs would be lost."""
        if not callable(listener):
            raise ConfigError("on_error", f"{shown(listener)} is no function")
        if problem := misfit(listener, ["error", "puts"]):
            raise ConfigError("on_error", f"{problem}; write def on_error(error, puts)")
        self.failed.append(listener)

    def notify_stored(self, batch: list[Item]) -> None:
        """These are stored: each of them, to each listener, in order."""
        for item in batch:
            for listener in tuple(self.stored):
                try:
                    listener(item.handle)
                except Exception:
                    log.exception("put listener %s failed for job %s", listener, item.handle.id)

    def notify_failed(self, error: Exception, batch: list[Item]) -> list[Put]:
        """These cannot be stored; returns them as the error listeners get them."""
        puts = [item.put() for item in batch]
        if puts and not self.failed:
            text = "%s for queue %s could not be stored (the first is %s): %s"
            log.error(text, many(len(puts), "job"), self._queue, puts[0].id, error)
        for listener in tuple(self.failed) if puts else ():
            try:
                listener(error, puts)
            except Exception:
                log.exception("error listener %s failed for %s", listener, many(len(puts), "job"))
        return puts


class PutBuffer:
    """Jobs that wait to be stored: `added` so far, `finished` of them (stored or refused)."""

    def __init__(
        self, keys: QueueKeys, packer: JobPacker, *, batch: int, limit: int, limit_bytes: int
    ) -> None:
        for setting, value in (("batch", batch), ("limit", limit), ("limit_bytes", limit_bytes)):
            expect_number(setting, value, "a whole number", whole=True)
        if not 1 <= batch <= BATCH_MAX:
            raise ConfigError("batch", f"{batch!r} is not from 1 to {BATCH_MAX} jobs")
        if limit < 1 or limit_bytes < 1:
            raise ConfigError("limit", "a buffer has room for at least one job")
        self._keys = keys
        self._packer = packer
        self.batch = batch
        self.limit = limit
        self.limit_bytes = limit_bytes
        self.waiting: deque[Item] = deque()
        self.sending: list[Item] = []
        self.bytes = 0
        self.added = 0
        self.finished = 0
        self.failed = 0
        self.closed = False
        self.apart = False
        """Whether the queue is spread: jobs go to its shards, each where it belongs."""
        self._lost: ServerError | None = None
        self._unconfirmed: NotConfirmed | None = None
        self._told_full = False
        self._memo: tuple[Options | None, str, Confirmation | None] = (None, "", None)

    @property
    def pending(self) -> int:
        """Jobs that are neither stored nor refused."""
        return self.added - self.finished

    def item(self, handle: PutTarget, request: JobRequest) -> Item:
        """Pack one job; the arguments may change afterwards. Raises NotEncodable."""
        id_, body, own, options = self._packer.pack(request)
        handle.id = id_
        known, terms, confirm = self._memo  # read at once: threads share it
        if options is not known:
            if name := at_once(options):
                raise ConfigError(name, "a background put cannot be refused at once")
            if refuses(options):
                raise ConfigError("on_conflict", "a background put cannot raise where it is made")
            terms = terms_of(options)
            confirm = self._packer.confirmation(options)
            self._memo = options, terms, confirm
        return Item(handle, body, terms, own, confirm)

    def has_room(self, size: int) -> bool:
        """Whether a job of `size` bytes may be added: an empty buffer takes any job."""
        pending = self.added - self.finished
        return pending < self.limit and (not pending or self.bytes + size <= self.limit_bytes)

    def add(self, item: Item) -> int:
        """Append a job; returns how many wait to be sent now."""
        self.added += 1
        item.handle.number = self.added
        self.bytes += len(item.body)
        self.waiting.append(item)
        return len(self.waiting)

    def next_batch(self) -> bool:
        """Make the oldest jobs the batch to be sent, unless there is one; False if none is left."""
        if not self.sending:
            waiting, batch, size = self.waiting, self.sending, 0
            while waiting and len(batch) < self.batch and (not batch or size < BATCH_BYTES):
                item = waiting.popleft()
                size += len(item.body)
                batch.append(item)
        return bool(self.sending)

    def shrink(self, full: QueueFull) -> bool:
        """Where only a part of the batch fits into a bounded queue, make that part the batch; the
        rest comes after it. Whether it is another batch now."""
        fits = 0 if full.waits else full.room
        if full.waits and full.never:
            fits = piece_of(full, [len(item.body) for item in self.sending])
        if not 0 < fits < len(self.sending):
            return False
        self.waiting.extendleft(reversed(self.sending[fits:]))
        del self.sending[fits:]
        return True

    def call(self) -> commands.ScriptCall[Accepted]:
        """The call that stores the batch."""
        flat: list[Arg] = []
        alike = True
        signed = self._packer.signed
        wanted: Confirmation | None = None
        for handle, body, terms, _, confirm in self.sending:
            flat += (handle.id, signed(handle.id, body, terms))
            if terms != NORMAL_TERMS:
                alike = False
            if confirm is not None:
                wanted = stricter(wanted, confirm)
        if alike:
            call = commands.enqueue_alike(self._keys, flat)
        else:
            call = commands.enqueue_flat(self._keys, flat, [one.terms for one in self.sending])
        return call if wanted is None else call._replace(confirm=wanted)

    def room_wait(self, full: QueueFull, patience: float | None) -> RoomWait:
        """The batch's wait for room in a bounded queue, which lasts as long as it takes. Raises
        QueueFull where it is not to be waited for."""
        wait = RoomWait(self._keys, self.call(), full, math.inf, patience)
        if not self._told_full:
            self._told_full = True
            log.warning(
                "puts into queue %s are in the background, and wait here for room in it: it is "
                "bounded to %s, and its producers wait",
                self._keys.queue,
                f"{full.limit:,} jobs" if full.limit else f"{full.limit_bytes:,} bytes",
            )
        return wait

    def interrupted(self, error: Exception) -> None:
        """The batch was sent, and it is not known whether it was stored: it is sent again."""
        if self._lost is None and isinstance(error, ServerError) and error.outcome_unknown:
            self._lost = error

    def require_confirmed(self, accepted: Accepted) -> None:
        """Raise NotConfirmed where the batch is stored, and not confirmed as its jobs want it."""
        if accepted.unconfirmed is not None:
            ids = tuple(item.handle.id for item in self.sending)
            raise accepted.unconfirmed.error(self._keys.queue, ids)

    def repeats(self, error: Exception) -> bool:
        """Whether the batch is to be sent again, later: after what passes by itself. A server that
        refuses to confirm it goes on to do so."""
        if isinstance(error, NotConfirmed):
            self._unconfirmed = error
            return not error.reason
        if self.apart and isinstance(error, QueueFull | ShardsChanged):
            return True  # what a shard refuses for good comes another way
        return isinstance(error, RedisUnavailable)

    def confirm_apart(self, refused: Mapping[int, Exception]) -> tuple[list[Item], Refused]:
        """The jobs of the batch are stored in the shards of the queue, but for those that were
        refused there, by their places; returns the ones and the others."""
        stored: list[Item] = []
        others: Refused = {}
        for place, item in enumerate(self.sending):
            if (error := refused.get(place)) is None:
                stored.append(item)
            else:
                item.handle.error = error
                others.setdefault(error, []).append(item)
        self.failed += len(refused)
        self._finish()
        return stored, others

    def confirm(self, accepted: Accepted) -> list[Item]:
        """The batch is stored; returns it."""
        batch, twins = self.sending, []
        if self._lost is None and self._unconfirmed is None:
            for index in accepted.known:
                item = batch[index]
                if item.own:
                    twins.append(item)
                item.handle.created = item.own
        for other in accepted.answered:
            handle = batch[other.place].handle
            handle.id, handle.created, handle.conflict = other.id, False, other.state
        self._finish()
        if not twins:
            return batch
        # another process made the same ids: these jobs go again under others
        for item in reversed(twins):
            item.handle.id = another_id(item.handle.id, self._keys.queue)
            self.bytes += len(item.body)
            self.waiting.appendleft(item)
        self.finished -= len(twins)
        return [item for item in batch if item not in twins]

    def reason(self, error: Exception) -> Exception:
        """Why the batch cannot be stored: where an answer to it was lost, it may be stored; where
        it was not confirmed, it is."""
        if self._unconfirmed is not None:
            return self._unconfirmed
        if self._lost is not None and isinstance(error, ServerError):
            return unsure(self._lost, error)
        return error

    def refuse(self, error: Exception) -> list[Item]:
        """The batch cannot be stored, now or later; returns it."""
        batch = self.sending
        for item in batch:
            item.handle.error = error
        self.failed += len(batch)
        self._finish()
        return batch

    def _finish(self) -> None:
        self.bytes -= sum([len(item.body) for item in self.sending])
        self.finished += len(self.sending)
        self.sending = []
        self._lost = self._unconfirmed = None

    def give_up(self, error: Exception) -> list[Item]:
        """Refuse all that is left: the time to store it is over."""
        self.sending += self.waiting
        self.waiting.clear()
        return self.refuse(error)

    def forget(self) -> None:
        """In a forked child: what waits here is the parent's to store."""
        self.waiting.clear()
        self.sending = []
        self.bytes = 0
        self.finished = self.added
        self._lost = None
