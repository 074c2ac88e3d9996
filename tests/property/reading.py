"""One consumer's two connections, read in any order: what it begins is in the queue's order.

Real consumers on a real server, with connections and a listener that a test plays: a wake-up may be
on its way while a reply is read, a reply while jobs run; either may be lost.
"""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import patch

import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from rqueue.client._sync import consumer
from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.errors import ConnectionLost
from rqueue.model.job import Delivery
from rqueue.protocol import commands, consumer_calls, consumer_state, server_clock
from rqueue.protocol.commands import Put, ScriptCall
from rqueue.protocol.course import run_course
from rqueue.protocol.credit import WindowCredit
from rqueue.protocol.scripts import Scripts
from rqueue.protocol.wake import RECONNECTED, Wake
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker import attempt, demand, dispatcher, outage, subscription
from rqueue_workers.worker.current_job import CurrentJob
from rqueue_workers.worker.dispatcher import Dispatcher
from rqueue_workers.worker.route import Route
from rqueue_workers.worker.subscription import Subscription
from tests.support.run_script import run


class StagedConnection:
    """Sends the calls of one consumer. `loss`: of the next call, what is lost: it or its reply."""

    def __init__(self, client: redis.Redis, lua: Scripts) -> None:
        self._client = client
        self._lua = lua
        self._reply: Any = None
        self.loss = ""

    def begin(self, call: ScriptCall[Any]) -> None:
        if self.loss == "call":
            self.loss = ""
            raise ConnectionLost("the call was lost")
        self._reply = run(self._client, self._lua.script(call.script), call.keys, call.args)

    def finish(self, call: ScriptCall[Any], **_: str) -> Any:
        if self.loss == "reply":
            self.loss = ""
            raise ConnectionLost("the reply was lost")
        return call.read(self._reply)

    def run(self, call: ScriptCall[Any], **_: str) -> Any:
        self.begin(call)
        return self.finish(call)

    def close(self) -> None:
        """It has no connection of its own."""


class Clock:
    """What stands for `time.monotonic`: it goes on where a thread waits in vain, and only there.
    With a real one a wait of some ms would now find something to do first and now be over."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class StagedListener:
    """Hears what the test lets arrive; a wait takes one more wake-up, as a blocked command does."""

    def __init__(self, client: redis.Redis, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._keys: dict[str, str] = {}
        self._coming: list[Wake] = []
        self._stale = False

    def add(self, consumer: str, wake_key: str) -> None:
        self._keys[wake_key] = consumer

    def remove(self, wake_key: str) -> None:
        self._keys.pop(wake_key, None)

    def close(self) -> None:
        """It has no connection of its own."""

    def arrive(self) -> None:
        """A wake-up is taken off its list, and on its way."""
        for key, name in self._keys.items():
            element: Any = self._client.lpop(key)
            if element is not None:
                self._coming.append(Wake(name, element))

    def lose(self) -> None:
        """The connection is lost, with what was on its way."""
        self._coming.clear()
        self._stale = True

    def wait(self, timeout: float | None, interrupt: Any = None) -> list[Wake]:
        if self._stale:
            self._stale = False
            return [Wake(consumer, RECONNECTED) for consumer in self._keys.values()]
        if timeout and not self._coming:
            self.arrive()
        if not self._coming:
            self._clock.now += timeout or 0.0
            return []
        return [self._coming.pop(0)]


class Reading(RuleBasedStateMachine):
    """A consumer, and what it begins."""

    client: ClassVar[redis.Redis]
    lua: ClassVar[Scripts]

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(f"reading-{uuid.uuid4().hex[:12]}", redis=self.client)
        self.connection = StagedConnection(self.client, self.lua)
        clock = Clock()
        self.listener = StagedListener(self.client, clock)
        self._patches = ExitStack()
        for module in (
            attempt,
            consumer,
            consumer_calls,
            consumer_state,
            demand,
            dispatcher,
            outage,
            subscription,
            server_clock,
        ):
            self._patches.enter_context(patch.object(module, "monotonic", clock.monotonic))
        self.sent = 0
        self.begun: list[int] = []

    def teardown(self) -> None:
        try:
            if self.sent:
                self.work_off()
                assert self.begun == list(range(1, self.sent + 1))
        finally:
            self._patches.close()
            if found := list(self.client.scan_iter(self.queue.keys.base + "*", count=10_000)):
                self.client.delete(*found)

    def begin(self, job: Delivery) -> None:
        last = self.begun[-1] if self.begun else 0
        assert job.position > last, f"{job.position} begins behind {last}"
        self.begun.append(job.position)

    def work_off(self) -> None:
        """Let everything arrive and end."""
        raise NotImplementedError

    @rule(count=st.sampled_from([1, 1, 1, 2, 5]))
    def enqueue(self, count: int) -> None:
        puts = [Put(f"j{self.sent + i}", b'["t"]') for i in range(count)]
        call = commands.enqueue(self.queue.keys, puts)
        run(self.client, self.lua.script(call.script), call.keys, call.args)
        self.sent += count

    @rule()
    def arrive(self) -> None:
        self.listener.arrive()

    @rule(loss=st.sampled_from(["call", "reply", "reply", "wake-ups"]))
    def lose(self, loss: str) -> None:
        if loss == "wake-ups":
            self.listener.lose()
        else:
            self.connection.loss = loss


class LoneReading(Reading):
    """With a consumer of one's own."""

    @initialize(window=st.sampled_from([1, 2, 4, 100]), managed=st.booleans())
    def join(self, window: int, managed: bool) -> None:
        credit = WindowCredit(window) if managed else None
        connection: Any = self.connection
        listener: Any = self.listener
        self.consumer = Consumer(
            self.client, self.queue.keys, jobs=window, credit=credit, renew=False,
            connection=connection, listener=listener,
        ).register()  # fmt: skip
        self.window = window
        self.mine: list[str] = []

    def give(self, jobs: list[Delivery]) -> None:
        for job in jobs:
            self.begin(job)
            self.mine.append(job.id)

    @rule(timeout=st.sampled_from([0, 0.01]))
    def receive(self, timeout: float) -> None:
        if len(self.mine) < self.window and (job := self.consumer.receive(timeout)):
            self.give([job])

    @rule()
    def pull(self) -> None:
        try:
            jobs = self.consumer.pull()
        except ConnectionLost:
            known = set(self.mine)
            jobs = [job for job in self.consumer.pull(recall=True) if job.id not in known]
        self.give(jobs)

    @rule(count=st.integers(1, 3), pull=st.booleans())
    def settle(self, count: int, pull: bool) -> None:
        ids, self.mine = self.mine[:count], self.mine[count:]
        try:
            self.give(self.consumer.settle(ack=ids, pull=pull))
        except ConnectionLost:
            self.consumer.settle(ack=ids)  # said again: it may have been carried out
            if pull:
                known = set(self.mine)
                again = self.consumer.pull(recall=True)
                self.give([job for job in again if job.id not in known])

    def work_off(self) -> None:
        while len(self.begun) < self.sent:
            self.settle(len(self.mine), False)
            job = self.consumer.receive(10)
            assert job is not None, f"only {len(self.begun)} of {self.sent} jobs came"
            self.give([job])


class WorkerReading(Reading):
    """With a worker's subscription and dispatcher: the main thread runs the jobs, the stand-by
    thread looks on."""

    @initialize(window=st.sampled_from([1, 2, 4, 100]))
    def join(self, window: int) -> None:
        connection: Any = self.connection
        self.subscription = Subscription(0, self.queue.keys, connection, "w", StatusPage(1), window)
        parts: Any = SimpleNamespace(strict=False, weights={}, prefetch=0, plans={})
        listener: Any = self.listener
        self.subscription.route = Route(connection, connection)
        self.subscription.route.listener = listener
        self.dispatcher = Dispatcher(
            parts,
            [self.subscription],
            {},
            parts,
            [self.subscription.route],
            CurrentJob("w"),
            StatusPage(1),
        )
        self.dispatcher._poll_at = float("inf")  # it hears when the test says so
        joining = self.subscription.registering(
            "c", priority=0, lease_ms=600_000, slots=1, jobs=window
        )
        run_course(joining, self.subscription.run)
        self.dispatcher.listen(self.subscription)

    @rule(count=st.integers(1, 4))
    def run_some(self, count: int) -> None:
        for _ in range(min(count, len(self.subscription.todo))):
            id_, value, acquired = self.subscription.todo.popleft()
            self.begin(Delivery(id_, value))
            head = value.partition(b";")[0]
            self.subscription.acks.append((id_, value, head, "t", acquired, 0.0, 0.0))

    @rule()
    def post(self) -> None:
        self.dispatcher.post(self.subscription)

    @rule()
    def step(self) -> None:
        self.dispatcher.step(self.subscription)

    @rule()
    def attend(self) -> None:
        """A job runs long: the stand-by thread releases what waits behind it."""
        way = self.subscription.route
        self.dispatcher.guarded(way, self.dispatcher.clear, self.subscription)
        if self.subscription.pending:
            self.dispatcher.guarded(way, self.dispatcher._step, self.subscription, True)

    @rule(timeout=st.sampled_from([0, 0.01]))
    def hear(self, timeout: float) -> None:
        self.dispatcher.wait(timeout, 0)

    def work_off(self) -> None:
        for _ in range(20 * self.sent + 20):
            if len(self.begun) == self.sent:
                return
            self.run_some(4)
            self.dispatcher.step(self.subscription)
            self.dispatcher.wait(1, 0)
        raise AssertionError(f"only {len(self.begun)} of {self.sent} jobs began")
