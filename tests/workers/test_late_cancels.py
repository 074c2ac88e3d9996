"""A cancel that comes when the job has ended already hits neither the next job nor the worker, and
who asked for it hears that the job has ended: with the moment made as late as it can be; and faults
of that, planted in the worker, are found."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from rqueue_workers.worker.current_job import INTERRUPT, CurrentJob
from rqueue_workers.worker.executors import main_thread as main_thread_module
from rqueue_workers.worker.executors import threads as threads_module
from rqueue_workers.worker.executors.base import Executor, Job
from rqueue_workers.worker.executors.main_thread import MainThreadExecutor
from rqueue_workers.worker.executors.threads import ThreadExecutor
from rqueue_workers.worker.prefetch import PrefetchWindow
from tests.support.patience import PATIENCE
from tests.support.planting import planted
from tests.workers.child_app import say
from tests.workers.children import WorkerFixture, eventually
from tests.workers.late_app import ASKED, DUE, STRUCK, LateLock, late

APP = "tests.workers.late_app"
Patch = pytest.MonkeyPatch
Scene = Callable[[WorkerFixture, Patch], str]


def knock_late(self: CurrentJob) -> None:
    """As `strike`: the job is the one that was cancelled, and by the knock it is not."""
    job = self.job
    if job is not None and job[0].stops.wanted.get(job[1]) == "stop":
        late(signal.pthread_kill)(self.main, INTERRUPT)


def behind_in_a_thread(workers: WorkerFixture, patch: Patch) -> str:
    """What a job says that a thread runs when the one before it is interrupted."""
    patch.setattr(threads_module, "new_lock", LateLock)
    return behind(workers, threads=1)


def behind_in_the_main_thread(workers: WorkerFixture, patch: Patch) -> str:
    patch.setattr(CurrentJob, "strike", knock_late)
    # who hears of the cancel knocks under the dispatcher's lock, which the main thread may need to
    # get on to the second job: here it knocks at its next look, as it does while a job runs on
    patch.setattr(CurrentJob, "revoke", lambda *_: None)
    return behind(workers, threads=0)


def behind(workers: WorkerFixture, threads: int) -> str:
    key = f"{workers.name}:k"
    workers.queue.pause()
    job = workers.send("late.first", key)
    workers.send("late.second", key)
    workers.child(app=(APP,), threads=threads)
    workers.queue.resume()
    assert workers.hear(key) == "in"
    job.cancel(running=True)
    return workers.hear(key)


def in_code_of_the_worker(workers: WorkerFixture, patch: Patch) -> str:
    """Whether the main thread goes on that is interrupted when its job has just returned."""
    patch.setattr(CurrentJob, "strike", knock_late)
    new = main_thread_module._new

    def last(*args: Any) -> Any:
        if not DUE.is_set():
            DUE.set()
            while not STRUCK.wait(0.01):
                pass
        return new(*args)

    patch.setattr(main_thread_module, "_new", last)
    key = f"{workers.name}:k"
    job = workers.send("late.first", key)
    child = workers.child(app=(APP,))
    assert workers.hear(key) == "in"
    job.cancel(running=True)
    next_ = workers.send("c.echo", 2)
    eventually(lambda: child.exited or str(next_.state()) == "done")
    return "died" if child.exited else "untouched"


class LateSlots(dict[int, Job]):
    """What runs in slots: a job that was cancelled leaves its own when it is to be stopped."""

    def pop(self, slot: int, *default: Any) -> Any:
        if self[slot].cancelled:
            say(self[slot].args[0], "leaves")
            ASKED.wait(PATIENCE)
        return super().pop(slot, *default)


def while_its_slot_is_left(workers: WorkerFixture, patch: Patch) -> str:
    """What is known of a job that leaves its slot when who stops it has just looked there."""
    revoke = Executor.revoke

    def revoked(self: Executor, job: Job) -> None:
        revoke(self, job)
        if job.force:
            ASKED.set()
        else:
            say(job.args[0], "cancelled")

    patch.setattr(Executor, "revoke", revoked)
    return leaving(workers, patch)


def when_its_slot_was_left(workers: WorkerFixture, patch: Patch) -> str:
    """What is known of a job that has left its slot when who stops it has just found it there."""
    revoke, sample = Executor.revoke, PrefetchWindow.sample

    def revoked(self: Executor, job: Job) -> None:
        if job.cancelled:
            ASKED.set()
            DUE.wait(PATIENCE)
        revoke(self, job)
        if not job.force:
            say(job.args[0], "cancelled")

    def sampled(self: PrefetchWindow, *args: Any) -> None:
        DUE.set()
        sample(self, *args)

    patch.setattr(Executor, "revoke", revoked)
    patch.setattr(PrefetchWindow, "sample", sampled)
    return leaving(workers, patch)


def leaving(workers: WorkerFixture, patch: Patch) -> str:
    init = ThreadExecutor.__init__

    def late_slots(self: ThreadExecutor, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        self.running = LateSlots()

    patch.setattr(ThreadExecutor, "__init__", late_slots)
    key = f"{workers.name}:k"
    job = workers.send("c.gate", key)
    workers.child(app=(APP,), threads=1)
    assert workers.hear(key) == "in"
    job.cancel()
    assert workers.hear(key) == "cancelled"
    workers.go(key)
    assert workers.hear(key) == "leaves"
    job.cancel(running=True)
    for number in range(3):  # by the second one it is reported
        assert workers.result("c.echo", number) == number
    stage = execute(workers.redis, commands.read_stop(workers.queue.keys, job.id)).stage
    return "untouched" if stage == "ended" else stage


SCENES: tuple[Scene, ...] = (
    behind_in_a_thread,
    behind_in_the_main_thread,
    in_code_of_the_worker,
    while_its_slot_is_left,
    when_its_slot_was_left,
)


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_late_cancel_hits_nothing(
    scene: Scene, workers: WorkerFixture, monkeypatch: Patch
) -> None:
    assert scene(workers, monkeypatch) == "untouched"
    assert workers.result("c.echo", 3) == 3
    assert not workers.children[0].exited


LEAVES = "    self.running.pop(slot, None)\n"
SAYS = "    if job.force:\n        subscription.stops.ended(job.id)\n"

FAULTS: dict[str, tuple[Scene, type, str, str, str]] = {
    "a thread is hit whatever it runs by now": (
        behind_in_a_thread,
        ThreadExecutor,
        "_interrupt",
        "self.running.get(slot) is job and ",
        "",
    ),
    "the main thread is hit whatever it runs by now": (
        behind_in_the_main_thread,
        MainThreadExecutor,
        "_interrupt",
        'job[0].stops.wanted.get(job[1]) == "stop" and ',
        "",
    ),
    "the main thread is hit wherever it is": (
        in_code_of_the_worker,
        MainThreadExecutor,
        "_interrupt",
        " and self._inside(job, frame)",
        "",
    ),
    "a slot looks whether its job is to be stopped before the job leaves it": (
        while_its_slot_is_left,
        Executor,
        "_end",
        LEAVES + SAYS,
        SAYS + LEAVES,
    ),
    "who stops a job does not look whether it has left its slot": (
        when_its_slot_was_left,
        Executor,
        "revoke",
        "if job.force and job not in",
        "if False and job not in",
    ),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_is_found(fault: str, workers: WorkerFixture, monkeypatch: Patch) -> None:
    scene, owner, name, right, wrong = FAULTS[fault]
    monkeypatch.setattr(owner, name, planted(owner, name, right, wrong))
    assert scene(workers, monkeypatch) != "untouched"
