"""What jobs of shares cost: in batches and one by one, with one share and with many."""

from __future__ import annotations

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.script_queue import ScriptQueue, script_queue
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import new_id
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.policies import PLAIN, Kind

KIND = Kind.of(["shares"])
WORDS = {1: "one share", 100: "a hundred", 10_000: "ten thousand", 1_000_000: "a million"}
"""Shares of which each has jobs; of a million one each, of others two at the least."""

MOST = Target(12, 1.3, more=False)


def _fill(queue: ScriptQueue, shares: int, waiting: int) -> None:
    """So many jobs wait, of these shares by turns; 0: of none."""
    for first in range(0, waiting, BATCH):
        puts = [
            Put(new_id(), BODY, share=f"s{number % shares}" if shares else "")
            for number in range(first, min(first + BATCH, waiting))
        ]
        queue.run(commands.enqueue(queue.keys, puts))


def _drain(queue: ScriptQueue, name: str, window: Window, jobs: int) -> float:
    """Redis's time for a pull of a job and its settle, of jobs that wait, µs."""
    keys, term, done, count = queue.keys, queue.register(name, window), list[str](), 0
    with queue.timed() as spent:
        while count < jobs:
            call = commands.settle(keys, name, term, window, ack=done)
            done = [id_.decode() for id_ in queue.run(call).jobs[::2]]
            count += len(done)
    return spent.us / count


@row("shares", "Redis time of a job of a share, to that of one in a plain queue")
def shares(bench: Bench) -> list[Figure]:
    """Jobs that wait are pulled and acked, in batches, then one by one: of a plain queue, of one
    share, of a hundred, of ten thousand, and at full size of a million."""
    most = bench.size.of(300, 10_000, 1_000_000)
    numbers = [0, *(number for number in WORDS if number <= 10_000 or number == most)]
    together, alone = bench.size.of(500, 10_000, 50_000), bench.size.of(100, 2_000, 10_000)
    batches: dict[int, list[float]] = {number: [] for number in numbers}
    singles: dict[int, list[float]] = {number: [] for number in numbers}
    for _ in range(bench.rounds):
        for number in numbers:
            its = min(number, most)
            waiting = max(together + alone + 100, its if its > 10_000 else 2 * its)
            with script_queue(bench, KIND if number else PLAIN) as queue:
                _fill(queue, its, waiting)
                batches[number].append(_drain(queue, "a", Window(100), together))
                singles[number].append(_drain(queue, "b", Window(1), alone))

    def times(found: dict[int, list[float]], number: int) -> list[float]:
        return [one / plain for one, plain in zip(found[number], found[0], strict=True)]

    figures = [Figure("a job of a plain queue, in batches", spread(batches[0]), "µs")]
    for number in numbers[1:]:
        words = WORDS[number] if number == 1 else f"{WORDS[number]} shares"
        target = Target(3, 1.3, more=False) if number == 1 else MOST
        figures.append(Figure(f"of {words}", spread(times(batches, number)), "×", target))
    figures.append(Figure("a job of a plain queue, one by one", spread(singles[0]), "µs"))
    for number in numbers[1:]:
        what = f"of {WORDS[number]}, one by one"
        figures.append(Figure(what, spread(times(singles, number)), "×", MOST))
    return figures
