"""What must hold of workers on a stage after each step, and that everything ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import redis
from hypothesis.stateful import RuleBasedStateMachine, invariant

from rqueue.protocol import commands
from rqueue.protocol.scripts import Scripts
from rqueue.settings import Settings
from rqueue.transport.redis_client import execute
from rqueue_workers.exit_codes import Exit
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import DRAIN, READY
from tests.support import invariants
from tests.support.snapshot import take_snapshot
from tests.workers.loop.process import Worker
from tests.workers.loop.truth import AGAIN, Truth
from tests.workers.loop.world import LEASE_MS, World

DRAIN_S = 3.0

ENDED_LEASE = 2 * LEASE_MS // 1000
"""Half seconds until what a worker holds that could not leave in order is given to others."""


SURE_S = LEASE_MS / 2000
"""Seconds that the lease of a frozen worker lasts for sure, whose last renewal was a while ago."""


class Watched(RuleBasedStateMachine):
    """Looks at the world after each step, and in the end lets everything end."""

    client: ClassVar[redis.Redis]
    url: ClassVar[str]
    scripts: ClassVar[Scripts]

    def __init__(self) -> None:
        super().__init__()
        self.world: World
        self.sound = True
        self.finale = True

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        try:
            if self.sound and self.finale:
                self.everything_ends()
        finally:
            if path := os.environ.get("RQUEUE_TEST_STAGE_LOG"):
                with open(path, "w") as file:
                    file.write("\n".join(self.world.log))
            self.world.close()

    def _hire(
        self, spec: dict[str, Any], rare: bool, loop: bool = True, early: bool = False
    ) -> Worker:
        world = self.world
        tasks = ["sync", *(["loop"] if loop else []), *(["rare"] if rare else [])]
        tasks += ["early"] if early else []
        settings = Settings(url=world.url, lease_ms=LEASE_MS)
        names = tuple(queue.name for queue in world.queues)
        weights = {names[0]: spec.get("weight", 1)}
        spec = {name: value for name, value in spec.items() if name != "weight"}
        made = WorkerSpec(
            settings=settings, app=(), queues=names, weights=weights, drain=DRAIN_S, **spec
        )
        worker = Worker(world, len(world.workers), made, tasks)
        world.workers.append(worker)
        world.stage.cast(f"{worker.base}-main", worker, worker.work)
        world.settle()
        return worker

    @property
    def living(self) -> list[Worker]:
        return [worker for worker in self.world.workers if not worker.ended]

    def one(self, pick: int) -> Worker | None:
        living = self.living
        return living[pick % len(living)] if living else None

    def step(self, choices: list[int] | None = None) -> None:
        self.sound = False
        self.world.note(f"-- {sys._getframe(1).f_code.co_name}")
        self.world.look_who_holds()
        self.world.stage.choices.extend(choices or ())

    def thaw_one(self, worker: Worker) -> None:
        """A frozen worker goes on."""
        worker.frozen = worker.presumed_dead = False

    def go_on(self) -> None:
        """Whatever hangs or is frozen goes on. Where that lasted longer than a lease, others may
        have the jobs."""
        world = self.world
        for name, since in list(world.hung.items()):
            if world.stage.now - since >= LEASE_MS / 1000:
                for worker in self.living:
                    self.excuse(worker, [world.number(name)])
        for worker in self.living:
            worker.freezes = 0
            if worker.frozen:
                self.thaw_one(worker)
        world.rise()

    def excuse(self, worker: Worker, queues: Sequence[int] | None = None) -> None:
        """What it began in these queues, or in all, others may begin again, and what it begins
        before it knows."""
        for at, queue in enumerate(self.world.queues):
            if queues is None or at in queues:
                worker.lost[at] = worker.page.rejoins(at)
                for job in self.world.jobs:
                    if job.queue == queue.name and worker.base in job.begins:
                        job.excuses += 1

    def waiting(self) -> list[Truth]:
        return [
            job for job in self.world.jobs if job.runs and job.lasts is None and not job.may_end
        ]

    def tell(self, job: Truth) -> None:
        verdict = job.verdicts.pop(0) if job.verdicts else "none"
        loop, future = job.future or (None, None)
        if loop is not None and future is not None and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: future.done() or future.set_result(verdict))
        else:
            job.verdict = verdict

    def let_pass(self, seconds: float) -> None:
        while seconds > 0:
            some_s = min(seconds, LEASE_MS / 3000)
            self.world.advance(some_s)
            self.renew()
            seconds -= some_s

    def renew(self) -> None:
        """What the supervisor does: a worker whose lease had ended may hear nothing of that queue
        any more, so it has to ask."""
        self.world.look_who_holds()
        for worker in self.living:
            if worker.frozen and not worker.presumed_dead and worker.frozen_s > SURE_S:
                worker.presumed_dead = True
                self.excuse(worker)
        for at, queue in enumerate(self.world.queues):
            if queue.name in self.world.away or queue.name in self.world.hung:
                continue
            living = {one.consumer(at): one for one in self.living if not one.frozen}
            renewal = commands.renew(queue.keys, LEASE_MS, list(living))
            gone = execute(self.client, renewal).gone
            for name, worker in living.items():
                if name not in gone or worker.page.phase != READY:
                    worker.missed.discard(at)
                elif at in worker.missed:
                    worker.doubt(at)
                else:
                    worker.missed.add(at)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        world.settle()
        for worker in world.workers:
            self.healthy(worker)
            if worker.code == Exit.UNFINISHED and not worker.excused:
                worker.excused = True
                self.excuse(worker)
        assert not world.overtaken, world.overtaken
        assert not world.not_alone, world.not_alone
        assert not world.not_theirs, world.not_theirs
        for queue in world.queues:
            snapshot = take_snapshot(self.client, queue.keys)
            mine = [job for job in world.jobs if job.queue == queue.name]
            wrong = invariants.of_state(snapshot, [job.id for job in mine])
            assert not wrong, wrong
            ends: dict[str, list[str]] = {}
            for row in snapshot.history:
                if row["outcome"] in ("ack", "reject", "dead", "cancelled"):
                    ends.setdefault(row["id"], []).append(row["outcome"])
            for job in mine:
                self.right(job, ends.get(job.id, []))
        self.sound = True

    def healthy(self, worker: Worker) -> None:
        said = "\n".join(self.world.log[-40:])
        assert not worker.faults, worker.faults
        assert worker.code != Exit.INTERNAL, f"{worker.base} failed:\n{said}"
        if worker.left:
            assert worker.asked or worker.spec.max_jobs, f"{worker.base} left unasked:\n{said}"

    def right(self, job: Truth, ends: list[str]) -> None:
        again = sum(said in AGAIN for said in job.ends)
        assert len(ends) <= 1, f"{job} ended {ends}"
        assert len(job.begins) <= 1 + again + job.excuses, f"{job} began without a cause"

    def everything_ends(self) -> None:
        """Whatever happened: with time, and workers who know the tasks, every job ends."""
        world = self.world
        self.go_on()
        for queue in world.queues:
            if queue.name in world.paused:
                execute(self.client, commands.resume(queue.keys))
        for worker in world.workers:
            for connection in worker.connections:
                connection.lose = connection.cut = False
        for _ in range(60 + ENDED_LEASE):
            for job in world.jobs:
                job.lasts = 0.0 if job.lasts is None else job.lasts
                if job.runs and not job.may_end:
                    self.tell(job)
            if not self.living:
                self._hire({"async_slots": 2}, True)
            self.let_pass(0.5)
            if all(job.task != "sync" for job in self.unended()):
                break
        else:
            raise AssertionError(f"{self.unended()} do not end")
        if self.unended():  # perhaps nobody knows their tasks: here is who does
            self.all_leave()
            self._hire({"async_slots": 2}, True)
            for _ in range(10 + ENDED_LEASE):
                self.let_pass(0.5)
                if all(job.task == "nobody" for job in self.unended()):
                    break
            left = [job for job in self.unended() if job.task != "nobody"]
            assert not left, f"{left} do not end"
        self.all_leave()
        self.holds()
        self.let_pass(LEASE_MS / 1000 + 1)  # of registrations whose reply was lost
        for queue in world.queues:
            consumers = take_snapshot(self.client, queue.keys).consumers
            assert not consumers, f"{list(consumers)} did not leave in order"

    def all_leave(self) -> None:
        for worker in self.living:
            worker.ask(DRAIN)
        self.let_pass(DRAIN_S + 1)
        assert not self.living, f"{[worker.base for worker in self.living]} do not leave"

    def unended(self) -> list[Truth]:
        live: set[bytes] = set()
        for queue in self.world.queues:
            dead = set(self.client.zrange(queue.keys.dead, 0, -1))
            stored = self.client.hgetall(queue.keys.jobs)
            live |= {id for id, value in stored.items() if value[:1] != b"!"} - dead
        return [job for job in self.world.jobs if job.id.encode() in live]

    def keys(self, job: Truth) -> Any:
        (queue,) = [queue for queue in self.world.queues if queue.name == job.queue]
        return queue.keys
