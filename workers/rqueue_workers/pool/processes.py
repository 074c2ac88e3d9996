"""The worker processes of a pool: forked, watched, told to leave, and mourned."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex

from rqueue.logs import logger
from rqueue.protocol import scripts
from rqueue_workers.exit_codes import Exit
from rqueue_workers.pool.exit_cause import Death
from rqueue_workers.pool.host import adopts, reap_strangers
from rqueue_workers.pool.signals import Inbox, Lifeline
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import (
    CONTINUE,
    DRAIN,
    READY,
    STARTING,
    Running,
    Shared,
    consumer_of,
)

log = logger("rqueue.pool")

Body = Callable[[WorkerSpec, Shared, str, int], int]
"""What runs in a forked worker: (spec, its page, its name, the supervisor's pid) -> exit code."""


@dataclass(slots=True, eq=False)
class Member:
    """One worker process, as its supervisor knows it. Times are `time.monotonic()`."""

    slot: int
    pid: int
    base: str
    shared: Shared
    forked_at: float
    ready_at: float = 0.0
    kill_at: float = 0.0
    """When it is killed if it has not left by then; 0 = not asked to leave."""
    killed: bool = False
    """The supervisor killed it: what it was running is not to blame, but for `overdue`."""
    overdue: list[Running] = field(default_factory=list)
    """The jobs whose hard limit was the reason."""
    stopped: bool = False
    patience: float = 0.0
    """Seconds that it got beyond the deadline, because Redis was gone."""

    @property
    def consumer(self) -> str:
        """Its consumer name, in all its queues."""
        return consumer_of(self.base, self.shared.rejoins)

    @property
    def asked(self) -> bool:
        """Whether it was told to leave."""
        return self.shared.asked != CONTINUE

    @property
    def stays(self) -> bool:
        """Whether it counts among the workers that the pool is to have."""
        return not self.asked and not self.killed and self.shared.phase in (STARTING, READY)

    @property
    def ready(self) -> bool:
        """Whether it is at work."""
        return self.ready_at > 0

    def ask(self, what: int, kill_at: float) -> None:
        """Tell it to leave: DRAIN, or STOP. If it is there after `kill_at` it is killed."""
        self.shared.ask(what)
        self.kill_at = min(self.kill_at, kill_at) if self.kill_at else kill_at
        self._send(signal.SIGTERM)
        if self.stopped:
            self.wake()

    def wake(self) -> None:
        """Let it go on: stopped, it would not hear that it is to leave."""
        self._send(signal.SIGCONT)

    def kill(self) -> None:
        """End it, with whatever programs its jobs started in its process group."""
        self.killed = True
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


SCRIPTS = ("register", "unpark", "settle", "pull", "unregister")
"""What workers say. It is read here, once for all of them: none reads when its first job comes."""


class Crew:
    """All members. It forks them and knows who died; what that means is the supervisor's."""

    def __init__(self, spec: WorkerSpec, body: Body, inbox: Inbox, lifeline: Lifeline) -> None:
        self._spec = spec
        self._body = body
        self._inbox = inbox
        self._lifeline = lifeline
        self._members: dict[int, Member] = {}
        self._adopts = adopts()
        for name in SCRIPTS:
            scripts.script(name)
        host = socket.gethostname().split(".")[0]
        self.name = f"{spec.name}@{host}" if spec.name else host
        self.name += f":{os.getpid()}"

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members.values()))

    def __len__(self) -> int:
        return len(self._members)

    def free_slots(self, wanted: int) -> Sequence[int]:
        """Slots of 0..wanted-1 that nobody fills who stays."""
        filled = {member.slot for member in self if member.stays}
        return [slot for slot in range(wanted) if slot not in filled]

    def consumers(self) -> dict[str, bool]:
        """Consumer names whose leases are to be renewed, and whether the worker is at work.

        A stopped process (SIGSTOP) does not work on its jobs: if that lasts, others get them.
        """
        return {member.consumer: member.ready for member in self if not member.stopped}

    def fork(self, slot: int, close: Callable[[], None]) -> Member:
        """Start a worker. `close` runs in it first: it drops the supervisor's connection."""
        base = f"{self.name}:{slot}-{token_hex(3)}"
        shared = Shared(self._spec.slots)
        parent = os.getpid()
        sys.stdout.flush()
        sys.stderr.flush()
        gc.freeze()  # what is here now is shared with the child, as long as nobody touches it
        with self._inbox.held_back():
            pid = os.fork()
            if pid == 0:
                self._live(base, shared, parent, close)
        member = Member(slot, pid, base, shared, time.monotonic())
        with suppress(OSError):  # the child does it too; whoever comes first
            os.setpgid(pid, pid)
        self._members[pid] = member
        return member

    def _live(self, base: str, shared: Shared, parent: int, close: Callable[[], None]) -> None:
        code = int(Exit.INTERNAL)
        try:
            # its own group: a hard limit ends what its jobs started too, and Ctrl-C is for the
            # supervisor alone
            os.setpgid(0, 0)
            close()
            self._inbox.forget_in_child()
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            self._lifeline.follow()
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.close(nothing)
            code = self._body(self._spec, shared, base, parent)
        except BaseException:  # nothing may get past here into the supervisor's own code
            shared.blame_us()
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def newly_ready(self) -> list[Member]:
        """Members that said READY since the last time that this was asked."""
        found = [m for m in self if not m.ready and m.shared.phase != STARTING]
        for member in found:
            member.ready_at = time.monotonic()
        return [member for member in found if member.shared.phase == READY]

    def reap(self) -> list[tuple[Member, Death]]:
        """Members that died since; they are no members any more."""
        dead = []
        for member in self:
            # one process may have stopped, gone on and died since
            while member.pid in self._members:
                pid, status = os.waitpid(member.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
                if pid == 0:
                    break
                if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
                    self._halted(member, status)
                else:
                    del self._members[pid]
                    dead.append((member, Death.of(status)))
        if self._adopts:
            reap_strangers(self._members)
        return dead

    def _halted(self, member: Member, status: int) -> None:
        if os.WIFCONTINUED(status):
            if member.stopped:
                log.info("worker %s (process %d) goes on", member.base, member.pid)
            member.stopped = False
            return
        member.stopped = True
        log.warning(
            "worker %s (process %d) is stopped by %s: until it goes on, nobody renews its leases",
            member.base,
            member.pid,
            signal.Signals(os.WSTOPSIG(status)).name,
        )
        if member.asked:
            member.wake()

    def over_limit(self, now: float) -> Iterator[tuple[Member, list[Running]]]:
        """Members with jobs that run past their hard limits."""
        for member in self:
            if not member.killed:
                overdue = [job for job in member.shared.running() if 0 < job.deadline <= now]
                if overdue:
                    yield member, overdue

    def next_limit(self) -> float | None:
        """The next moment at which a hard limit or a deadline of leaving ends."""
        moments = [member.kill_at for member in self if member.kill_at and not member.killed]
        for member in self:
            if not member.killed:
                moments += [job.deadline for job in member.shared.running() if job.deadline > 0]
        return min(moments, default=None)

    def running(self, now: float, longer_than: float) -> Iterator[tuple[Member, list[Running]]]:
        """Members and those of their jobs that have been running for longer than some seconds."""
        for member in self:
            jobs = [job for job in member.shared.running() if now - job.started >= longer_than]
            if jobs:
                yield member, jobs

    def drain(self, member: Member, now: float, drain: float, grace: float) -> None:
        """Tell one member to leave when its jobs are done, or `drain` seconds are over."""
        # one that starts has none, but may be deep in the import of the app
        member.ask(DRAIN, now + (drain if member.ready else 0.0) + grace)
