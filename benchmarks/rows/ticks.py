"""What the ticks of periodic jobs cost inside Redis: the step that pulls enqueues what is due."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BODY
from benchmarks.lab.rounds import ratios, spread
from benchmarks.lab.script_queue import ScriptQueue, script_queue
from benchmarks.rows.row import Figure, row
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window

SCHEDULES = 100
EVERY_S = 60


def _pulled(queue: ScriptQueue) -> float:
    """Redis's time in scripts until a consumer that comes has pulled all that is due, µs."""
    us, count, window = 0.0, 0, Window(SCHEDULES)
    term = queue.register("c", window)
    while count < SCHEDULES:
        with queue.timed() as spent:
            found = queue.run(commands.pull(queue.keys, "c", term, window)).jobs[::2]
        us += spent.us
        if not found:
            raise AssertionError(f"{count} jobs came, of {SCHEDULES}")
        queue.run(commands.settle(queue.keys, "c", term, None, ack=found))
        count += len(found)
    queue.run(commands.unregister(queue.keys, "c", term))
    return us


@row("ticks", "Redis time of a tick and the pull of its job, to a job that a client enqueues")
def ticks(bench: Bench) -> list[Figure]:
    """A hundred schedules tick at one instant, again and again; between two of these a client
    enqueues as many jobs, one in each call."""
    times = bench.size.of(2, 20, 100)
    ticked: list[float] = []
    sent: list[float] = []
    for _ in range(bench.rounds):
        with script_queue(bench) as queue:
            with bench.queue() as client:
                for number in range(SCHEDULES):
                    client.schedules.set(f"s{number}", "hit", ["x" * 130], every=EVERY_S)
            # they were made one after the other, and tick so from then on
            queue.later(500 * EVERY_S)
            its, others = 0.0, 0.0
            for _ in range(times):
                queue.later(1000 * EVERY_S)
                its += _pulled(queue)
                with queue.timed() as spent:
                    for _ in range(SCHEDULES):
                        queue.run(commands.enqueue(queue.keys, [Put(new_id(), BODY)]))
                others += spent.us + _pulled(queue)
            ticked.append(its / times / SCHEDULES)
            sent.append(others / times / SCHEDULES)
    return [
        Figure("a tick, to a job that a client enqueues", ratios(ticked, sent)),
        Figure("a tick, and the pull of its job", spread(ticked), "µs"),
        Figure("a job that a client enqueues, and its pull", spread(sent), "µs"),
    ]
