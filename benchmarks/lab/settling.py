"""One consumer without a program around it: Redis's time in scripts, for each job that is enqueued,
and for each that is settled while the next is pulled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.lab.bench import Bench
from benchmarks.lab.script_queue import script_queue
from rqueue.model.history_batch import pack
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.policies import Kind

WINDOW = 100
"""Jobs that one call settles, and pulls."""


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
