"""What jobs of a rate cost: to pull while it has tokens, and a pull that finds none."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.script_queue import ScriptQueue, script_queue
from benchmarks.rows.limits import KIND, PULLS
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window

PLENTY, NONE = "@hit:999999999/1000+999999999*1", "@hit:1/900000000+1*1"


def _drain(queue: ScriptQueue, jobs: int, limits: tuple[str, ...]) -> float:
    """Redis's time for a job that is enqueued, pulled and acked in batches, µs."""
    keys, window = queue.keys, Window(BATCH)
    term, done = queue.register("c", window), list[str]()
    with queue.timed() as spent:
        for first in range(0, jobs, BATCH):
            puts = [Put(new_id(), BODY, limits=limits) for _ in range(min(BATCH, jobs - first))]
            queue.run(commands.enqueue(keys, puts))
        while True:
            found = queue.run(commands.settle(keys, "c", term, window, ack=done)).jobs
            if not (done := [id_.decode() for id_ in found[::2]]):
                break
    queue.run(commands.unregister(keys, "c", term))
    return spent.us / jobs


@row("rates", "Redis time of a job of a rate that has tokens, to that of one that names none")
def rates(bench: Bench) -> list[Figure]:
    """Jobs in batches, without a limit, with a rate that is not used up, and parked behind one that
    is."""
    plain: list[float] = []
    rated: list[float] = []
    parked: list[float] = []
    jobs, window = bench.size.of(2_000, 20_000, 100_000), Window(9)
    for _ in range(bench.rounds):
        with script_queue(bench, KIND) as queue:
            nothing = _drain(queue, jobs, ())
            plain.append(nothing)
            rated.append(_drain(queue, jobs, (PLENTY,)) / nothing)
            term = queue.register("idle", window)
            for _ in range(bench.size.of(20, 200, 1_000)):
                puts = [Put(new_id(), BODY, limits=(NONE,)) for _ in range(BATCH)]
                queue.run(commands.enqueue(queue.keys, puts))
            queue.run(commands.pull(queue.keys, "idle", term, window))
            with queue.timed() as spent:
                for _ in range(PULLS):
                    queue.run(commands.pull(queue.keys, "idle", term, window))
            parked.append(spent.us / PULLS)
    return [
        Figure("a job without a limit", spread(plain), "µs"),
        Figure("a job of a rate that has tokens", spread(rated), "×", Target(6, 1.3, more=False)),
        Figure("a pull while all jobs wait for tokens", spread(parked), "µs"),
    ]
