"""Crashed jobs beside a long one in one process: how much of the time the others go on."""

from __future__ import annotations

from rqueue.protocol import commands
from tests.workers.loop.machine import Machine

STEPS, STEP_S = 200, 0.1


def share_of_standstill(played: Machine, crashed: int) -> float:
    """A worker runs a long job, and so many crashed ones come. The share of the steps of the next
    20 s in which a job that came did not end. Afterwards all of them have ended."""
    spec = {"threads": crashed + 1, "async_slots": 0}
    jobs = [("sync", None, [], 0)] * (crashed + 1)
    played.begin(queues=1, spec=spec, rare=False)
    played.enqueue(pick=0, many=jobs, alone=False)
    played.holds()
    world = played.world
    (worker,) = played.living
    long, *guilty = world.jobs
    assert all(job.runs for job in world.jobs)
    worker.die()
    world.settle()
    ran = [commands.Ran(job.id) for job in guilty]
    played.take_back(worker, {world.queues[0].name: ran})
    for job in guilty:
        job.lasts = 0.0
    played.hire(spec={"threads": 4, "async_slots": 0}, rare=False)
    played.holds()
    assert long.runs
    late = 0
    for _ in range(STEPS):
        played.enqueue(pick=0, many=[("sync", 0.0, [], 0)], alone=False)
        played.let_pass(STEP_S)
        late += not world.jobs[-1].ends
        played.holds()
    assert not any(len(job.begins) > 1 for job in guilty)
    played.tell(long)
    played.let_pass(6)
    played.holds()
    assert not played.unended()
    return late / STEPS
