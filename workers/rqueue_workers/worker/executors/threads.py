"""Sync jobs in threads."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterable
from queue import SimpleQueue
from typing import Any

from rqueue.errors import SoftTimeLimit
from rqueue.tasks.context import current
from rqueue_workers.worker.executors.base import Executor, Job, fail_hard

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)


class ThreadExecutor(Executor):
    """`slots` daemon threads. A soft limit raises in the thread at its next bytecode: a job that
    waits in C sees it when it comes back."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tokens: SimpleQueue[bool] = SimpleQueue()
        self._guards = [threading.Lock() for _ in range(self.slots)]
        self._warned: set[int] = set()
        self._taking = [False] * self.slots
        self._threads = [
            threading.Thread(target=self._loop, args=(i,), name=f"rqueue-{i}", daemon=True)
            for i in range(self.slots)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, jobs: Iterable[Job]) -> None:
        """Give the threads jobs."""
        for job in jobs:
            self.todo.append(job)
            self._tokens.put(True)

    @property
    def beginning(self) -> bool:
        """Whether a thread has taken a job that it does not run yet."""
        return any(self._taking)

    def close(self) -> None:
        """Threads end when they are done."""
        for _ in self._threads:
            self._tokens.put(False)

    def limits(self, now: float) -> float:
        """Raise in jobs whose soft limit has passed; seconds until the next one, 0.0 = none."""
        nearest = 0.0
        for slot, job in list(self.running.items()):
            soft = job.plan.soft_time_limit
            if not soft:
                continue
            left = job.started + soft - now
            if left > 0:
                nearest = min(nearest or left, left)
                continue
            with self._guards[slot]:
                if self.running.get(slot) is job and slot not in self._warned:
                    self._warned.add(slot)
                    kind = _limit_of(job)
                    _raise_in(self._threads[slot].ident or 0, kind)
        return nearest

    def _loop(self, slot: int) -> None:
        try:
            self._work(slot)
        except BaseException:
            fail_hard(self._page)

    def _work(self, slot: int) -> None:
        guard = self._guards[slot]
        taking = self._taking
        while self._tokens.get():
            taking[slot] = True
            try:
                job = self.todo.popleft()
            except IndexError:
                taking[slot] = False
                continue  # it was released
            error: BaseException | None = None
            result: Any = None
            current.set(self._begin(slot, job))
            taking[slot] = False
            if job.plan.early and not self._acked(job):
                current.set(None)
                self._leave_out(slot, job)
                continue
            try:
                try:
                    result = job.plan.function(*job.args, **job.kwargs)
                except BaseException as raised:
                    error = raised
                if self._forks.child:
                    self._forks.leave(error)
                # a limit that strikes from here on is none: the job was done
                self._disarm(slot, guard)
            except SoftTimeLimit:
                self._disarm(slot, guard)
            current.set(None)
            self._end(slot, job, result, error)
            self._warned.discard(slot)

    def _acked(self, job: Job) -> bool:
        answer: SimpleQueue[bool] = SimpleQueue()
        self._ack_early(job, answer.put)
        return answer.get()

    def _disarm(self, slot: int, guard: threading.Lock) -> None:
        """Let no limit strike any more in this thread's job. What has struck, and is not raised
        yet, is replaced by an exception that is caught here: taken back, it would leave CPython's
        flag set that one is due, and every call in the process would stop to look for it (where a
        profiler or a debugger is at work in 3.11, for ever)."""
        with guard:
            struck = slot in self._warned
            self._warned.add(slot)  # until the job has ended
        if struck:
            try:
                _raise_in(threading.get_ident(), _Disarmed)
                while True:  # it is raised where a loop begins anew
                    pass
            except _Disarmed:
                pass


class _Disarmed(BaseException):
    """Takes the place of a limit that came too late."""


def _limit_of(job: Job) -> type[SoftTimeLimit]:
    name, seconds = job.plan.name, job.plan.soft_time_limit

    def init(self: SoftTimeLimit) -> None:
        SoftTimeLimit.__init__(self, name, seconds)

    names = {"__init__": init, "__module__": SoftTimeLimit.__module__}
    return type("SoftTimeLimit", (SoftTimeLimit,), names)
