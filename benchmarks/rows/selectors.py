"""What selectors cost inside Redis: a plain queue, and 1, 4 and 16 of 16 classes."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH
from benchmarks.lab.rounds import spread
from benchmarks.lab.script_queue import script_queue
from benchmarks.rows.row import Figure, row
from rqueue.model.history_batch import pack
from rqueue.model.ids import new_id
from rqueue.model.selector import selector
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.policies import PLAIN, Kind

CLASSES = 16
WINDOWS = (1, 100)
LOOPS = 300


def labelled(number: int) -> bytes:
    """The envelope of a call that is of one of so many classes."""
    pad = "x" * 90
    return b'["hit",["%s"],{},{"labels":{"shard":%d}}]' % (pad.encode(), number % CLASSES)


def _microseconds(bench: Bench, kind: Kind, some: int, waiting: int) -> dict[int, float]:
    """Redis's time in scripts for each job that is settled and pulled, by window. some: classes
    that the consumer selects; 0: it has no selector."""
    found: dict[int, float] = {}
    with script_queue(bench, kind) as queue:
        keys = queue.keys
        for first in range(0, waiting, BATCH):
            numbers = range(first, min(first + BATCH, waiting))
            queue.run(commands.enqueue(keys, [Put(new_id(), labelled(n)) for n in numbers]))
        select = selector(f"shard < {some}") if some else None
        for most in WINDOWS:
            window, name = Window(most), f"c{most}"
            term = queue.register(name, window, select)
            jobs = queue.run(commands.pull(keys, name, term, window)).jobs
            done = 0
            with queue.timed() as spent:
                for _ in range(LOOPS if most == 1 else max(3, min(LOOPS, waiting // 200) // 10)):
                    ids = jobs[::2]
                    batch = pack({"id": ids, "task": "hit", "outcome": "ack", "worker": name})
                    settle = commands.settle(
                        keys, name, term, window, ack=ids, batch=batch, rows=len(ids)
                    )
                    jobs = queue.run(settle).jobs
                    done += len(ids)
            found[most] = spent.us / max(1, done)
            queue.run(commands.unregister(keys, name, term))
    return found


@row("selectors", "Redis time a job, settle and pull: consumers that select some of 16 classes")
def selectors(bench: Bench) -> list[Figure]:
    """All of them in each round, one after the other, so that a noisy machine is noisy for all."""
    waiting = bench.size.of(5_000, 100_000, 1_000_000)
    kind = Kind.of(["selectors"])
    ways = {
        "plain": (PLAIN, 0),
        **{f"{some} of {CLASSES} classes": (kind, some) for some in (1, 4, CLASSES)},
        "no selector": (kind, 0),
    }
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(bench.rounds):
        for what, (its, some) in ways.items():
            for most, us in _microseconds(bench, its, some, waiting).items():
                times.setdefault((what, most), []).append(us)
    return [
        Figure(f"{what}, {most} at a time", spread(us), "µs") for (what, most), us in times.items()
    ]
