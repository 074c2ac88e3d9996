"""What a consumer knows of itself, and the calls it makes: everything but the I/O.

`Consumer` and `AsyncConsumer` are this with a wire. It builds the calls, reads the replies, keeps
count of what is in these hands, and asks the credit manager, if there is one, how much that may be.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Sequence
from secrets import token_hex
from time import monotonic
from typing import Any

import orjson

from rqueue import store
from rqueue.codec import encode_result
from rqueue.credit import Credit, SharedCredit
from rqueue.errors import ConfigError, LifecycleError, NotRegistered, Undecodable
from rqueue.expect import expect_number, shown
from rqueue.job import GAVE_UP, Delivery
from rqueue.keys import QueueKeys
from rqueue.listener import Wake
from rqueue.names import check_consumer
from rqueue.store.consumers import Mode, Registered
from rqueue.store.settle import Pulled, Retried, Window

DEFAULT_LEASE_MS = 30_000

RECALL_MAX = 500
"""Jobs in hand that one recall names."""

NO_CREDIT = Window(0, 0)


def consumer_name(prefix: str = "") -> str:
    """A name nobody had before: host, process, and chance (H-12)."""
    host = socket.gethostname().split(".")[0]
    return f"{prefix or host}:{os.getpid()}:{token_hex(4)}"


class Subscription:
    """The state of one consumer; see `rqueue.consumer.Consumer`."""

    def __init__(
        self,
        keys: QueueKeys,
        *,
        name: str = "",
        jobs: int = 1,
        bytes: int = 0,
        credit: Credit | SharedCredit | None = None,
        priority: int = 0,
        mode: Mode = "acquire",
        lease_ms: int = DEFAULT_LEASE_MS,
        slots: int = 1,
        worker: str = "",
    ) -> None:
        self.keys = keys
        for setting, value, least in (("jobs", jobs, 0), ("bytes", bytes, 0), ("slots", slots, 1)):
            expect_number(setting, value, "a whole number", least=least, whole=True)
        expect_number("priority", priority, "a whole number", least=-(2**31), whole=True)
        if mode not in ("acquire", "browse"):
            raise ConfigError("mode", f"{shown(mode)} is neither 'acquire' nor 'browse'")
        if not (credit is None or isinstance(credit, SharedCredit) or hasattr(credit, "take")):
            raise ConfigError("credit", f"{shown(credit)} is not WindowCredit(...) or another kind")
        self.name = check_consumer(name) if name else consumer_name()
        self.credit: Credit | None = credit.join() if isinstance(credit, SharedCredit) else credit
        self.window = Window(jobs, bytes) if credit is None else NO_CREDIT
        self.priority = priority
        self.mode: Mode = mode
        self.lease_ms = lease_ms
        self.slots = slots
        self.worker = check_consumer(worker) if worker else self.name
        self.term = ""
        self.state = ""
        self.timer_ms = -1
        self._timer_from = 0.0
        self.refused: list[str] = []
        self.now = 0
        self._held: dict[str, int] = {}
        self._cursor = ""

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} {self.name!r} of queue {self.keys.queue!r}: {self.state or 'closed'}>"

    @property
    def held(self) -> int:
        """Jobs in its hands, as far as it knows."""
        return len(self._held)

    @property
    def held_bytes(self) -> int:
        """Bytes of the stored values of the jobs in its hands."""
        return sum(self._held.values())

    # -- life --------------------------------------------------------------------------------------

    def _joined(self) -> None:
        if not self.term:
            raise NotRegistered(self.name, queue=self.keys.queue)

    def _register_call(self) -> store.Call[Registered]:
        if self.term:
            raise LifecycleError(f"consumer '{self.name}' is registered")
        return store.register(
            self.keys,
            self.name,
            mode=self.mode,
            priority=self.priority,
            window=self._window(),
            lease_ms=self.lease_ms,
            slots=self.slots,
            worker=self.worker,
        )

    def _forget(self) -> None:
        """Its registration is over: nothing is in these hands any more."""
        self.term = self.state = ""
        if self.credit is not None and self._held:
            self.credit.restore(len(self._held), self.held_bytes)
        self._held.clear()

    # -- credit ------------------------------------------------------------------------------------

    def _window(self) -> Window:
        """The window to send now."""
        if self.credit is not None:
            self.window = self.credit.window(len(self._held), self.held_bytes)
        return self.window

    def _idle_window(self) -> Window | None:
        """After a pull that came back short: the smaller window to wait with, if so."""
        if self.credit is None or self.state != "interested":
            return None
        small = self.credit.idle(len(self._held), self.held_bytes)
        if small is not None:
            self.window = small
        return small

    def _narrow_window(self) -> Window | None:
        """Before jobs are settled without a pull: the window that the queue must know of first, or
        it could hand over what was not granted."""
        if self.credit is None or not self.credit.narrows or self.state == "not_interested":
            return None
        return self._window()

    def _reopen_window(self) -> Window | None:
        """After that: the window to be interested again with, if there is credit left."""
        if self.credit is None or not self.credit.narrows:
            return None
        window = self._window()
        return window if window.jobs > len(self._held) else None

    def _set_window(self, jobs: int, bytes: int) -> Window:
        if self.credit is not None:
            raise ConfigError("credit", "this consumer's window is its credit manager's: use grant")
        self.window = Window(jobs, bytes)
        return self.window

    def _grant(self, jobs: int, bytes: int) -> Window:
        if self.credit is not None:
            self.credit.add(jobs, bytes)
            return self._window()
        self.window = Window(self.window.jobs + jobs, self.window.bytes + bytes)
        return self.window

    def _no_credit(self) -> Window:
        if self.credit is not None:
            self.credit.clear()
        self.window = NO_CREDIT
        return self.window

    # -- what comes into these hands, and what leaves them -----------------------------------------

    def _keep(self, id_: str, size: int) -> None:
        self._held[id_] = size
        if self.credit is not None:
            self.credit.take(size)

    def _drop(self, id_: str) -> int:
        """Take a job out of the books; its size, 0 if it was not in them."""
        size = self._held.pop(id_, None)
        if size is None:
            return 0
        if self.credit is not None:
            self.credit.restore(1, size)
        return size

    def _take(self, pulled: Pulled, *, settled_only: bool = False) -> list[Delivery]:
        self.now, self.state, timer_ms, refused, flat = pulled
        if not settled_only:
            # a settle without a pull says nothing of the schedule: who watches it goes on
            self.timer_ms, self._timer_from = timer_ms, monotonic()
        self.refused = [id_.decode() for id_ in refused]
        jobs = _deliveries(flat)
        if self.credit is None:
            held = self._held
            for job in jobs:
                held[job.id] = len(job.value)
        else:
            for job in jobs:
                if job.id not in self._held:
                    self._keep(job.id, len(job.value))
        return jobs

    def _take_recalled(self, pulled: Pulled) -> list[Delivery]:
        """The queue said all that is in these hands: what it did not name is not."""
        named = set(map(bytes.decode, pulled.jobs[::2]))
        for id_ in [id_ for id_ in self._held if id_ not in named]:
            self._drop(id_)
        return self._take(pulled)

    def hear(self, wake: Wake) -> bool:
        """Take note of a wake-up; False if it says nothing new (a job a recall named before)."""
        job = wake.job
        if job is not None:
            if job.id in self._held:
                return False
            self._keep(job.id, len(job.value))
        elif wake.kind == "revoked":
            self._drop(wake.id)
        return True

    def _wait_s(self, timeout: float | None) -> float | None:
        """Seconds to wait: not beyond the next due job, where this consumer watches it."""
        if self.timer_ms < 0:
            return timeout
        due = max(0.0, self.timer_ms / 1000 - (monotonic() - self._timer_from))
        return due if timeout is None else min(timeout, due)

    def _settled(
        self,
        ack: Iterable[Delivery | str],
        done: Iterable[tuple[Delivery | str, Any]],
        retry: Iterable[Retried],
        reject: Iterable[tuple[Delivery | str, dict[str, Any]]],
        release: Iterable[Delivery | str],
        batch: bytes,
        rows: int,
    ) -> Settling:
        """Prepare a settle. Raises NotEncodable, and has changed nothing then."""
        kept: list[tuple[str, int | None, bytes]] = [
            (_id(job), None, encode_result(value)) for job, value in done
        ]
        buried = [(_id(job), orjson.dumps({"why": GAVE_UP, **cause})) for job, cause in reject]
        settling = Settling(
            [job if type(job) is str else job.id for job in ack],  # type: ignore[union-attr]
            kept,
            list(retry),
            buried,
            [job if type(job) is str else job.id for job in release],  # type: ignore[union-attr]
            batch,
            rows,
        )
        drop = self._drop if self.credit is not None else self._held_pop
        freed = 0
        for id_ in settling.ack:
            freed += drop(id_)
        for id_ in settling.release:
            freed += drop(id_)
        for id_, _, _ in kept:
            freed += drop(id_)
        for retried in settling.retry:
            freed += drop(_text(retried.id))
        for id_, _ in buried:
            freed += drop(id_)
        settling.freed = freed
        return settling

    def _held_pop(self, id_: str) -> int:
        return self._held.pop(id_, 0)

    def _settle_call(self, settling: Settling, window: Window | None) -> store.Call[Pulled]:
        return store.settle(
            self.keys,
            self.name,
            self.term,
            window,
            ack=settling.ack,
            done=settling.done,
            retry=settling.retry,
            reject=settling.reject,
            release=settling.release,
            freed=settling.freed,
            batch=settling.batch,
            rows=settling.rows,
        )

    def _pull_call(self, *, recall: bool) -> store.Call[Pulled]:
        return store.pull(self.keys, self.name, self.term, self._window(), recall=recall)

    def _stop_call(self) -> store.Call[Pulled]:
        """The call that gives the credit up. With it comes what was handed over and not heard of
        yet: nothing is handed over after it. A recall names a limited number of jobs, and empties
        the wake list: with more than that in hand, what was handed over stays to be heard."""
        self._no_credit()
        recall = len(self._held) < RECALL_MAX // 2
        return store.pull(self.keys, self.name, self.term, NO_CREDIT, recall=recall)

    def _stopped(self, pulled: Pulled) -> list[Delivery]:
        known = set(self._held)
        return [job for job in self._take(pulled) if job.id not in known]

    def _interest_call(self, window: Window) -> store.Call[str]:
        return store.interest(self.keys, self.name, self.term, window)

    def _browse_call(self) -> store.Call[Any]:
        return store.browse(self.keys, self._cursor, max(1, self._window().jobs))

    def _browsed(self, page: Any) -> list[Delivery]:
        self._cursor, self.now = page.cursor, page.now
        jobs: list[Delivery] = page.jobs
        return jobs

    def _cause(self, reason: str, kind: str) -> dict[str, Any]:
        return {"kind": kind, "type": "", "message": reason, "at": self.now, "worker": self.worker}


class Settling:
    """A settle that is prepared: ids, and what goes with them. `freed`: bytes of their values."""

    __slots__ = ("ack", "batch", "done", "freed", "reject", "release", "retry", "rows")

    def __init__(
        self,
        ack: list[str],
        done: list[tuple[str, int | None, bytes]],
        retry: list[Retried],
        reject: list[tuple[str, bytes]],
        release: list[str],
        batch: bytes,
        rows: int,
    ) -> None:
        self.ack = ack
        self.done = done
        self.retry = retry
        self.reject = reject
        self.release = release
        self.batch = batch
        self.rows = rows
        self.freed = 0


def retried(
    job: Delivery | str, delay: float, error: dict[str, Any] | None, place: str, charge: bool
) -> Retried:
    """A retry in `delay` seconds. place: as in `Consumer.retry`."""
    where = place or ("head" if delay > 0 else "old")
    return Retried(
        _id(job),
        round(delay * 1000),
        where,
        charge,
        orjson.dumps(error) if error else b"",
        None if isinstance(job, str) else _deliveries_before(job),
    )


def in_order(job: Delivery) -> tuple[int, bool, int, int]:
    """Sort key: the queue's order. Those that were due come first in their level, by due time."""
    return -job.level, not job.due_ms, job.due_ms, job.position


def _deliveries_before(job: Delivery) -> int | None:
    try:
        return job.deliveries
    except Undecodable:
        return None  # nothing to compare with


def _deliveries(flat: Sequence[bytes]) -> list[Delivery]:
    return [Delivery(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]


def _id(job: Delivery | str) -> str:
    return job if isinstance(job, str) else job.id


def _text(id_: str | bytes) -> str:
    return id_ if isinstance(id_, str) else id_.decode()
