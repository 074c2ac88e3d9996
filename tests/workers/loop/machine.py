"""Workers on a stage, driven at random; after each step everything that must hold is looked at."""

from __future__ import annotations

import os
import sys
from typing import Any, ClassVar

import redis
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from rqueue.errors import RegistrationLost
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.scripts import Scripts
from rqueue.settings import Settings
from rqueue.transport.redis_client import execute
from rqueue_workers.exit_codes import Exit
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import DRAIN, READY, STOP
from tests.support import invariants
from tests.support.snapshot import take_snapshot
from tests.workers.loop.world import AGAIN, CAUSE, LEASE_MS, Truth, Worker, World

DRAIN_S = 3.0

ENDED_LEASE = 2 * LEASE_MS // 1000
"""Half seconds until what a worker holds that could not leave in order is given to others."""

some = st.integers(0, 11)
lasting = st.sampled_from([0.0, 0.0, 0.0, None, None, 0.002, 0.03, 0.4])
"""Seconds that an attempt takes; None: until it is told."""
verdicts = st.lists(
    st.sampled_from(
        ["none", "none", "value", "error", "retry", "snooze", "reject", "exit", "interrupt"]
    ),
    max_size=2,
)
specs = st.fixed_dictionaries(
    {
        "threads": st.sampled_from([0, 2, 1, 0, 4]),
        "async_slots": st.sampled_from([2, 1, 0]),
        "strict": st.sampled_from([False, False, True]),
        "prefetch": st.sampled_from([0, 0, 1, 5]),
        "max_jobs": st.sampled_from([0, 0, 0, 4]),
    }
)
jobs = st.tuples(
    st.sampled_from(["sync", "sync", "loop", "rare", "nobody"]),
    lasting,
    verdicts,
    st.sampled_from([0, 0, 0, 0, 500]),
)


class Machine(RuleBasedStateMachine):
    """One or two queues, up to two workers."""

    client: ClassVar[redis.Redis]
    url: ClassVar[str]
    scripts: ClassVar[Scripts]

    def __init__(self) -> None:
        super().__init__()
        self.world: World
        self.sound = True
        self.finale = True

    # -- the world ---------------------------------------------------------------------------------

    @initialize(queues=st.integers(1, 2), spec=specs, rare=st.booleans())
    def begin(self, queues: int, spec: dict[str, Any], rare: bool) -> None:
        self.world = World(self.client, self.url, self.scripts, queues)
        self.world.open()
        self.sound = False
        self.world.tell_time()
        self._hire(spec, rare)

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

    def _hire(self, spec: dict[str, Any], rare: bool, loop: bool = True) -> Worker:
        world = self.world
        tasks = ["sync", *(["loop"] if loop else []), *(["rare"] if rare else [])]
        settings = Settings(url=world.url, lease_ms=LEASE_MS)
        names = tuple(queue.name for queue in world.queues)
        made = WorkerSpec(settings=settings, app=(), queues=names, drain=DRAIN_S, **spec)
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
        self.world.stage.choices.extend(choices or ())

    # -- rules -------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.living) < 2 and len(self.world.workers) < 6)
    @rule(spec=specs, rare=st.booleans())
    def hire(self, spec: dict[str, Any], rare: bool) -> None:
        """Another worker begins."""
        self.step()
        self._hire(spec, rare)

    @rule(pick=some, many=st.lists(jobs, min_size=1, max_size=6), alone=st.booleans())
    def enqueue(self, pick: int, many: list[tuple[Any, ...]], alone: bool) -> None:
        """Jobs come, one by one or all at once."""
        self.step()
        queue = self.world.queues[pick % len(self.world.queues)]
        puts = []
        for name, lasts, said, delay in many:
            number = len(self.world.jobs)
            job = Truth(number, queue.name, name, lasts, list(said), f"j{number}")
            job.plain = not delay
            self.world.jobs.append(job)
            puts.append(Put(job.id, b'["%s",[%d]]' % (name.encode(), number), 4, delay, 0, 3))
        for group in [[put] for put in puts] if alone else [puts]:
            execute(self.client, commands.enqueue(queue.keys, group))
            if alone:
                self.world.settle()

    @precondition(lambda self: self.waiting())
    @rule(pick=some, choices=st.lists(some, max_size=4), pauses=st.lists(st.booleans(), max_size=4))
    def finish(self, pick: int, choices: list[int], pauses: list[bool]) -> None:
        """A job that was waiting for it is told to end."""
        self.step(choices)
        self.world.stage.pauses.extend(pauses)
        waiting = self.waiting()
        self.tell(waiting[pick % len(waiting)])

    @precondition(lambda self: self.waiting())
    @rule(choices=st.lists(some, max_size=4))
    def finish_all(self, choices: list[int]) -> None:
        """All that run are told to end, in one instant."""
        self.step(choices)
        for job in self.waiting():
            self.tell(job)

    def waiting(self) -> list[Truth]:
        return [job for job in self.world.jobs if job.runs and job.lasts is None and not job.told]

    def tell(self, job: Truth) -> None:
        verdict = job.verdicts.pop(0) if job.verdicts else "none"
        loop, future = job.future or (None, None)
        if loop is not None and future is not None and not loop.is_closed():
            loop.call_soon_threadsafe(lambda: future.done() or future.set_result(verdict))
        else:
            job.verdict = verdict

    @rule(
        seconds=st.sampled_from([0.003, 0.003, 0.02, 0.1, 0.6, 2.5, 40.0]),
        choices=st.lists(some, max_size=4),
    )
    def pass_time(self, seconds: float, choices: list[int]) -> None:
        """Time passes; the supervisor renews what lives."""
        self.step(choices)
        self.let_pass(seconds)

    def let_pass(self, seconds: float) -> None:
        while seconds > 0:
            some_s = min(seconds, LEASE_MS / 3000)
            self.world.advance(some_s)
            self.renew()
            seconds -= some_s

    def renew(self) -> None:
        """What the supervisor does: an idle worker whose lease had ended hears nothing any more, so
        another one is to take its place."""
        living = {worker.consumer: worker for worker in self.living}
        gone: set[str] = set()
        for queue in self.world.queues:
            gone.update(
                execute(self.client, commands.renew(queue.keys, LEASE_MS, list(living))).gone
            )
        for name, worker in living.items():
            missed = name in gone and worker.page.phase == READY
            if missed and worker.missed and not worker.page.running():
                worker.ask(DRAIN)
            worker.missed = missed

    @precondition(lambda self: self.world.jobs)
    @rule(pick=some, held=st.booleans())
    def cancel(self, pick: int, held: bool) -> None:
        """A job is cancelled, wherever it is."""
        self.step()
        job = self.world.jobs[-1 - pick % len(self.world.jobs)]
        said = execute(self.client, commands.cancel(self.keys(job), job.id, held=held))
        job.cancelled |= said in ("ready", "scheduled", "held") and (said != "held" or held)

    @rule(pick=some)
    def pause_or_resume(self, pick: int) -> None:
        """A queue is paused, or goes on."""
        self.step()
        queue = self.world.queues[pick % len(self.world.queues)]
        if queue.name in self.world.paused:
            self.world.paused.discard(queue.name)
            execute(self.client, commands.resume(queue.keys))
        else:
            self.world.paused.add(queue.name)
            execute(self.client, commands.pause(queue.keys))

    @rule(
        pick=some,
        fault=st.sampled_from(
            ["lose call", "lose wake-up", "cut call", "break call", "break wake"]
        ),
    )
    def connection(self, pick: int, fault: str) -> None:
        """A connection fails, now or at its next command."""
        self.step()
        worker = self.one(pick)
        if worker is None or len(worker.connections) < 2:
            return
        calls, wakes = worker.connections[-2:]
        match fault:
            case "lose call":
                calls.lose = True
            case "lose wake-up":
                wakes.lose = True
            case "cut call":
                calls.cut = True
            case "break call" if calls.socket is not None:
                calls.socket.shutdown(2)
            case "break wake" if wakes.socket is not None:
                wakes.socket.shutdown(2)

    @rule(seconds=st.sampled_from([0.1, 2.0, 20.0, 40.0]))
    def outage(self, seconds: float) -> None:
        """Redis cannot be reached for a while."""
        self.step()
        world = self.world
        world.fall()
        world.advance(seconds)
        if seconds > LEASE_MS / 1000:
            for worker in self.living:
                self.excuse(worker)
        world.down = False
        self.renew()

    @rule(pick=some)
    def lose_lease(self, pick: int) -> None:
        """Somebody takes a worker for dead, and gives its jobs to others."""
        self.step()
        if worker := self.one(pick):
            self.take_back(worker, {})

    def excuse(self, worker: Worker) -> None:
        """What it began others may begin again, and what it begins before it knows."""
        worker.lost = worker.page.rejoins
        for job in self.world.jobs:
            if worker.base in job.begins:
                job.excuses += 1

    def take_back(self, worker: Worker, charged: dict[str, list[commands.Ran]]) -> None:
        self.excuse(worker)
        for queue in self.world.queues:
            keys = queue.keys
            try:
                while execute(
                    self.client,
                    commands.reclaim(keys, worker.consumer, CAUSE, charged.get(queue.name, [])),
                ).held:
                    pass
            except RegistrationLost:
                continue

    @rule(pick=some, level=st.sampled_from([DRAIN, DRAIN, STOP]))
    def ask_to_leave(self, pick: int, level: int) -> None:
        """The supervisor wants a worker to go."""
        self.step()
        worker = self.one(pick)
        if worker is not None and worker.stop is not None:
            worker.ask(level)

    @rule(pick=some)
    def kill(self, pick: int) -> None:
        """A worker dies from one moment to the next; its supervisor reclaims what it held."""
        self.step()
        if worker := self.one(pick):
            self._kill(worker)

    def _kill(self, worker: Worker) -> None:
        running = worker.page.running()
        worker.die()
        self.world.settle()
        charged: dict[str, list[commands.Ran]] = {}
        for one in running:
            charged.setdefault(self.world.queues[one.queue].name, []).append(commands.Ran(one.id))
        self.take_back(worker, charged)

    # -- what must hold ----------------------------------------------------------------------------

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
        for queue in world.queues:
            if queue.name in world.paused:
                execute(self.client, commands.resume(queue.keys))
        for worker in world.workers:
            for connection in worker.connections:
                connection.lose = connection.cut = False
        for _ in range(60 + ENDED_LEASE):
            for job in world.jobs:
                job.lasts = 0.0 if job.lasts is None else job.lasts
                if job.runs and not job.told:
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
