"""What one consumer knows of itself, without I/O: its registration, its window, what it holds and
has not settled, in which order jobs came to it, and what it has to ask for after a loss.

`Consumer`, `AsyncConsumer` and a worker's subscription are built on it. They add connections, and
decide what becomes of the jobs that came. Each rule of the consumer's side of the protocol stands
here, once.

Two connections bring jobs: a wake-up one that was delivered directly, a reply those that were
pulled; either may be read first. A reply says behind which job its jobs stand (X-25), so what was
delivered before them comes first, and what was delivered after them behind them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from secrets import token_hex
from time import monotonic
from typing import Any

from rqueue.errors import LifecycleError, NotRegistered
from rqueue.model.job import Delivery
from rqueue.model.job_order import position_of
from rqueue.model.selector import Selector
from rqueue.protocol import commands
from rqueue.protocol.commands.consumers import Left, Mode, Registered
from rqueue.protocol.commands.settle import Pulled, Window
from rqueue.protocol.course import Calls
from rqueue.protocol.credit import Credit
from rqueue.protocol.credit_window import NO_CREDIT, CreditWindow
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.recall import Recall
from rqueue.protocol.server_clock import LATE_MS, ServerClock

__all__ = ["ConsumerState"]


class ConsumerState(CreditWindow):
    """One consumer of one queue.

    state: the list it is in: interested, notified, not_interested, browsers; "" = not registered.
    term: of its registration; "" = it has none. window: what it sent to the queue last. now: when
    the last reply was made, ms, Redis's clock: its jobs were acquired then. unsettled: what it
    holds, by its own count, id -> stored value: every job from the reply or wake-up that brought it
    to the call that settles it. timer_at: when to pull for the next due job, by monotonic time; 0.0
    = another consumer watches. tight: the next job did not fit into the bytes left, something has
    to be settled first. doubtful: a reply or a wake-up may be lost, what is held has to be asked
    for.
    """

    # a worker's has more attributes than an object's dict is quick with: a call of a method would
    # take three times as long
    __slots__ = (
        "_asked",
        "_behind",
        "_last_term",
        "_recalled_to",
        "_token",
        "aside",
        "asked_at",
        "clock",
        "doubtful",
        "keys",
        "name",
        "now",
        "stale",
        "term",
        "tight",
        "timer_at",
        "timer_ms",
        "worker",
    )

    def __init__(
        self,
        keys: QueueKeys,
        *,
        worker: str = "",
        window: Window = NO_CREDIT,
        credit: Credit | None = None,
    ) -> None:
        self.keys = keys
        self.worker = worker
        self.name = ""
        self.term = ""
        self.state = ""
        self.window = window
        self.credit = credit
        self.now = 0
        self.clock = ServerClock()
        self.asked_at = inf
        """When the call was made whose reply comes next, or before that, by monotonic time; inf =
        nobody knows."""
        self.unsettled: dict[bytes, bytes] = {}
        self.timer_ms = -1
        self.timer_at = 0.0
        self.tight = False
        self.doubtful = False
        self.stale: list[bytes] = []
        """Ids that the last settle named and this consumer did not hold any more (H-08)."""
        self.aside: list[bytes] = []
        """[id, value, ...] of jobs that were delivered while a reply was awaited: they have no
        place yet."""
        self._behind = b""
        """The last job that was held before the ones that the last reply brought."""
        self._asked = b""
        """The last job that a recall was made for."""
        self._recalled_to = 0
        """Last position that a recall named: a direct delivery up to it, if read later, is old."""
        self._last_term = 0
        self._token = token_hex(8)
        """Says that it was this one which registered, where the reply was lost."""

    # -- registration ------------------------------------------------------------------------------

    def joined(self) -> None:
        """Raises NotRegistered where it is not."""
        if not self.term:
            raise NotRegistered(self.name, queue=self.keys.queue)

    def register_call(
        self,
        window: Window,
        *,
        priority: int,
        lease_ms: int,
        slots: int,
        mode: Mode = "acquire",
        limits: Mapping[str, tuple[int, int]] | None = None,
        select: Selector | None = None,
    ) -> commands.ScriptCall[Registered]:
        """Join the queue under `name`, which nobody had before. The call may be repeated."""
        if self.term:
            raise LifecycleError(f"consumer '{self.name}' is registered")
        self.window = window
        return commands.register(
            self.keys,
            self.name,
            mode=mode,
            priority=priority,
            window=window,
            lease_ms=lease_ms,
            slots=slots,
            worker=self.worker,
            limits=limits,
            token=self._token,
            select=select,
        )

    def registered(self, reply: Registered) -> bool:
        """It is registered, and holds nothing. False where Redis has lost its data since the last
        time: terms only grow, for as long as the queue's data is there."""
        term = int(reply.term)
        grown = term > self._last_term
        self._last_term = term
        self.begin()
        self.now, self.term, self.state = reply
        self.clock.read(reply.now)
        return grown

    def making_way(self, lease_ms: int) -> Calls[bool]:
        """It was refused. Whether a consumer whose lease has ended leaves now: perhaps nobody else
        looks after this queue (Q-18, A-36)."""
        left, more = 0, True
        while more:
            renewed = yield commands.renew(self.keys, lease_ms, [])
            left, more = left + renewed.reclaimed, renewed.more
        return left > 0

    def unregister_call(self) -> commands.ScriptCall[Left]:
        """Leave the queue; to be repeated until it holds nothing (X-21)."""
        return commands.unregister(self.keys, self.name, self.term)

    def forget(self) -> None:
        """The registration is over: it holds nothing any more, and gets nothing."""
        if self.credit is not None:
            self.credit.forget()
        self.begin()

    def begin(self) -> None:
        """It knows of nothing, as before a registration and just after it."""
        self.term = self.state = ""
        self.unsettled.clear()
        self.timer_ms, self.timer_at = -1, 0.0
        self.tight = self.doubtful = False
        self.aside = []
        self._behind = self._asked = b""
        self._recalled_to = 0

    def interest_call(self, window: Window) -> commands.ScriptCall[str]:
        """Set the window without pulling (Q-38, Q-39); the reply is the new `state`."""
        self.window = window
        return commands.interest(self.keys, self.name, self.term, window)

    # -- what a reply says -------------------------------------------------------------------------

    def took(self, pulled: Pulled, *, asked: bool = True) -> list[bytes]:
        """Take note of a reply: [id, value, ...] of the jobs that it brought. asked: whether there
        was a pull; without one it says nothing of the schedule, whose watcher goes on."""
        now, self.state, timer, self.stale, self._behind, jobs = pulled
        self.now = now
        clock = self.clock
        # `ServerClock.read`, which learns nothing from nearly all replies
        if not clock.offset - LATE_MS < now - monotonic() * 1000 <= clock.offset:
            clock.read(now, self.asked_at)
        if jobs:
            if self.credit is None:
                flat = iter(jobs)
                self.unsettled.update(zip(flat, flat, strict=True))
            else:
                for i in range(0, len(jobs), 2):
                    self._hold(jobs[i], jobs[i + 1])
        if asked:
            self.timer_ms = timer
            self.timer_at = self.clock.due_at(now + timer, timer) if timer >= 0 else 0.0
            self.tight = self.state == "not_interested" and len(self.unsettled) < self.window.jobs
        return jobs

    def _hold(self, id_: bytes, value: bytes) -> None:
        if id_ not in self.unsettled:
            self.unsettled[id_] = value
            if self.credit is not None:
                self.credit.take(len(value))

    def drop(self, id_: bytes) -> bytes | None:
        """A job is not held any more; its value, None if it was not."""
        value = self.unsettled.pop(id_, None)
        if value is not None and self.credit is not None:
            self.credit.restore(1, len(value))
        return value

    @property
    def overtakes(self) -> bool:
        """Whether the jobs of the last reply come behind one that was delivered directly and is not
        heard of yet: then what is held has to be asked for, or they would be begun before it
        (X-25)."""
        behind = self._behind
        return bool(behind) and behind not in self.unsettled and behind != self._asked

    def ask(self) -> None:
        """A recall is made for that job; once, for a damaged one is never named."""
        self._asked = self._behind

    def disown(self, ids: Iterable[bytes]) -> None:
        """These jobs came and were not put into their place: a recall is to bring them again."""
        self.doubtful = True
        for id_ in ids:
            self.drop(id_)

    def merge(self, jobs: list[bytes]) -> list[bytes]:
        """What the last reply brought and what was put aside, in the order of taking; nothing is
        aside then."""
        aside = self.aside
        if not aside:
            return jobs
        self.aside = []
        if jobs and self._behind in (ids := aside[::2]):
            before = 2 * ids.index(self._behind) + 2
            return [*aside[:before], *jobs, *aside[before:]]
        return [*jobs, *aside]

    # -- what it has to ask for --------------------------------------------------------------------

    def recall_call(self, window: Window, recall: Recall) -> commands.ScriptCall[Pulled]:
        """A page of what it holds, and with the last page what the window still allows (H-18)."""
        self.window = window
        return commands.pull(self.keys, self.name, self.term, window, recall=recall.start)

    def recalled(self, pulled: Pulled, recall: Recall) -> list[bytes]:
        """The queue named all that this consumer holds, and nothing else is held: [id, value, ...],
        in the order of taking."""
        jobs = recall.jobs
        for id_ in self.unsettled.keys() - set(jobs[::2]):
            self.drop(id_)
        self.doubtful = False
        self.aside = []
        self.took(pulled._replace(jobs=jobs))
        for id_ in jobs[::2]:  # a settle that failed had put some at the end
            self.unsettled[id_] = self.unsettled.pop(id_)
        # a job that is delivered after this has a later position
        for i in range(0, len(jobs), 2):
            position = position_of(Delivery(jobs[i], jobs[i + 1]))
            self._recalled_to = max(self._recalled_to, position)
        return jobs

    # -- what a wake-up says -----------------------------------------------------------------------

    def delivered(self, element: bytes) -> tuple[bytes, bytes] | None:
        """A job was delivered directly, by an element of the wake list that begins with `JOB`: its
        id and value. None if that is old: a reply brought it before."""
        end = 5 + int.from_bytes(element[1:5], "big")  # as `Wake.job`
        id_, value = element[5:end], element[end:]
        if id_ in self.unsettled:
            return None
        if self._recalled_to and position_of(Delivery(id_, value)) <= self._recalled_to:
            return None
        self.unsettled[id_] = value
        if self.credit is not None:
            self.credit.take(len(value))
        if self.state == "interested":
            full = len(self.unsettled) >= self.window.jobs
            self.state = "not_interested" if full else "notified"
        return id_, value

    def notified(self) -> None:
        """Work waits: pull."""
        self.state = "notified"

    def reconnected(self) -> None:
        """What was on its way over the lost connection never comes."""
        self.doubtful, self._recalled_to = True, 0

    # -- what is settled ---------------------------------------------------------------------------

    def settled(self, rows: Iterable[Sequence[Any]]) -> None:
        """The jobs whose ids these rows begin with are about to be settled: they are not held any
        more, unless `unsettle` follows. For a consumer without a manager of credit."""
        pop = self.unsettled.pop
        for row in rows:
            pop(row[0], None)

    def unsettle(self, jobs: Mapping[bytes, bytes] | Iterable[tuple[bytes, bytes]]) -> None:
        """The call that settles them failed, whether it arrived or not: they are held until it is
        said again, or until a recall does not name them. The reply may have brought others."""
        self.doubtful = True
        for id_, value in jobs.items() if isinstance(jobs, Mapping) else jobs:
            self._hold(id_, value)
