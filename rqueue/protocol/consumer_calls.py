"""The state of a consumer that a caller drives, and the calls that it makes, without I/O.

`Consumer` and `AsyncConsumer` add a connection. This part checks options, keeps the history's rows,
asks the credit manager, if there is one, for the window, and knows what to do for the next job.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterable, Sequence
from secrets import token_hex
from time import monotonic
from typing import Any, Literal

import orjson

from rqueue.errors import ConfigError, LifecycleError
from rqueue.model.causes import GAVE_UP
from rqueue.model.connection_state import ConnectionStates
from rqueue.model.envelope import encode_result
from rqueue.model.expect import expect, expect_number, shown
from rqueue.model.job import Delivery
from rqueue.model.names import check_consumer
from rqueue.model.selector import selector
from rqueue.protocol import commands
from rqueue.protocol.browsing import Browsing, Start, afforded
from rqueue.protocol.commands.consumers import Registered
from rqueue.protocol.commands.read import Page
from rqueue.protocol.commands.settle import Pulled, Retried, Window
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.credit import Credit, SharedCredit
from rqueue.protocol.credit_window import NO_CREDIT
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies.selectors import labels_in
from rqueue.protocol.recall import Recall
from rqueue.protocol.settled import SettledRows
from rqueue.protocol.settling import Settling, id_of
from rqueue.protocol.wake import Wake

__all__ = ["BROWSE_MAX", "DEFAULT_LEASE_MS", "ConsumerCalls", "Mode", "consumer_name"]

DEFAULT_LEASE_MS = 30_000

Mode = Literal["acquire", "no_ack", "browse"]
"""What a consumer does with jobs: it holds them until it settles them, or takes each out of the
queue before it returns it, or looks and takes none (Q-24)."""

BROWSE_MAX = 500
"""Jobs of one page."""


def consumer_name(prefix: str = "") -> str:
    """A name that no consumer had before: host, process, and chance (H-12)."""
    host = socket.gethostname().split(".")[0]
    return f"{prefix or host}:{os.getpid()}:{token_hex(4)}"


class ConsumerCalls:
    """The calls of one consumer; see `rqueue.client._sync.consumer.Consumer`."""

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
        history: bool = True,
        start: Start = "head",
        auto_close: bool = False,
        select: str = "",
    ) -> None:
        for setting, value, least in (("jobs", jobs, 0), ("bytes", bytes, 0), ("slots", slots, 0)):
            expect_number(setting, value, "a whole number", least=least, whole=True)
        expect_number("priority", priority, "a whole number", least=-(2**31), whole=True)
        if mode not in ("acquire", "no_ack", "browse"):
            raise ConfigError("mode", f"{shown(mode)} is none of 'acquire', 'no_ack', 'browse'")
        expect("auto_close", auto_close, bool, "True or False")
        browsing = Browsing(start)
        if mode != "browse" and (start != "head" or auto_close):
            raise ConfigError("mode", "a start and auto_close are for mode='browse'")
        if not (credit is None or isinstance(credit, SharedCredit) or hasattr(credit, "take")):
            raise ConfigError("credit", f"{shown(credit)} is not WindowCredit(...) or another kind")
        called = check_consumer(name) if name else consumer_name()
        self._state = ConsumerState(
            keys,
            worker=check_consumer(worker) if worker else called,
            window=Window(jobs, bytes) if credit is None else NO_CREDIT,
            credit=credit.join() if isinstance(credit, SharedCredit) else credit,
        )
        self._state.name = called
        self.priority = priority
        self.mode: Mode = mode
        self.lease_ms = lease_ms
        self.slots = slots
        self.select = selector(select) if select else None
        """What it selects; None: all."""
        self.connection = ConnectionStates(lease_ms / 1000)
        """Whether Redis is reached, and listeners that are called when that changes (C-29)."""
        self.rejoined = 0
        """How often its lease had ended and it joined again."""
        self._rows = (
            SettledRows(keys.queue, self._state.worker, self._state.clock) if history else None
        )
        self._unread: deque[Delivery] = deque()
        """Held, and not returned to the caller yet: what comes next."""
        self._lost = False
        """The registration ended without being asked to."""
        self._view = browsing
        """Of a browser: what it has seen."""
        self.auto_close = auto_close
        self.ended_by: Literal["", "empty", "credit", "paused"] = ""
        """Why the last flush or drain ended: nothing was left that it could take, its credit was
        used up, or the queue is paused."""
        self._leaving = False
        """It was cancelled, and leaves once what it holds is settled."""

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} {self.name!r} of queue {self.keys.queue!r}: {self.state or 'closed'}>"

    @property
    def keys(self) -> QueueKeys:
        """Of its queue."""
        return self._state.keys

    @property
    def name(self) -> str:
        """Of this registration: one that joins again has another one."""
        return self._state.name

    @property
    def worker(self) -> str:
        """The worker that it belongs to, in the history."""
        return self._state.worker

    @property
    def term(self) -> str:
        """The fencing number of its registration; "" = it has none."""
        return self._state.term

    @property
    def state(self) -> str:
        """The list it is in: interested, notified, not_interested, browsers; "" = none."""
        return self._state.state

    @property
    def window(self) -> Window:
        """What it may hold in all, as it said last."""
        return self._state.window

    @property
    def credit(self) -> Credit | None:
        """Its manager of credit."""
        return self._state.credit

    @property
    def timer_ms(self) -> int:
        """Until the next due job, where this consumer is the one to pull then, else -1."""
        return self._state.timer_ms

    @property
    def now(self) -> int:
        """When the last reply was made, ms, Redis's clock."""
        return self._state.now

    @property
    def held_bytes(self) -> int:
        """Bytes of the stored values of the jobs that it holds."""
        return self._state.held_bytes

    @property
    def held(self) -> int:
        """Jobs that it holds, as far as it knows."""
        return len(self._state.unsettled)

    @property
    def refused(self) -> list[str]:
        """Ids of the last settle that it did not hold any more."""
        return [id_.decode() for id_ in self._state.stale]

    @property
    def more(self) -> bool:
        """Whether work waits, as far as it knows: pull again. (`state` is the list it is in; it is
        notified until it has pulled all there is.)"""
        return self._state.state == "notified"

    # -- life --------------------------------------------------------------------------------------

    def _register_call(self) -> commands.ScriptCall[Registered]:
        return self._state.register_call(
            self._state.next_window(),
            mode="browse" if self.mode == "browse" else "acquire",
            priority=self.priority,
            lease_ms=self.lease_ms,
            slots=self.slots,
            select=None if self.mode == "browse" else self.select,
        )

    def _forget(self) -> None:
        """The registration is over: it holds nothing any more."""
        self._state.forget()
        self._unread.clear()
        if self._rows is not None:
            self._rows.clear()

    # -- what came ---------------------------------------------------------------------------------

    def _take(self, pulled: Pulled, *, asked: bool = True) -> list[Delivery]:
        return self._got(self._state.took(pulled, asked=asked))

    def _take_recalled(self, pulled: Pulled, recall: Recall) -> list[Delivery]:
        """All that it holds, in the order in which it was taken."""
        self._unread.clear()
        return self._got(self._state.recalled(pulled, recall))

    def _got(self, flat: Sequence[bytes]) -> list[Delivery]:
        jobs = [Delivery(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]
        if self._rows is not None:
            self._rows.got(jobs)
        return jobs

    def _hear(self, wakes: Iterable[Wake]) -> None:
        """Keep what was delivered directly for the next `receive`."""
        self._unread.extend(job for wake in wakes if (job := wake.job) is not None)

    @property
    def _given(self) -> list[str]:
        """Ids of the unsettled jobs that were returned to the caller, in the order of delivery."""
        unread = {job.id for job in self._unread}
        return [id_ for id_ in map(bytes.decode, self._state.unsettled) if id_ not in unread]

    def _take_unread(self) -> list[Delivery]:
        jobs = list(self._unread)
        self._unread.clear()
        return jobs

    def hear(self, wake: Wake) -> bool:
        """Take note of a wake-up; False if it says nothing new (a job a recall named before)."""
        job = wake.job
        if job is not None:
            if self._state.delivered(wake.element) is None:
                return False
            if self._rows is not None:
                self._rows.got([job])
        elif wake.kind == "revoked":
            self._state.drop(wake.id.encode())
            if self._rows is not None:
                self._rows.gone([wake.id])
            if self._unread:
                self._unread = deque(job for job in self._unread if job.id != wake.id)
        elif wake.kind == "reconnected":
            self._state.reconnected()
            self.connection.breaks()
        elif self.mode == "browse":
            self._view.more = True
        elif wake.kind != "shards":
            self._state.notified()
        return True

    def _wait_s(self, timeout: float | None) -> float | None:
        """Seconds to wait: not beyond the next due job, where this consumer watches it."""
        if self._state.timer_ms < 0:
            return timeout
        due = max(0.0, self._state.timer_at - monotonic())
        return due if timeout is None else min(timeout, due)

    # -- what is settled ---------------------------------------------------------------------------

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
            (id_of(job), None, encode_result(value)) for job, value in done
        ]
        rejected = [(id_of(job), orjson.dumps({"why": GAVE_UP, **cause})) for job, cause in reject]
        settling = Settling(
            [job if type(job) is str else job.id for job in ack],  # type: ignore[union-attr]
            kept,
            list(retry),
            rejected,
            [job if type(job) is str else job.id for job in release],  # type: ignore[union-attr]
            batch,
            rows,
        )
        self._state.tight = False
        if self._rows is not None:
            if not batch:
                settling.batch, settling.rows = self._rows.pack(
                    settling.ack, kept, settling.retry, rejected
                )
            settling.known = self._rows.gone(settling.ids())
        settling.jobs = {
            id_: value
            for id_ in map(str.encode, settling.ids())
            if (value := self._state.drop(id_)) is not None
        }
        settling.freed = sum(map(len, settling.jobs.values()))
        return settling

    def _unsettle(self, settling: Settling) -> None:
        self._state.unsettle(settling.jobs)
        if self._rows is not None:
            self._rows.again(settling.known)

    def _settle_call(
        self, settling: Settling, window: Window | None
    ) -> commands.ScriptCall[Pulled]:
        return commands.settle(
            self._state.keys,
            self._state.name,
            self._state.term,
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

    def _pull_call(self, window: Window) -> commands.ScriptCall[Pulled]:
        return commands.pull(self._state.keys, self._state.name, self._state.term, window)

    # -- a browser: it does not hold what it sees, so its credit comes back at once, but for that
    # of a grant, which is used up --

    def _browse_call(self, most: int = BROWSE_MAX) -> commands.ScriptCall[Page]:
        limit = min(most, BROWSE_MAX, self._state.next_window().jobs)
        return commands.browse(self._state.keys, self._view.cursor, limit)

    def _affords(self, page: Page) -> int:
        """How many jobs of a page its bytes allow; the first always fits (X-11)."""
        return afforded(page.jobs, self._state.next_window().bytes)

    def _browsed(self, page: Page) -> list[Delivery]:
        self._state.now = page.now
        jobs = self._view.showed(page)
        if self.select is not None:
            jobs = [job for job in jobs if self.select.matches(labels_in(job.body))]
        if self._state.credit is not None:
            sizes = [len(job.value) for job in jobs]
            for size in sizes:
                self._state.credit.take(size)
            self._state.credit.restore(len(sizes), sum(sizes))
        return jobs

    # -- one job after the other -------------------------------------------------------------------

    def _next_step(self) -> Literal["pull", "wait", "full", "over"]:
        """What a consumer does that has given out all that it holds. full: its window is, until
        something is settled. over: it has no credit, nothing will come."""
        if self._state.doubtful or self._state.state == "notified":
            return "pull"
        if self.mode == "browse":
            if self._state.state != "browsers":
                return "over"
            return "pull" if self._view.more else "wait"
        if self._state.state == "interested":
            return "pull" if self._state.timer_ms >= 0 and self._wait_s(None) == 0 else "wait"
        window = self._state.next_window()
        if window.jobs > len(self._state.unsettled):
            return "wait" if self._state.tight else "pull"
        if not window.jobs or (self._state.credit is not None and self._state.credit.narrows):
            return "over"
        return "full"

    def _full(self) -> LifecycleError:
        return LifecycleError(
            f"consumer '{self.name}' holds {self.held} unsettled jobs, all that its window allows:"
            " settle one before you ask for the next, or give it a larger window"
        )

    def _cause(self, reason: str, kind: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "type": "",
            "message": reason,
            "at": self._state.now,
            "worker": self._state.worker,
        }
