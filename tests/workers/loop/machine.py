"""Workers on a stage, driven at random; after each step everything that must hold is looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from rqueue.errors import RegistrationLost
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.transport.redis_client import execute
from rqueue_workers.status_page import DRAIN, STOP
from tests.workers.loop.process import Worker
from tests.workers.loop.truth import Truth
from tests.workers.loop.watched import Watched
from tests.workers.loop.world import CAUSE, LEASE_MS, World

some = st.integers(0, 11)
lasting = st.sampled_from([0.0, 0.0, 0.0, None, None, 0.002, 0.03, 0.4])
"""Seconds that an attempt takes; None: until the machine ends it."""
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
        "weight": st.sampled_from([1, 1, 3]),
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


class Machine(Watched):
    """One or two queues, up to two workers, which have a route to all queues or one to each."""

    @initialize(queues=st.integers(1, 2), spec=specs, rare=st.booleans(), apart=st.booleans())
    def begin(
        self,
        queues: int,
        spec: dict[str, Any],
        rare: bool,
        apart: bool = False,
        early: bool = False,
    ) -> None:
        self.world = World(self.client, self.url, self.scripts, queues, apart)
        self.world.open()
        self.sound = False
        self.world.tell_time()
        self._hire(spec, rare, early=early)

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
        """One of the jobs that run until then ends."""
        self.step(choices)
        self.world.stage.pauses.extend(pauses)
        waiting = self.waiting()
        self.tell(waiting[pick % len(waiting)])

    @precondition(lambda self: self.waiting())
    @rule(choices=st.lists(some, max_size=4))
    def finish_all(self, choices: list[int]) -> None:
        """All jobs that run until then end, in one instant."""
        self.step(choices)
        for job in self.waiting():
            self.tell(job)

    @rule(
        seconds=st.sampled_from([0.003, 0.003, 0.02, 0.1, 0.6, 2.5, 40.0]),
        choices=st.lists(some, max_size=4),
    )
    def pass_time(self, seconds: float, choices: list[int]) -> None:
        """Time passes; the supervisor renews what lives."""
        self.step(choices)
        self.let_pass(seconds)

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
        route = pick % (len(worker.connections) // 2)
        calls, wakes = worker.connections[2 * route : 2 * route + 2]
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

    @rule(seconds=st.sampled_from([0.1, 2.0, 20.0, 40.0]), pick=some)
    def outage(self, seconds: float, pick: int = 0) -> None:
        """Redis cannot be reached for a while; on two routes, for one of the queues."""
        self.step()
        world = self.world
        met = list(range(len(world.queues)))
        if world.apart:
            met = [pick % len(met)]
        world.fall(*[world.queues[at].name for at in met])
        self.let_pass(seconds)
        if seconds > LEASE_MS / 1000:
            for worker in self.living:
                self.excuse(worker, met)
        world.rise()
        self.renew()

    @precondition(lambda self: self.world.apart and not self.world.hung)
    @rule(pick=some)
    def hang(self, pick: int) -> None:
        """The Redis of one queue answers nothing any more."""
        self.step()
        self.world.hang(self.world.queues[pick % len(self.world.queues)].name)

    @precondition(lambda self: self.world.hung)
    @rule()
    def recover(self) -> None:
        """It goes on."""
        self.step()
        self.go_on()

    @rule(pick=some, queue=st.sampled_from([-1, 0, 1]))
    def lose_lease(self, pick: int, queue: int = -1) -> None:
        """Another supervisor takes a worker for dead, in one queue or in all, and gives its jobs to
        others."""
        self.step()
        queues = range(len(self.world.queues))
        if worker := self.one(pick):
            self.take_back(worker, {}, [at for at in queues if queue in (-1, at)])

    def take_back(
        self,
        worker: Worker,
        charged: dict[str, list[commands.Ran]],
        queues: Sequence[int] | None = None,
    ) -> None:
        self.excuse(worker, queues)
        for at, queue in enumerate(self.world.queues):
            if queues is not None and at not in queues:
                continue
            ran = charged.get(queue.name, [])
            call = commands.reclaim(queue.keys, worker.consumer(at), CAUSE, ran)
            try:
                while execute(self.client, call).held:
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
