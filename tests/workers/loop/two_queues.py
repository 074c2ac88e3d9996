"""One of two queues loses what it has, a registration or its Redis: what becomes of the other."""

from __future__ import annotations

from typing import Any

from rqueue_workers.worker.route import BRIEF_S
from tests.workers.loop.machine import Machine

AT_ONCE_S = 2 * BRIEF_S
"""Seconds that a job may wait for what is not its queue's trouble."""

STEP_S = 0.001
STEPS = 1000


def lose_one_of_two(played: Machine, apart: bool) -> None:
    """A worker runs a job of each of two queues, and its lease ends in the first. It registers
    there anew, runs that job again, and goes on with the other."""
    played.begin(queues=2, spec={"threads": 2, "async_slots": 0}, rare=False, apart=apart)
    for pick in (0, 1):
        played.enqueue(pick=pick, many=[("sync", None, [], 0)], alone=False)
    played.holds()
    (worker,) = played.living
    lost, kept = played.world.jobs
    assert lost.runs and kept.runs
    played.take_back(worker, {}, [0])
    played.tell(lost)
    played.let_pass(1)
    played.holds()
    assert (worker.page.rejoins(0), worker.page.rejoins(1)) == (1, 0)
    assert len(lost.begins) == 2  # what came of the first time is refused
    for job in (lost, kept):
        played.tell(job)
    played.let_pass(1)
    played.holds()
    assert (lost.ends, kept.ends) == (["none", "none"], ["none"])


def stall_beside_one_that_hangs(played: Machine, spec: dict[str, Any]) -> float:
    """A worker serves two queues, over a route to each. It runs jobs of the first, whose Redis
    begins to hang; they end one after the other, which is said to a Redis that does not answer.
    Seconds until a job of the other queue has ended that came then, the longest of many over 5 s,
    in which the first Redis counts as gone and is looked for. Then that goes on, and all jobs
    end."""
    played.begin(queues=2, spec=spec, rare=False, apart=True)
    played.enqueue(
        pick=0, many=[("sync", None, [], 0)] * max(1, spec.get("threads", 0)), alone=False
    )
    played.holds()
    world = played.world
    hung = list(world.jobs)
    world.hang(world.queues[0].name)
    for job in hung:
        played.tell(job)
        world.settle()
    longest, end = 0.0, world.stage.now + 5
    while world.stage.now < end:
        since = world.stage.now
        played.enqueue(pick=1, many=[("sync", 0.0, [], 0)], alone=False)
        world.settle()
        for _ in range(STEPS):
            if world.jobs[-1].ends:
                break
            world.advance(STEP_S)
        longest = max(longest, world.stage.now - since)
        played.let_pass(0.1)
        played.holds()
    played.go_on()
    played.let_pass(3)
    played.holds()
    assert [job.ends for job in hung] == [["none"]] * len(hung) and not played.unended()
    return longest
