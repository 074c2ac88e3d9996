"""A worker process that says where its time went: run as a program, ended by SIGTERM.

`python -m benchmarks.profiles.worker_program URL QUEUE PREFETCH STEPS OUTPUT`. STEPS 0: only the
whole is measured, so that the measuring costs nothing. Time spent waiting for work is not counted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from typing import Any

import rqueue_workers.worker.settle_calls
from benchmarks.profiles.steps import Steps, put
from rqueue.protocol import commands
from rqueue.settings import Settings
from rqueue.transport.connection import Connection
from rqueue.transport.resp import RespSocket
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker import task_plans, worker
from rqueue_workers.worker.departure import Departure
from rqueue_workers.worker.dispatcher import Dispatcher
from rqueue_workers.worker.executors.main_thread import MainThreadExecutor
from rqueue_workers.worker.subscription import Subscription

RUN = "run jobs: decode, say so on the shared page, note the end"
TASK = "the tasks themselves"
REST = "the turn: whose jobs run, signals, recycling"
STEP = "dispatcher: lock, window"
HAND = "collect what ended, note what was settled and what came"
ROWS = "pack the rows of history"
CALL = "arguments of the settle call"
FRAME = "frame the call, parse the reply"
SEND = "socket: send"
REPLY = "socket: wait for the reply (the script runs meanwhile)"
DEAL = "deal out the new jobs"
POLL = "look at the wake lists"
WAIT = "wait for work"
ORDER = (RUN, TASK, REST, STEP, HAND, ROWS, CALL, FRAME, SEND, REPLY, DEAL, POLL)

PARTS: tuple[tuple[Any, str, str], ...] = (
    (MainThreadExecutor, "run", RUN),
    (Dispatcher, "step", STEP),
    (Dispatcher, "post", STEP),
    (Dispatcher, "deal", DEAL),
    (Dispatcher, "poll", POLL),
    (Subscription, "settle", HAND),
    (Subscription, "send", HAND),
    (Subscription, "receive", HAND),
    (rqueue_workers.worker.settle_calls, "pack_rows", ROWS),
    (commands, "settle", CALL),
    (Connection, "run", FRAME),
    (Connection, "begin", FRAME),
    (Connection, "finish", FRAME),
)


class TimedSocket:
    """A socket whose receiving is timed."""

    def __init__(self, sock: Any, steps: Steps) -> None:
        self._sock = sock
        self.recv_into = steps.wrap(REPLY, sock.recv_into)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class Meter:
    """The whole: from the first turn on, without the waiting. `seen`: what it was when last the
    worker began to wait."""

    def __init__(self, page: StatusPage, steps: Steps) -> None:
        self.seen: dict[str, Any] = {"jobs": 0, "wall": 0, "cpu": 0, "steps": {}}
        self._page = page
        self._steps = steps
        self._begun = (0, 0)
        self._waited = [0, 0]
        self._before: dict[str, tuple[int, int]] = {}

    def watch(self) -> None:
        """Follow the loop and the waits of this process."""
        work, leave, wait = worker.Worker._work, Departure.leave, Dispatcher.wait

        def watched_work(worker: worker.Worker) -> None:
            self._begun = perf_counter_ns(), process_time_ns()
            self._before = self._steps.taken()
            work(worker)

        def watched_leave(departure: Departure) -> int:
            if self._page.done != self.seen["jobs"]:
                # the signal came before it began to wait
                self._note(perf_counter_ns(), process_time_ns())
            return leave(departure)

        def watched_wait(dispatcher: Dispatcher, *args: Any) -> bool:
            begin = perf_counter_ns(), process_time_ns()
            self._note(*begin)
            found = wait(dispatcher, *args)
            self._waited[0] += perf_counter_ns() - begin[0]
            self._waited[1] += process_time_ns() - begin[1]
            return found

        put(worker.Worker, "_work", watched_work)
        put(Departure, "leave", watched_leave)
        put(Dispatcher, "wait", watched_wait)

    def _note(self, wall: int, cpu: int) -> None:
        spent = wall - self._begun[0] - self._waited[0]
        steps = {
            name: (ns - self._before.get(name, (0, 0))[0], calls)
            for name, (ns, calls) in self._steps.taken().items()
        }
        if steps:
            rest = spent - sum(ns for name, (ns, _) in steps.items() if name != WAIT)
            steps[REST] = rest, steps[RUN][1]
        self.seen = {
            "jobs": self._page.done,
            "wall": spent,
            "cpu": cpu - self._begun[1] - self._waited[1],
            "steps": steps,
        }


def install(steps: Steps) -> None:
    """Time all that is known."""
    for owner, attribute, name in PARTS:
        steps.patch(owner, attribute, name)
    steps.patch(Dispatcher, "wait", WAIT)
    put(RespSocket, "__init__", _timed(RespSocket.__init__, steps))
    load_plans = task_plans.load_plans

    def load(spec: WorkerSpec, **more: Any) -> Any:
        plans = load_plans(spec, **more)
        for plan in plans.values():
            object.__setattr__(plan, "function", steps.wrap(TASK, plan.function))
        return plans

    put(worker, "load_plans", load)


def _timed(init: Any, steps: Steps) -> Any:
    def timed(framing: Any, *args: Any, **more: Any) -> None:
        init(framing, *args, **more)
        framing._sock = TimedSocket(framing._sock, steps)
        framing._send = steps.wrap(SEND, framing._send)

    return timed


def main(url: str, queue: str, prefetch: int, with_steps: bool, output: str) -> None:
    """Work until a signal comes; then write the measurements."""
    spec = WorkerSpec(
        Settings(url=url), ("benchmarks.apps.tasks",), (queue,), async_slots=100, prefetch=prefetch
    )
    page, steps = StatusPage(spec.slots), Steps()
    if with_steps:
        install(steps)
    meter = Meter(page, steps)
    meter.watch()
    worker.run(spec, page, f"profiled-{Path(output).stem}", 0)
    Path(output).write_text(json.dumps(meter.seen))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "1", sys.argv[5])
