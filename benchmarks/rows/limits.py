"""What jobs that wait for limits cost: a pull that may take none of them, and one permit."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.script_queue import ScriptQueue, script_queue
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.policies import Kind

LIMITS = 10_000
PULLS = 500
KIND = Kind.of(["limits"])


def _pull(queue: ScriptQueue) -> float:
    """Redis's time for a pull that finds nothing, µs."""
    term = queue.register("idle", Window(9))
    with queue.timed() as spent:
        for _ in range(PULLS):
            if queue.run(commands.pull(queue.keys, "idle", term, Window(9))).jobs:
                raise AssertionError("a job came that has no permit")
    queue.run(commands.unregister(queue.keys, "idle", term))
    return spent.us / PULLS


def _enqueue(queue: ScriptQueue, numbers: range) -> None:
    for first in range(numbers.start, numbers.stop, BATCH):
        some = range(first, min(first + BATCH, numbers.stop))
        puts = [Put(new_id(), BODY, limits=(f"hit=k{number % LIMITS}:1",)) for number in some]
        queue.run(commands.enqueue(queue.keys, puts))


@row(
    "limits", "Redis time of a pull that finds only jobs without permits, to that of an empty queue"
)
def limits(bench: Bench) -> list[Figure]:
    """One job of each limit is held, the others are parked behind it; then one after the other is
    settled, and the next of its limit comes with the same call."""
    jobs = bench.size.of(2 * LIMITS, 200_000, 1_000_000)
    empty: list[float] = []
    parked: list[float] = []
    alone: list[float] = []
    window = Window(LIMITS)
    for _ in range(bench.rounds):
        with script_queue(bench, KIND) as queue:
            keys = queue.keys
            nothing = _pull(queue)
            term = queue.register("c", window)
            _enqueue(queue, range(LIMITS))
            held: list[str] = []
            while found := queue.run(commands.pull(keys, "c", term, window)).jobs:
                held += [id_.decode() for id_ in found[::2]]
            if len(held) != LIMITS:
                raise AssertionError(f"{len(held)} jobs came, of {LIMITS}")
            _enqueue(queue, range(LIMITS, jobs))
            waits = _pull(queue)
            with queue.timed() as one:
                for id_ in held[:PULLS]:
                    queue.run(commands.settle(keys, "c", term, window, ack=[id_]))
        empty.append(nothing)
        parked.append(waits / nothing)
        alone.append(one.us / PULLS)
    what = f"{jobs:,} jobs wait for {LIMITS:,} limits"
    return [
        Figure("an empty queue", spread(empty), "µs"),
        Figure(
            f"{what}: a pull that finds nothing", spread(parked), "×", Target(2, 1.2, more=False)
        ),
        Figure(f"{what}: settle one, and the next of its limit comes", spread(alone), "µs"),
    ]
