"""The worker processes of a pool: forked, watched, asked to leave, and reaped."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex

from rqueue.logs import logger
from rqueue.protocol import scripts
from rqueue_workers.pool.children import forked
from rqueue_workers.pool.exit_cause import ExitCause
from rqueue_workers.pool.host import adopts, reap_strangers
from rqueue_workers.pool.signals import Inbox, Lifeline
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import (
    CONTINUE,
    DRAIN,
    READY,
    STARTING,
    Running,
    StatusPage,
    consumer_of,
)

log = logger("rqueue.pool")

Body = Callable[[WorkerSpec, StatusPage, str, int], int]
"""What runs in a forked worker: (spec, its page, its name, the supervisor's pid) -> exit code."""


@dataclass(slots=True, eq=False)
class WorkerProcess:
    """One worker process, as its supervisor knows it. Times are `time.monotonic()`."""

    index: int
    pid: int
    base: str
    page: StatusPage
    forked_at: float
    ready_at: float = 0.0
    kill_at: float = 0.0
    """When it is killed if it has not left by then; 0 = not asked to leave."""
    killed: bool = False
    """The supervisor killed it: what it was running is not to blame, but for `overdue`."""
    overdue: list[Running] = field(default_factory=list)
    """The jobs whose hard limit was the reason."""
    condemned: list[Running] = field(default_factory=list)
    """The jobs that were cancelled, and their process with them."""
    doomed: set[tuple[str, float]] = field(default_factory=set)
    """Jobs, and when they began, with which it is to be killed, as Redis says."""
    stopped: bool = False
    patience: float = 0.0
    """Seconds that it got beyond the deadline, because Redis was gone."""

    def serves(self, queue: int) -> bool:
        """Whether a queue, by its index, was there when it was forked."""
        return queue < self.page.queues

    def consumer(self, queue: int) -> str:
        """Its consumer name in a queue that it serves."""
        return consumer_of(self.base, self.page.rejoins(queue))

    @property
    def asked(self) -> bool:
        """Whether it was asked to leave."""
        return self.page.asked != CONTINUE

    @property
    def stays(self) -> bool:
        """Whether it counts among the workers that the pool is to have."""
        return not self.asked and not self.killed and self.page.phase in (STARTING, READY)

    @property
    def ready(self) -> bool:
        """Whether it is at work."""
        return self.ready_at > 0

    def ask(self, what: int, kill_at: float) -> None:
        """Tell it to leave: DRAIN, or STOP. If it is there after `kill_at` it is killed."""
        self.page.ask(what)
        self.kill_at = min(self.kill_at, kill_at) if self.kill_at else kill_at
        self._send(signal.SIGTERM)
        if self.stopped:
            self.wake()

    def doubt(self, queue: int) -> None:
        """Have it look whether it still hears of a queue: Redis was silent and answers now, or does
        not know it any more."""
        if self.serves(queue):
            self.page.doubt(queue)
            self._send(signal.SIGURG)

    def knock(self, now: float) -> None:
        """Have its main thread look at the soft limit of its job, where that is over."""
        if 0 < self.page.knock_at <= now:
            self._send(signal.SIGURG)

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


class WorkerProcesses:
    """All worker processes. It forks them and knows who died; what that means is the
    supervisor's."""

    def __init__(
        self, spec: WorkerSpec, body: Body | None, inbox: Inbox, lifeline: Lifeline
    ) -> None:
        if body is None:
            from rqueue_workers.worker.worker import run

            body = run
        self._spec = spec
        self._body: Body = body
        self._inbox = inbox
        self._lifeline = lifeline
        self._by_pid: dict[int, WorkerProcess] = {}
        self._resumed = False
        self._adopts = adopts()
        for name in SCRIPTS:
            scripts.script(name)
        host = socket.gethostname().split(".")[0]
        self.name = f"{spec.name}@{host}" if spec.name else host
        self.name += f":{os.getpid()}"

    def serve(self, spec: WorkerSpec) -> None:
        """Fork the next workers with this spec: those that are there go on with theirs."""
        self._spec = spec

    def __iter__(self) -> Iterator[WorkerProcess]:
        return iter(list(self._by_pid.values()))

    def __len__(self) -> int:
        return len(self._by_pid)

    def free_indexes(self, wanted: int) -> Sequence[int]:
        """Slots of 0..wanted-1 that nobody fills who stays."""
        filled = {process.index for process in self if process.stays}
        return [index for index in range(wanted) if index not in filled]

    def consumers(self, queue: int) -> dict[str, bool]:
        """Consumer names whose leases are to be renewed in a queue, and whether the worker is at
        work.

        A stopped process (SIGSTOP) does not work on its jobs: if that lasts, others get them.
        """
        return {
            process.consumer(queue): process.ready
            for process in self
            if process.serves(queue) and not process.stopped
        }

    def fork(self, index: int, close: Callable[[], None]) -> WorkerProcess:
        """Start a worker. `close` runs in it first: it drops the supervisor's connection."""
        base = f"{self.name}:{index}-{token_hex(3)}"
        page = StatusPage(self._spec.slots, len(self._spec.queues))
        parent = os.getpid()

        def live() -> int:
            return self._body(self._spec, page, base, parent)

        pid = forked(self._inbox, self._lifeline, close, live, page.blame_us)
        process = WorkerProcess(index, pid, base, page, time.monotonic())
        self._by_pid[pid] = process
        return process

    def newly_ready(self) -> list[WorkerProcess]:
        """Worker processes that said READY since the last time that this was asked."""
        found = [m for m in self if not m.ready and m.page.phase != STARTING]
        for process in found:
            process.ready_at = time.monotonic()
        return [process for process in found if process.page.phase == READY]

    def reap(self) -> list[tuple[WorkerProcess, ExitCause]]:
        """Worker processes that died since; they are no worker processes any more."""
        dead = []
        for process in self:
            # one process may have stopped, gone on and died since
            while process.pid in self._by_pid:
                pid, status = os.waitpid(process.pid, os.WNOHANG | os.WUNTRACED | os.WCONTINUED)
                if pid == 0:
                    break
                if os.WIFSTOPPED(status) or os.WIFCONTINUED(status):
                    self._halted(process, status)
                else:
                    del self._by_pid[pid]
                    dead.append((process, ExitCause.of(status)))
        if self._adopts:
            reap_strangers(self._by_pid)
        return dead

    def any_lacks(self, queue: int) -> bool:
        """Whether one that stays does not serve a queue, by its index."""
        return any(process.stays and not process.serves(queue) for process in self)

    def any_resumed(self) -> bool:
        """Whether one that was stopped goes on, since the last time that this was asked."""
        resumed, self._resumed = self._resumed, False
        return resumed

    def _halted(self, process: WorkerProcess, status: int) -> None:
        if os.WIFCONTINUED(status):
            if process.stopped:
                log.info("worker %s (process %d) goes on", process.base, process.pid)
                self._resumed = True
            process.stopped = False
            return
        process.stopped = True
        # before it begins a job that it holds it asks whether that is still its own
        for queue in range(process.page.queues):
            process.doubt(queue)
        log.warning(
            "worker %s (process %d) is stopped by %s: until it goes on, nobody renews its leases",
            process.base,
            process.pid,
            signal.Signals(os.WSTOPSIG(status)).name,
        )
        if process.asked:
            process.wake()

    def to_kill(self, now: float) -> Iterator[WorkerProcess]:
        """Worker processes with jobs that run past their hard limits (`overdue`), or were cancelled
        so (`condemned`)."""
        for process in self:
            if not process.killed:
                page = process.page
                process.overdue = [job for job in page.running() if 0 < job.deadline <= now]
                process.condemned = page.condemned or [
                    job for job in page.running() if (job.id, job.started) in process.doomed
                ]
                if process.overdue or process.condemned:
                    yield process

    def next_limit(self, now: float) -> float | None:
        """The next moment at which a limit or a deadline of leaving ends."""
        moments = [process.kill_at for process in self if process.kill_at and not process.killed]
        for process in self:
            if not process.killed:
                moments += [job.deadline for job in process.page.running() if job.deadline > 0]
                if process.page.knock_at > now:  # later ones are sent with the next looks
                    moments.append(process.page.knock_at)
        return min(moments, default=None)

    def running(
        self, now: float, longer_than: float
    ) -> Iterator[tuple[WorkerProcess, list[Running]]]:
        """Worker processes and those of their jobs that have been running for longer than some
        seconds."""
        for process in self:
            jobs = [job for job in process.page.running() if now - job.started >= longer_than]
            if jobs:
                yield process, jobs

    def drain(self, process: WorkerProcess, now: float, drain: float, grace: float) -> None:
        """Tell one worker process to leave when its jobs are done, or `drain` seconds are over."""
        # one that starts has none, but may be deep in the import of the app
        process.ask(DRAIN, now + (drain if process.ready else 0.0) + grace)
