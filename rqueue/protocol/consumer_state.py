"""The state of a consumer and the calls that it makes, without I/O.

`Consumer` and `AsyncConsumer` add a connection. This part builds the calls, reads the replies,
counts the jobs that are held, and asks the credit manager, if there is one, for the window.
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

from rqueue.errors import ConfigError, LifecycleError, NotRegistered
from rqueue.model.envelope import encode_result
from rqueue.model.expect import expect_number, shown
from rqueue.model.job import GAVE_UP, Delivery
from rqueue.model.job_order import position_of
from rqueue.model.names import check_consumer
from rqueue.protocol import commands
from rqueue.protocol.commands.consumers import Mode, Registered
from rqueue.protocol.commands.read import Page
from rqueue.protocol.commands.settle import Pulled, Retried, Window
from rqueue.protocol.credit import Credit, SharedCredit
from rqueue.protocol.credit_window import NO_CREDIT, CreditWindow
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.recall import Recall
from rqueue.protocol.settled import SettledRows
from rqueue.protocol.settling import Settling, id_of, text_of
from rqueue.protocol.wake import Wake

DEFAULT_LEASE_MS = 30_000

BROWSE_MAX = 500
"""Jobs of one page."""


def consumer_name(prefix: str = "") -> str:
    """A name that no consumer had before: host, process, and chance (H-12)."""
    host = socket.gethostname().split(".")[0]
    return f"{prefix or host}:{os.getpid()}:{token_hex(4)}"


class ConsumerState(CreditWindow):
    """The state of one consumer; see `rqueue.client._sync.consumer.Consumer`."""

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
        self._token = token_hex(8)
        """Proves that this consumer registered, where the reply was lost."""
        self.term = ""
        self.state = ""
        self.timer_ms = -1
        self._timer_from = 0.0
        self.refused: list[str] = []
        self.now = 0
        self._held: dict[str, int] = {}
        self._rows = SettledRows(keys.queue, self.worker) if history else None
        self._unread: deque[Delivery] = deque()
        """Held, and not returned to the caller yet: what comes next."""
        self._doubtful = False
        """A reply or a wake-up may be lost: what is held has to be asked for."""
        self._lost = False
        """The registration ended without being asked to."""
        self.rejoined = 0
        """How often its lease had ended and it joined again."""
        self._tight = False
        """The next job does not fit into the bytes left: a wake-up follows when it is gone."""
        self._recalled_to = 0
        """Last position that a recall named: a direct delivery up to it, if read later, is old."""
        self._asked = b""
        """The last job a recall was made for."""
        self._look = True
        """Of a browser: there may be something that it has not seen."""
        self._cursor = ""

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} {self.name!r} of queue {self.keys.queue!r}: {self.state or 'closed'}>"

    @property
    def held(self) -> int:
        """Jobs that it holds, as far as it knows."""
        return len(self._held)

    @property
    def more(self) -> bool:
        """Whether work waits, as far as it knows: pull again. (`state` is the list it is in; it is
        notified until it has pulled all there is.)"""
        return self.state == "notified"

    # -- life --------------------------------------------------------------------------------------

    def _joined(self) -> None:
        if not self.term:
            raise NotRegistered(self.name, queue=self.keys.queue)

    def _register_call(self) -> commands.ScriptCall[Registered]:
        if self.term:
            raise LifecycleError(f"consumer '{self.name}' is registered")
        return commands.register(
            self.keys,
            self.name,
            mode=self.mode,
            priority=self.priority,
            window=self._window(),
            lease_ms=self.lease_ms,
            slots=self.slots,
            worker=self.worker,
            token=self._token,
        )

    def _forget(self) -> None:
        """Its registration is over: it holds nothing any more."""
        self.term = self.state = ""
        self._unread.clear()
        self._doubtful = self._tight = False
        self._recalled_to, self._asked = 0, b""
        if self.credit is not None and self._held:
            self.credit.restore(len(self._held), self.held_bytes)
        self._held.clear()
        if self._rows is not None:
            self._rows.clear()

    # -- what is held, and what is not any more ----------------------------------------------------

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
        self.now, self.state, timer_ms, refused, _, flat = pulled
        if not settled_only:
            # a settle without a pull says nothing of the schedule: its watcher goes on
            self.timer_ms, self._timer_from = timer_ms, monotonic()
            self._tight = self.state == "not_interested"
        self.refused = [id_.decode() for id_ in refused]
        jobs = _deliveries(flat)
        if self._rows is not None:
            self._rows.read_clock(self.now)
            self._rows.got(jobs)
        if self.credit is None:
            held = self._held
            for job in jobs:
                held[job.id] = len(job.value)
        else:
            for job in jobs:
                if job.id not in self._held:
                    self._keep(job.id, len(job.value))
        return jobs

    def _hear(self, wakes: Iterable[Wake]) -> None:
        """Keep what was delivered directly for the next `receive`."""
        self._unread.extend(job for wake in wakes if (job := wake.job) is not None)

    def _take_unread(self) -> list[Delivery]:
        jobs = list(self._unread)
        self._unread.clear()
        return jobs

    def _overtakes(self, pulled: Pulled) -> bool:
        """Whether these jobs come behind one that was delivered directly and not read yet: then
        what is held has to be asked for, or they would be begun before it (X-25)."""
        behind = pulled.behind
        return bool(behind) and behind != self._asked and behind.decode() not in self._held

    def _take_recalled(self, pulled: Pulled, recall: Recall) -> list[Delivery]:
        """The queue named all that this consumer holds, and nothing else is held. Returns what it
        named, in the order in which it was taken."""
        pulled = pulled._replace(jobs=recall.jobs)
        named = set(map(bytes.decode, pulled.jobs[::2]))
        for id_ in [id_ for id_ in self._held if id_ not in named]:
            self._drop(id_)
        self._doubtful = False
        self._unread.clear()
        jobs = self._take(pulled)
        # a job that is delivered after this has a later position
        self._recalled_to = max([self._recalled_to, *map(position_of, jobs)])
        return jobs

    def hear(self, wake: Wake) -> bool:
        """Take note of a wake-up; False if it says nothing new (a job a recall named before)."""
        job = wake.job
        if job is not None:
            if job.id in self._held or job.position <= self._recalled_to:
                return False
            self._keep(job.id, len(job.value))
            if self._rows is not None:
                self._rows.got([job])
            if self.state == "interested":
                full = len(self._held) >= self.window.jobs
                self.state = "not_interested" if full else "notified"
        elif wake.kind == "revoked":
            self._drop(wake.id)
            if self._rows is not None:
                self._rows.gone([wake.id])
            if self._unread:
                self._unread = deque(job for job in self._unread if job.id != wake.id)
        elif wake.kind == "reconnected":
            # what was on its way over the lost connection never comes
            self._doubtful, self._recalled_to = True, 0
        elif self.mode == "browse":
            self._look = True
        else:
            self.state = "notified"
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
        self._tight = False
        if self._rows is not None:
            if not batch:
                settling.batch, settling.rows = self._rows.pack(
                    settling.ack, kept, settling.retry, rejected
                )
            self._rows.gone(settling.release)
        drop = self._drop if self.credit is not None else self._held_pop
        freed = 0
        for id_ in settling.ack:
            freed += drop(id_)
        for id_ in settling.release:
            freed += drop(id_)
        for id_, _, _ in kept:
            freed += drop(id_)
        for retried in settling.retry:
            freed += drop(text_of(retried.id))
        for id_, _ in rejected:
            freed += drop(id_)
        settling.freed = freed
        return settling

    def _held_pop(self, id_: str) -> int:
        return self._held.pop(id_, 0)

    def _settle_call(
        self, settling: Settling, window: Window | None
    ) -> commands.ScriptCall[Pulled]:
        return commands.settle(
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

    def _pull_call(
        self, window: Window, recall: Recall | None = None
    ) -> commands.ScriptCall[Pulled]:
        start = None if recall is None else recall.start
        return commands.pull(self.keys, self.name, self.term, window, recall=start)

    def _interest_call(self, window: Window) -> commands.ScriptCall[str]:
        return commands.interest(self.keys, self.name, self.term, window)

    # -- a browser: it does not hold what it sees, so its credit comes back at once, but for that
    # of a grant, which is used up --

    def _browse_call(self, most: int = BROWSE_MAX) -> commands.ScriptCall[Page]:
        limit = min(most, BROWSE_MAX, self._window().jobs)
        return commands.browse(self.keys, self._cursor, limit)

    def _affords(self, page: Page) -> int:
        """How many jobs of a page its bytes allow; the first always fits (X-11)."""
        room, total = self._window().bytes, 0
        for count, job in enumerate(page.jobs):
            total += len(job.value)
            if count and 0 < room < total:
                return count
        return len(page.jobs)

    def _browsed(self, page: Page) -> list[Delivery]:
        self._look = len(page.jobs) >= min(BROWSE_MAX, self.window.jobs) or self.window.bytes > 0
        self._look = self._look and bool(page.jobs)
        self._cursor, self.now = page.cursor, page.now
        if self.credit is not None:
            sizes = [len(job.value) for job in page.jobs]
            for size in sizes:
                self.credit.take(size)
            self.credit.restore(len(sizes), sum(sizes))
        return page.jobs

    # -- one job after the other -------------------------------------------------------------------

    def _next_step(self) -> Literal["pull", "wait", "full", "over"]:
        """What a consumer does that has given out all that it holds. full: its window is, until
        something is settled. over: it has no credit, nothing will come."""
        if self._doubtful or self.state == "notified":
            return "pull"
        if self.mode == "browse":
            if self.state != "browsers":
                return "over"
            return "pull" if self._look else "wait"
        if self.state == "interested":
            return "pull" if self.timer_ms >= 0 and self._wait_s(None) == 0 else "wait"
        window = self._window()
        if window.jobs > len(self._held):
            return "wait" if self._tight else "pull"
        if not window.jobs or (self.credit is not None and self.credit.narrows):
            return "over"
        return "full"

    def _full(self) -> LifecycleError:
        return LifecycleError(
            f"consumer '{self.name}' holds {len(self._held)} unsettled jobs, all that its window"
            " allows: settle one before you ask for the next, or give it a larger window"
        )

    def _cause(self, reason: str, kind: str) -> dict[str, Any]:
        return {"kind": kind, "type": "", "message": reason, "at": self.now, "worker": self.worker}


def _deliveries(flat: Sequence[bytes]) -> list[Delivery]:
    return [Delivery(flat[i], flat[i + 1]) for i in range(0, len(flat), 2)]
