"""Sync jobs in threads."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterable
from functools import partial
from queue import SimpleQueue
from typing import Any

from rqueue.errors import SoftTimeLimit
from rqueue.model.locks import new_lock
from rqueue.tasks.context import current
from rqueue.tasks.control import Cancelled
from rqueue_workers.worker.current_job import SoftLimit, handles_limit
from rqueue_workers.worker.error_text import text
from rqueue_workers.worker.executors.base import Executor, Job, fail_hard

LOOK_AGAIN_S = 0.01
"""Seconds until a job is looked at again whose limit is over while nothing can be raised in it."""

_NOT_YET: Any = object()
"""What a job returned that did not return yet."""

_STRIKES = (SoftTimeLimit, Cancelled)
"""What is raised in a job from outside."""

_raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
_raise_in.argtypes = (ctypes.c_ulong, ctypes.py_object)


class ThreadExecutor(Executor):
    """`slots` daemon threads. A soft limit raises in the thread at its next bytecode: a job that
    waits in C sees it when it comes back."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tokens: SimpleQueue[bool] = SimpleQueue()
        self._guards = [new_lock() for _ in range(self.slots)]
        self._strikes_at: dict[int, float] = {}
        """When a soft limit strikes again."""
        self._taking = [False] * self.slots
        self._open = [False] * self.slots
        """Whether something may be raised in the slot's job."""
        self._struck = [False] * self.slots
        """Whether something was raised there, perhaps not at its bytecode yet."""
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
        """Raise in jobs whose soft limit has passed, as `SoftLimit` does; returns seconds until the
        next one, 0.0 = none."""
        nearest = 0.0
        for slot, job in list(self.running.items()):
            soft = job.plan.soft_time_limit
            if not soft:
                continue
            left = self._strikes_at.get(slot, job.started + soft) - now
            if left > 0:
                nearest = min(nearest or left, left)
                continue
            with self._guards[slot]:
                if self.running.get(slot) is not job:
                    continue
                if self._open[slot]:
                    again = max(soft, SoftLimit.AGAIN_S)
                    self._strikes_at[slot] = now + again
                    nearest = min(nearest or again, again)
                    if not handles_limit(_handled_in(self._threads[slot])):
                        self._strike(slot, _limit_of(job))
                else:  # it is about to begin, or to end
                    nearest = min(nearest or LOOK_AGAIN_S, LOOK_AGAIN_S)
        return nearest

    def _interrupt(self, job: Job) -> None:
        """Raise in the thread that runs the job, wherever it is by now; where it has not begun, the
        thread does so itself."""
        for slot, running in list(self.running.items()):
            if running is job:
                with self._guards[slot]:
                    if self.running.get(slot) is job and self._open[slot]:
                        self._strike(slot, self._cancel_of(job))

    def _strike(self, slot: int, kind: type[BaseException]) -> None:
        """Raise in a slot's thread; under its guard, while it is open."""
        self._struck[slot] = True
        _raise_in(self._threads[slot].ident or 0, kind)

    def _cancel_of(self, job: Job) -> type[Cancelled]:
        """An exception that says so when it is raised."""
        raised = partial(self._interrupted, job)

        def init(self: Cancelled) -> None:
            Cancelled.__init__(self, f"job {text(job.id)} was cancelled")
            raised()

        names = {"__init__": init, "__module__": Cancelled.__module__}
        return type("Cancelled", (Cancelled,), names)

    def _loop(self, slot: int) -> None:
        try:
            self._work(slot)
        except BaseException:
            fail_hard(self._page)

    def _work(self, slot: int) -> None:
        guard = self._guards[slot]
        taking, opened = self._taking, self._open
        while self._tokens.get():
            taking[slot] = True
            try:
                job = self.todo.popleft()
            except IndexError:
                taking[slot] = False
                continue  # it was released
            if not (self._begins(job) and self._admitted(job)):
                taking[slot] = False
                continue
            error: BaseException | None = None
            result: Any = _NOT_YET
            current.set(self._begin(slot, job))
            taking[slot] = False
            if job.cancelled or (job.plan.early and not self._acked(job)):
                current.set(None)
                self._leave_out(slot, job)
                continue
            try:
                try:
                    opened[slot] = True
                    if job.force == "stop":  # before anything could be raised here
                        raise self._cancel_of(job)()
                    result = job.plan.function(*job.args, **job.kwargs)
                except BaseException as raised:
                    error = raised
                if self._forks.child:
                    self._forks.leave(error)
                # what strikes from here on is nothing: the job was done
                self._disarm(slot, guard)
            except _STRIKES as late:
                if error is None and result is _NOT_YET:  # it was about to be caught as the error
                    error = late
                try:
                    self._disarm(slot, guard)
                except _STRIKES:  # the other one
                    self._disarm(slot, guard)
            current.set(None)
            self._end(slot, job, result, error)
            self._strikes_at.pop(slot, None)

    def _acked(self, job: Job) -> bool:
        answer: SimpleQueue[bool] = SimpleQueue()
        self._ack_early(job, answer.put)
        return answer.get()

    def _disarm(self, slot: int, guard: Any) -> None:
        """Let neither a limit nor a cancel strike any more in this thread's job. What has struck,
        and is not raised yet, is replaced by an exception that is caught here: taken back, it would
        leave CPython's flag set that one is due, and every call in the process would stop to look
        for it (where a profiler or a debugger is at work in 3.11, for ever)."""
        with guard:
            self._open[slot] = False
            struck = self._struck[slot]
            self._struck[slot] = False
        if struck:
            try:
                _raise_in(threading.get_ident(), _Disarmed)
                while True:  # it is raised where a loop begins anew
                    pass
            except _Disarmed:
                pass


class _Disarmed(BaseException):
    """Takes the place of a limit or a cancel that came too late."""


def _handled_in(thread: threading.Thread) -> BaseException | None:
    """The error that a thread's code handles now."""
    found: Any = sys._current_exceptions().get(thread.ident or 0)
    error: BaseException | None = found[1] if isinstance(found, tuple) else found
    return error  # a triple before Python 3.12


def _limit_of(job: Job) -> type[SoftTimeLimit]:
    name, seconds = job.plan.name, job.plan.soft_time_limit

    def init(self: SoftTimeLimit) -> None:
        SoftTimeLimit.__init__(self, name, seconds)

    names = {"__init__": init, "__module__": SoftTimeLimit.__module__}
    return type("SoftTimeLimit", (SoftTimeLimit,), names)
