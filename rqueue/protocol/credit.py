"""Credit: how much a consumer may still hold, in jobs and in bytes (Q-48 to Q-51).

The queue checks credit itself, in the step that delivers jobs, so nothing is ever taken back: a
consumer says its window (all that it may hold) before it pulls, and a manager computes that window.
`queue.consumer(jobs=10, bytes=...)` needs none of this; a manager is for what a fixed window cannot
say: credit that grows and shrinks, grants that are used up, one window for several consumers.

| manager | when does credit come back | row |
| --- | --- | --- |
| `WindowCredit` | when a job is settled | Q-50 |
| `GrantCredit` | never: grant more | Q-51 |
| `SharedCredit` | when a job is settled, to all consumers that share it | Q-49 |

Sizes are those of the stored values, in bytes. In all of them a consumer that holds nothing
may take one job that is larger than its bytes, or it would wait for ever (X-11, X-12).

Nothing here does I/O. Managers belong to the thread of their consumer; a `SharedCredit` may be
used by several.
"""

from __future__ import annotations

from typing import Protocol

from rqueue.errors import ConfigError
from rqueue.model.locks import new_lock
from rqueue.protocol.commands.settle import Window

__all__ = ["UNLIMITED", "Credit", "GrantCredit", "SharedCredit", "WindowCredit"]

UNLIMITED = -1
"""No limit, for jobs or for bytes. Added to a limit it makes it unlimited."""

_MANY = 2**31 - 1  # a window of jobs is a number; this one is beyond what any consumer holds


class Credit(Protocol):
    """What a consumer asks of its credit manager."""

    narrows: bool
    """Whether the window shrinks when jobs are settled, so that the queue must learn of it."""

    def window(self, held: int, held_bytes: int) -> Window:
        """All that the consumer may hold now, given what it holds."""
        ...

    def idle(self, held: int, held_bytes: int) -> Window | None:
        """The window to keep while nothing is there to pull, if it is to be a smaller one."""
        ...

    def take(self, size: int) -> None:
        """The consumer got a job of `size` bytes."""
        ...

    def restore(self, jobs: int, bytes: int) -> None:
        """It holds so many jobs less."""
        ...

    def add(self, jobs: int = 0, bytes: int = 0) -> None:
        """Grant more; UNLIMITED lifts the limit."""
        ...

    def clear(self) -> None:
        """Take away what is left; what is held stays held."""
        ...

    def forget(self) -> None:
        """The consumer's registration is over: it holds nothing, and gets nothing before it asks
        for a window again."""
        ...

    def leave(self) -> None:
        """The consumer is gone, and what it held with it."""
        ...


def _check(jobs: int, bytes: int) -> None:
    for name, value in (("jobs", jobs), ("bytes", bytes)):
        if type(value) is not int or value < UNLIMITED:
            raise ConfigError(name, f"{value!r} is no credit; a number from 0 up, or UNLIMITED")


def _sum(limit: int, more: int) -> int:
    return UNLIMITED if UNLIMITED in (limit, more) else limit + more


def _window(jobs: int, bytes: int, held: int, held_bytes: int) -> Window:
    """The window for limits of all that may be held; no bytes at all are no credit."""
    if bytes == 0 or (bytes > 0 and held > 0 and bytes <= held_bytes):
        return Window(min(held, jobs) if jobs >= 0 else held, max(1, bytes))
    return Window(_MANY if jobs < 0 else jobs, max(0, bytes))


class WindowCredit:
    """A window: settling a job gives its credit back (Q-50). Both limits begin at what is given.

    `clear` closes the window and keeps count of what is held, so that jobs settled later do not
    open it again. Accounting never goes below zero.
    """

    narrows = False

    def __init__(self, jobs: int = 0, bytes: int = UNLIMITED) -> None:
        _check(jobs, bytes)
        self.jobs_limit = jobs
        self.bytes_limit = bytes
        self.jobs_used = 0
        self.bytes_used = 0

    @property
    def jobs(self) -> int:
        """Jobs that may still be taken; UNLIMITED where there is no limit."""
        return UNLIMITED if self.jobs_limit < 0 else max(0, self.jobs_limit - self.jobs_used)

    @property
    def bytes(self) -> int:
        """Bytes that may still be taken; UNLIMITED where there is no limit."""
        return UNLIMITED if self.bytes_limit < 0 else max(0, self.bytes_limit - self.bytes_used)

    @property
    def has_credit(self) -> bool:
        """Whether there is any; the next job may be too large all the same (Q-48)."""
        return self.jobs != 0 and self.bytes != 0

    def use(self, size: int) -> bool:
        """Take credit for a job of `size` bytes, all or nothing; True if it fits."""
        if not self.has_credit:
            return False
        if self.jobs_used and 0 <= self.bytes < size:
            return False
        self.take(size)
        return True

    def take(self, size: int) -> None:
        """Count a job that the queue delivered."""
        self.jobs_used += 1
        self.bytes_used += size

    def restore(self, jobs: int, bytes: int) -> None:
        """Give the credit of settled jobs back."""
        self.jobs_used = max(0, self.jobs_used - jobs)
        self.bytes_used = max(0, self.bytes_used - bytes)

    def add(self, jobs: int = 0, bytes: int = 0) -> None:
        """Widen the window; UNLIMITED lifts a limit."""
        _check(jobs, bytes)
        self.jobs_limit = _sum(self.jobs_limit, jobs)
        self.bytes_limit = _sum(self.bytes_limit, bytes)

    def clear(self) -> None:
        """Close the window."""
        self.jobs_limit = self.bytes_limit = 0

    def window(self, held: int, held_bytes: int) -> Window:
        """All that may be held."""
        return _window(self.jobs_limit, self.bytes_limit, held, held_bytes)

    def idle(self, held: int, held_bytes: int) -> Window | None:
        """Waiting takes no credit from others: the window stays."""
        return None

    def forget(self) -> None:
        """Nothing is held any more."""
        self.jobs_used = self.bytes_used = 0

    def leave(self) -> None:
        """Nothing is held any more."""
        self.forget()


class GrantCredit:
    """A grant that is used up by taking jobs; settling gives nothing back (Q-51).

    Credit is counted when a job is delivered, not when it is asked for: a pull that finds nothing
    costs nothing.
    """

    narrows = True

    def __init__(self, jobs: int = 0, bytes: int = UNLIMITED) -> None:
        _check(jobs, bytes)
        self.jobs = jobs
        self.bytes = bytes
        self._held = 0

    @property
    def has_credit(self) -> bool:
        """Whether there is any left."""
        return self.jobs != 0 and self.bytes != 0

    def use(self, size: int) -> bool:
        """Take credit for a job of `size` bytes, all or nothing; True if it fits."""
        if not self.has_credit or (self._held and 0 <= self.bytes < size):
            return False
        self.take(size)
        return True

    def take(self, size: int) -> None:
        """Count a job that the queue delivered."""
        self._held += 1
        if self.jobs > 0:
            self.jobs -= 1
        if self.bytes > 0:
            self.bytes = max(0, self.bytes - size)

    def restore(self, jobs: int, bytes: int) -> None:
        """Settling gives no credit back."""
        self._held = max(0, self._held - jobs)

    def add(self, jobs: int = 0, bytes: int = 0) -> None:
        """Grant more; UNLIMITED lifts a limit."""
        _check(jobs, bytes)
        self.jobs = _sum(self.jobs, jobs)
        self.bytes = _sum(self.bytes, bytes)

    def clear(self) -> None:
        """Take the rest of the grant away."""
        self.jobs = self.bytes = 0

    def window(self, held: int, held_bytes: int) -> Window:
        """What is held, and the grant on top."""
        if not self.has_credit:
            return Window(held, max(1, held_bytes))
        jobs = _MANY if self.jobs < 0 else held + self.jobs
        return Window(jobs, 0 if self.bytes < 0 else held_bytes + self.bytes)

    def idle(self, held: int, held_bytes: int) -> Window | None:
        """The grant stays as it is."""
        return None

    def forget(self) -> None:
        """Nothing is held any more; the rest of the grant stays."""
        self._held = 0

    def leave(self) -> None:
        """Nothing is held any more; the rest of the grant stays for the next consumer."""
        self.forget()


class SharedCredit:
    """One window for several consumers of this process (Q-49): together they hold no more jobs, and
    no more bytes but for one job of each that held nothing.

    Each consumer takes part from when it is made (`queue.consumer(credit=shared)`) until it is
    closed; make all of them before the first is registered. Every one keeps room for one job (of
    any size), so no busy queue locks out another; one that waits, or whose registration was lost,
    keeps no more than that, and one that could take more than it is offered gets its even share as
    the others settle. More consumers than jobs are refused with ConfigError.
    """

    def __init__(self, jobs: int, bytes: int = UNLIMITED) -> None:
        _check(jobs, bytes)
        self.jobs_limit = jobs
        self.bytes_limit = bytes
        self._members: list[_Member] = []
        self._lock = new_lock()

    @property
    def jobs_used(self) -> int:
        """Jobs that its consumers hold together."""
        return sum(member.jobs for member in self._members)

    @property
    def bytes_used(self) -> int:
        """Bytes that its consumers hold together."""
        return sum(member.bytes for member in self._members)

    @property
    def has_credit(self) -> bool:
        """Whether there is any; unlimited where a limit is."""
        return (self.jobs_limit < 0 or self.jobs_used < self.jobs_limit) and (
            self.bytes_limit < 0 or self.bytes_used < self.bytes_limit
        )

    def join(self) -> Credit:
        """The part of one more consumer. Raises ConfigError."""
        with self._lock:
            if 0 <= self.jobs_limit <= len(self._members):
                raise ConfigError(
                    "credit",
                    f"{self.jobs_limit} jobs do not suffice for {len(self._members) + 1} consumers",
                )
            member = _Member(self)
            self._members.append(member)
            return member

    def add(self, jobs: int = 0, bytes: int = 0) -> None:
        """Widen the window; UNLIMITED lifts a limit."""
        _check(jobs, bytes)
        with self._lock:
            self.jobs_limit = _sum(self.jobs_limit, jobs)
            self.bytes_limit = _sum(self.bytes_limit, bytes)

    def _offer(self, me: _Member, held: int, held_bytes: int) -> Window:
        if me.stopped:
            return Window(0, 1)
        jobs, bytes, count = self.jobs_limit, self.bytes_limit, len(self._members)
        for other in self._members:
            if other is me:
                continue
            its_jobs, its_bytes = other.jobs, other.bytes
            if not other.stopped:
                # what it was offered it may get without asking again
                least = max(1, self.jobs_limit // count) if other.hungry else 1
                part = self.bytes_limit // count if other.hungry else 0
                its_jobs = max(its_jobs, other.offered.jobs, least)
                its_bytes = max(its_bytes, other.offered.bytes, part)
            if jobs >= 0:
                jobs = max(0, jobs - its_jobs)
            if bytes >= 0:
                bytes = max(1, bytes - its_bytes)
        return _window(jobs, bytes, held, held_bytes)


class _Member:
    """One consumer's part in a `SharedCredit`."""

    narrows = False

    def __init__(self, shared: SharedCredit) -> None:
        self._shared = shared
        self.jobs = 0
        self.bytes = 0
        self.offered = Window(0, 0)
        self.hungry = False
        self.stopped = False

    def window(self, held: int, held_bytes: int) -> Window:
        shared = self._shared
        with shared._lock:
            self.offered = shared._offer(self, held, held_bytes)
            self.hungry = self.hungry and self.jobs >= self.offered.jobs
            return self.offered

    def idle(self, held: int, held_bytes: int) -> Window | None:
        with self._shared._lock:
            small = Window(held + 1, self.offered.bytes and max(1, held_bytes))
            if small.jobs >= self.offered.jobs:
                return None
            self.offered = small
            return small

    def take(self, size: int) -> None:
        with self._shared._lock:
            self.jobs += 1
            self.bytes += size
            self.hungry = self.jobs >= self.offered.jobs

    def restore(self, jobs: int, bytes: int) -> None:
        with self._shared._lock:
            self.jobs = max(0, self.jobs - jobs)
            self.bytes = max(0, self.bytes - bytes)

    def add(self, jobs: int = 0, bytes: int = 0) -> None:
        self.stopped = False
        self._shared.add(jobs, bytes)

    def clear(self) -> None:
        with self._shared._lock:
            self.stopped = True
            self.offered = Window(0, 1)

    def forget(self) -> None:
        with self._shared._lock:
            self.jobs = self.bytes = 0
            self.offered, self.hungry = Window(0, 0), False

    def leave(self) -> None:
        with self._shared._lock:
            if self in self._shared._members:
                self._shared._members.remove(self)
