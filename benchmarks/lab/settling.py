"""One consumer without a program around it: Redis's time in scripts, for each job that is enqueued,
and for each that is settled while the next is pulled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from benchmarks.lab.bench import Bench
from benchmarks.lab.script_queue import ScriptQueue, script_queue, script_queues
from rqueue.model.history_batch import pack
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, ScriptCall, Window
from rqueue.protocol.policies import Kind

WINDOW = 100
"""Jobs that one call settles, and pulls."""

BURST = 20
"""Calls of one queue before it is the turn of the next."""


class Side(NamedTuple):
    """What goes through a queue: its kind, batches of jobs, what each job returns (b"" = nothing is
    kept)."""

    kind: Kind
    batches: Iterable[Sequence[Put]]
    result: bytes = b""


class _Loop:
    """One consumer of one queue, called a few times each time it is its turn."""

    def __init__(self, queue: ScriptQueue, side: Side) -> None:
        self._queue = queue
        self._batches = iter(side.batches)
        self._result = side.result
        self._term = ""
        self._found: list[Any] = []
        self.enqueued: list[float] = []
        """µs a job, of each turn."""
        self.settled: list[float] = []

    def enqueue(self) -> bool:
        """A turn of batches; False where there are no more."""
        batches = list(islice(self._batches, 2))
        with self._queue.timed() as spent:
            for puts in batches:
                self._queue.run(commands.enqueue(self._queue.keys, puts))
        if batches:
            self.enqueued.append(spent.us / sum(map(len, batches)))
        return bool(batches)

    def begin(self) -> None:
        """The consumer joins, and pulls."""
        window = Window(WINDOW)
        self._term = self._queue.register("c", window)
        call = commands.pull(self._queue.keys, "c", self._term, window)
        self._found = self._queue.run(call).jobs

    def settle(self) -> bool:
        """A turn of settles; False where there are no more jobs."""
        with self._queue.timed() as spent:
            for _ in range(BURST):
                ids = self._found[::2]
                if len(ids) != WINDOW:
                    return False
                self._found = self._queue.run(self._call(ids)).jobs
        self.settled.append(spent.us / BURST / WINDOW)
        return True

    def _call(self, ids: list[Any]) -> ScriptCall[Any]:
        batch = pack({"id": ids, "task": "hit", "outcome": "ack", "worker": "c"})
        said: dict[str, Any] = {"ack": ids}
        if self._result:
            said = {"done": [(id_, None, self._result) for id_ in ids]}
        keys, window = self._queue.keys, Window(WINDOW)
        return commands.settle(keys, "c", self._term, window, **said, batch=batch, rows=WINDOW)


def by_turns(bench: Bench, sides: Mapping[str, Side]) -> dict[str, tuple[list[float], list[float]]]:
    """µs a job of each turn, to enqueue, and to settle and pull: the queues take turns of a few
    calls, so that a noisy machine is noisy for all of them, and turns can be compared one by
    one."""
    with script_queues(bench, {name: side.kind for name, side in sides.items()}) as queues:
        loops = {name: _Loop(queues[name], side) for name, side in sides.items()}
        while any([loop.enqueue() for loop in loops.values()]):
            pass
        for loop in loops.values():
            loop.begin()
        while all([loop.settle() for loop in loops.values()]):
            pass
    return {name: (loop.enqueued, loop.settled) for name, loop in loops.items()}


def microseconds(
    bench: Bench, kind: Kind, batches: Iterable[Sequence[Put]], result: bytes = b""
) -> tuple[float, float]:
    """Of an empty queue of this kind, into which these batches go, one call each: µs a job to
    enqueue, µs a job to settle and pull, in calls of `WINDOW`; the last one is not counted. result:
    what each job returns; b"" = nothing is kept."""
    with script_queue(bench, kind) as queue:
        keys, jobs, done = queue.keys, 0, 0
        with queue.timed() as enqueued:
            for puts in batches:
                queue.run(commands.enqueue(keys, puts))
                jobs += len(puts)
        window = Window(WINDOW)
        term = queue.register("c", window)
        found = queue.run(commands.pull(keys, "c", term, window)).jobs
        with queue.timed() as settled:
            while done + WINDOW < jobs:
                ids = found[::2]
                if len(ids) != WINDOW:
                    raise AssertionError(f"{len(ids)} jobs came, of {WINDOW}")
                batch = pack({"id": ids, "task": "hit", "outcome": "ack", "worker": "c"})
                said: dict[str, Any] = {"ack": ids}
                if result:
                    said = {"done": [(id_, None, result) for id_ in ids]}
                call = commands.settle(keys, "c", term, window, **said, batch=batch, rows=WINDOW)
                found = queue.run(call).jobs
                done += WINDOW
    return enqueued.us / jobs, settled.us / done
