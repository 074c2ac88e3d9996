"""One of two queues loses what it has, a registration or its Redis: what becomes of the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from rqueue_workers.status_page import STOP
from rqueue_workers.worker.under_way import BRIEF_S
from tests.workers.loop.machine import Machine
from tests.workers.loop.truth import Truth

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


def recalls_where_all_are_lost(played: Machine, queues: int) -> int:
    """A worker serves so many queues over one route, waits for jobs in all of them, and its lease
    ends everywhere. How often it asks what it holds, until it is registered in all of them again.
    """
    played.begin(queues=queues, spec={"async_slots": 0}, rare=False)
    played.holds()
    world = played.world
    (worker,) = played.living
    pull = world.scripts.script("pull").sha
    played.take_back(worker, {})
    before = world.ran[pull]
    worker.doubt(queues // 2)
    played.let_pass(1)
    asked = world.ran[pull] - before
    for pick in range(queues):
        played.enqueue(pick=pick, many=[("sync", 0.0, [], 0)], alone=False)
    played.let_pass(0.1)
    played.holds()
    assert [worker.page.rejoins(at) for at in range(queues)] == [1] * queues
    assert all(job.ends for job in world.jobs)
    return asked


def stall_beside_one_that_hangs(played: Machine, spec: dict[str, Any], when: When) -> float:
    """A worker serves two queues, over a route to each, and the Redis of the first begins to hang
    while something is to be said to it. Seconds until a job of the other queue has ended that came
    then, the longest of many over 5 s, in which the first Redis counts as gone and is looked for.
    Then that goes on, and all jobs end."""
    played.begin(queues=2, spec=spec, rare=False, apart=True, early=when is acks_early)
    played.holds()
    world = played.world
    when(played, max(1, spec.get("threads", 0)))
    hung = list(world.jobs)
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
    assert world.hung
    played.go_on()
    played.let_pass(3)
    played.holds()
    assert all(job.ends for job in hung) and not played.unended()
    return longest


def settles(played: Machine, slots: int) -> None:
    """Jobs have ended, one after the other."""
    hung = _run(played, slots)
    _hang(played)
    for job in hung:
        played.tell(job)
        played.world.settle()


def reports(played: Machine, slots: int) -> None:
    """What a job reports is just being sent, and jobs have ended."""
    hung = _run(played, slots)
    _send_report(played)
    _hang(played)
    for job in hung:
        played.tell(job)
        played.world.settle()


def recalls(played: Machine, slots: int) -> None:
    """What is held is to be asked for, and jobs have ended."""
    hung = _run(played, slots)
    _hang(played)
    played.living[0].doubt(0)
    for job in hung:
        played.tell(job)
    played.world.settle()


def joins(played: Machine, slots: int) -> None:
    """The registration was lost, and is made anew: the worker is registered when it hangs, and does
    not know what the queue is like."""
    hung = _run(played, slots)
    world = played.world
    (worker,) = played.living
    calls = worker.connections[0]
    register = world.scripts.script("register").sha
    before = world.ran[register]

    def watch() -> None:
        if world.ran[register] > before:
            _hang(played)
        else:
            calls.before = watch

    calls.before = watch
    played.take_back(worker, {}, [0])
    for job in hung:
        played.tell(job)
        job.lasts = 0.0  # it runs again: others may have it
    world.settle()
    assert world.hung and worker.page.rejoins(0) == 1


def registers(played: Machine, slots: int) -> None:
    """The registration was lost, and the call that makes it anew is under way."""
    played.enqueue(pick=0, many=[("sync", 0.0, [], 0)], alone=False)
    played.let_pass(0.1)  # the server knows how to settle from here on
    hung = _run(played, slots)[1:]
    (worker,) = played.living
    played.take_back(worker, {}, [0])
    worker.connections[0].before = lambda: _hang(played)  # after the call that is refused
    for job in hung:
        played.tell(job)
        job.lasts = 0.0  # it runs again: others may have it
    played.world.settle()
    assert played.world.hung and worker.page.rejoins(0) == 1


def acks_early(played: Machine, _slots: int) -> None:
    """A job is to be acked before it begins."""
    _hang(played)
    played.enqueue(pick=0, many=[("early", 0.0, [], 0)], alone=False)
    played.world.settle()
    assert not played.world.jobs[-1].begins


def settle_behind_a_report(played: Machine) -> None:
    """A job ends while what it reports is being sent: until that has arrived it is not settled, for
    how far it came is to be known when it has ended. Another queue's jobs do not wait."""
    played.begin(queues=2, spec={"async_slots": 0}, rare=False, apart=True)
    (reports,) = _run(played, 1)
    _send_report(played)
    played.tell(reports)
    played.enqueue(pick=1, many=[("sync", 0.0, [], 0)], alone=False)
    played.let_pass(0.1)
    assert reports.ends and played.world.jobs[-1].ends
    assert _held(played, 0) == 1
    assert _held(played, 1) == 0
    played.world.sending.close()
    played.let_pass(0.1)
    played.holds()
    assert _held(played, 0) == 0


def leave_two_that_hang(played: Machine) -> float:
    """A worker runs a job of each of three queues, of which two hang, and is asked to leave at
    once. The job of the third goes back at once. Seconds until the worker has left."""
    played.begin(queues=3, spec={"threads": 3, "async_slots": 0}, rare=False, apart=True)
    for pick in range(3):
        played.enqueue(pick=pick, many=[("sync", None, [], 0)], alone=False)
    played.holds()
    world = played.world
    (worker,) = played.living
    since = world.stage.now
    for queue in world.queues[:2]:
        world.hang(queue.name)
    worker.ask(STOP)
    world.advance(AT_ONCE_S)
    assert _held(played, 2) == 0
    while not worker.ended and world.stage.now < since + 60:
        world.advance(0.1)
    return world.stage.now - since


When = Callable[[Machine, int], None]


def _run(played: Machine, slots: int) -> list[Truth]:
    """Jobs of the first queue, in all slots."""
    played.enqueue(pick=0, many=[("sync", None, [], 0)] * slots, alone=False)
    played.holds()
    return list(played.world.jobs)


def _send_report(played: Machine) -> None:
    """As the reporter of the first queue does it, in a thread of its own."""
    (worker,) = played.living
    played.world.sending.enter_context(worker.child.routes[0].reporter.sending())


def _held(played: Machine, pick: int) -> int:
    keys = played.world.queues[pick].keys
    return execute(played.client, commands.counts(keys)).held


def _hang(played: Machine) -> None:
    played.world.hang(played.world.queues[0].name)
