"""Which workers served which queues, how many jobs they could run at once, and what they should
have made of what came.

Queues that one pool serves share its slots: each of them sees the others' jobs as time in which
nobody is there. So they are planned together. Whether a model of slots that take the oldest job
fits at all is checked by playing the very jobs of the busiest window again, before as many slots as
there were: what that says was measured.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Check", "check", "pools_of", "replayed", "slot_of", "slots_at_once"]

Floats = NDArray[np.float64]

FACTOR = 3.0
"""How many times the measured wait may be what the model says, or the other way round."""

SLACK_S = 0.1
"""Waits that differ by less do not contradict each other: what a wake-up and two clocks cost."""

OVERLAP, OVERLAP_MS = 0.01, 20
"""The share of a worker's busy time, and the ms, that so many jobs have to run at once to count."""

_PROCESS = re.compile(r"(.*):(\d+)-[0-9a-f]{6}")  # as a pool names its worker processes


def slot_of(worker: str) -> tuple[str, str]:
    """The pool of a worker, and its place in it: a process that takes the place of one that ended
    has another name, and is no other worker. A worker that is in no pool is one of its own."""
    found = _PROCESS.fullmatch(worker)
    return (found[1], found[2]) if found else (worker, "")


def pools_of(served: Iterable[tuple[str, str | None]]) -> list[tuple[str, ...]]:
    """The queues that were served together, of pairs (queue, worker); by name.

    A pool that served two queues ties them, even if no other did.
    """
    queues_of: dict[str, set[str]] = defaultdict(set)
    together: dict[str, set[str]] = {}
    for queue, worker in served:
        together.setdefault(queue, {queue})
        if worker is not None:
            queues_of[slot_of(worker)[0]].add(queue)
    for queues in queues_of.values():
        merged = set().union(*(together[queue] for queue in queues))
        for queue in merged:
            together[queue] = merged
    return sorted({tuple(sorted(queues)) for queues in together.values()})


def slots_at_once(
    workers: Sequence[str | None], begun: Sequence[int], ended: Sequence[int]
) -> int | None:
    """How many jobs could run at once: of each place in a pool as many as ever did, all together.

    begun, ended: ms, of a job each. None where no row names its worker.
    """
    events: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for worker, start, end in zip(workers, begun, ended, strict=True):
        if worker is not None:
            events[slot_of(worker)] += [(start, 1), (end, -1)]
    return sum(map(_at_once, events.values())) if events else None


def _at_once(events: list[tuple[int, int]]) -> int:
    """The largest number of jobs that ran at one time, of beginnings (+1) and ends (-1) in ms.

    Between two batches a worker's idea of Redis's clock may move by some ms, so that jobs that ran
    one after the other seem to overlap: a number counts that was there for some time.
    """
    events.sort()
    moments = np.array([at for at, _ in events])
    running = np.cumsum([step for _, step in events])[:-1]
    lasted = np.diff(moments)
    busy = lasted[running > 0].sum()
    most = 1
    while lasted[running > most].sum() > max(OVERLAP * busy, OVERLAP_MS):
        most += 1
    return most


def replayed(arrived: Floats, runs: Floats, slots: int) -> Floats:
    """The waits (s) of jobs, in order of arrival, before so many slots that take the oldest one."""
    free = [0.0] * slots
    waits = np.empty(len(arrived))
    for index, (at, run) in enumerate(zip(arrived.tolist(), runs.tolist(), strict=True)):
        begin = max(at, free[0])
        heapq.heapreplace(free, begin + run)
        waits[index] = begin - at
    return waits


@dataclass(frozen=True, slots=True)
class Check:
    """The model against what was: with the `slots` there were it says that the quantile of the wait
    was `model_s`; measured was `measured_s`; both of the jobs of the busiest window."""

    slots: int
    model_s: float
    measured_s: float
    target_s: float

    @property
    def contradicted(self) -> bool:
        """Whether the two are so far apart that what the model says is worth nothing here."""
        low, high = sorted((self.model_s, self.measured_s))
        return high > FACTOR * low + max(SLACK_S, self.target_s / 10)


def check(
    measured_s: float, arrived: Floats, runs: Floats, before: int, slots: int, quantile: float,
    target_s: float,
) -> Check:  # fmt: skip
    """Play jobs again before `slots` slots. before: how many of the first ones were there when the
    window began, and do not count."""
    waits = np.sort(replayed(arrived, runs, slots)[before:])
    rank = max(0, int(np.ceil(quantile * len(waits))) - 1)
    return Check(slots, float(waits[rank]), measured_s, target_s)
