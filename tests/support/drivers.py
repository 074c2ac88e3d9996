"""The three clients of the consumer protocol behind one face: `Consumer` itself, an asyncio one,
and a worker's subscription with its dispatcher. The conformance suite plays with each.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from time import monotonic
from types import SimpleNamespace
from typing import Any

import orjson

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.errors import LifecycleError, NotRegistered
from rqueue.model.causes import GAVE_UP
from rqueue.model.envelope import encode_result
from rqueue.model.job import Delivery
from rqueue.model.job_order import in_order
from rqueue.protocol.commands.settle import Retried, Window
from rqueue.protocol.consumer_calls import DEFAULT_LEASE_MS, consumer_name
from rqueue.protocol.course import run_course
from rqueue.protocol.policies.refusals import ELSEWHERE
from rqueue.protocol.settling import id_of, retried, text_of
from rqueue.protocol.wake import Wake
from rqueue.transport.routed_connection import connection_for
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker.current_job import CurrentJob
from rqueue_workers.worker.dispatcher import Dispatcher
from rqueue_workers.worker.outcome import Ack, Done, Unfinished
from rqueue_workers.worker.route import Route
from rqueue_workers.worker.subscription import Subscription

MEMORY = "memory"
REAL = ("consumer", "asyncio", "worker")
"""The clients of the protocol, each on a real server."""
GENERATED = REAL[:2]
"""Of these the one is generated from the other."""
CLUSTER = "cluster"
"""One of them, on a cluster."""
KINDS = (*REAL, MEMORY, CLUSTER)
"""And one on a server in memory, and one on a cluster of three masters."""


class LoopDriver:
    """An `AsyncConsumer`, each call run to its end on a loop of its own."""

    _PLAIN = frozenset({"drain", "close", "hear", "wait"})

    def __init__(self, queue: Queue, url: str, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._queue = self._loop.run_until_complete(self._open(queue.name, url))
        self._consumer = self._queue.consumer(**options)

    @staticmethod
    async def _open(name: str, url: str) -> AsyncQueue:
        return AsyncQueue(name, url)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._consumer, name)
        if name in self._PLAIN or not callable(found):
            return found
        return lambda *args, **options: self._await(found(*args, **options))

    def _await(self, call: Any) -> Any:
        result = self._loop.run_until_complete(call)
        return self if result is self._consumer else result

    def wait(self, timeout: float) -> list[Wake]:
        """Until something came: a settle ends the next wait, for other tasks' sake."""
        until = monotonic() + timeout
        while not (wakes := self._await(self._consumer.wait(max(0.0, until - monotonic())))):
            if monotonic() >= until:
                break
        return list(wakes)

    def drain(self) -> Iterator[list[Delivery]]:
        batches = self._consumer.drain()
        with suppress(StopAsyncIteration):
            while True:
                yield self._await(anext(batches))

    def close(self) -> None:
        if not self._loop.is_closed():
            self._await(self._consumer.close())
            self._await(self._queue.close())
            self._loop.close()


class Wakes:
    """Stands for the listener: takes what is in the wake list, when it is asked, and no more."""

    def __init__(self, queue: Queue) -> None:
        self._redis = queue.redis
        self._keys: dict[str, str] = {}

    def add(self, consumer: str, wake_key: str) -> None:
        self._keys[wake_key] = consumer

    def remove(self, wake_key: str) -> None:
        self._keys.pop(wake_key, None)

    def wait(self, timeout: float | None, interrupt: int | None = None) -> list[Wake]:
        for key, consumer in self._keys.items():
            element: Any = self._redis.lpop(key)
            if element is None and timeout:
                found: Any = self._redis.blpop([key], timeout)
                element = found and found[1]
            if element is not None:
                return [Wake(consumer, element)]
        return []


class WorkerDriver:
    """A worker's subscription and dispatcher: what waits to be begun is what a pull returns. A
    window is the test's, where a worker would compute one."""

    def __init__(
        self,
        queue: Queue,
        *,
        name: str = "",
        jobs: int = 1,
        bytes: int = 0,
        priority: int = 0,
        slots: int = 1,
        lease: float = DEFAULT_LEASE_MS / 1000,
        renew: bool = False,
        select: str = "",
    ) -> None:
        assert not renew
        self._called = name or consumer_name()
        self._join = {"priority": priority, "slots": slots, "lease_ms": round(lease * 1000)}
        self._join["select"] = select
        self._jobs = jobs
        self._calls = connection_for(queue.redis, queue.keys)
        self._wakes = Wakes(queue)
        self._subscription = Subscription(
            0, queue.keys, self._calls, self._called, StatusPage(1), bytes_window=bytes
        )
        parts: Any = SimpleNamespace(strict=False, weights={}, prefetch=0, plans={})
        wakes: Any = self._wakes
        self._subscription.route = Route(self._calls, self._calls)
        self._subscription.route.listener = wakes
        self._dispatcher = Dispatcher(
            parts, [self._subscription], {}, parts, [self._subscription.route],
            CurrentJob(self._called), StatusPage(1),
        )  # fmt: skip
        self._dispatcher.window = lambda *_: self._jobs  # type: ignore[method-assign]
        self._given: dict[str, tuple[bytes, int]] = {}
        """Id -> value, and when it came, of the jobs that the test was given."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._subscription, name)

    @property
    def name(self) -> str:
        return self._called

    @property
    def _state(self) -> Subscription:
        return self._subscription

    @property
    def refused(self) -> list[str]:
        return [id_.decode() for id_ in self._subscription.stale]

    @property
    def held(self) -> int:
        return len(self._subscription.unsettled)

    @property
    def more(self) -> bool:
        return self._subscription.state == "notified"

    def register(self) -> WorkerDriver:
        if self._subscription.term:
            raise LifecycleError("it is registered")
        joining = self._subscription.registering(self._called, jobs=self._jobs, **self._join)
        run_course(joining, self._subscription.run)
        self._dispatcher.listen(self._subscription)
        return self

    def close(self) -> None:
        if self._subscription.term:
            self._subscription.unregister()
            self._dispatcher.unlisten(self._subscription)
        self._calls.close()

    def _step(self) -> None:
        if not self._subscription.term:
            raise NotRegistered(self._called, queue=self._subscription.queue)
        self._dispatcher._poll_at = math.inf
        self._dispatcher._step(self._subscription, False)
        while self._hear_all() or self._subscription.pending or self._subscription.doubtful:
            self._dispatcher._step(self._subscription, False)

    def _hear_all(self) -> bool:
        """Hear what came before the jobs begin; whether a job went back with it."""
        while wakes := self._wakes.wait(0):
            for wake in wakes:
                self._dispatcher.hear(wake)
        return bool(self._subscription.back)

    def _begin(self) -> list[Delivery]:
        """All that waits to be begun."""
        began = []
        while self._subscription.todo:
            id_, value, acquired = self._subscription.todo.popleft()
            began.append(Delivery(id_, value))
            self._given[id_.decode()] = value, acquired
        return began

    def pull(self, *, recall: bool = False) -> list[Delivery]:
        if not recall:
            self._step()
            return self._begin()
        self._subscription.doubtful = True
        self._step()
        self._begin()
        held = self._subscription.unsettled.items()
        return sorted([Delivery(*job) for job in held], key=in_order)

    def wait(self, timeout: float | None = None) -> list[Wake]:
        """As the consumer's."""
        timer_at = self._subscription.timer_at
        if timer_at and timeout is not None:
            timeout = min(timeout, max(0.0, timer_at - monotonic()))
        return [wake for wake in self._wakes.wait(timeout) if self.hear(wake)]

    def hear(self, wake: Wake) -> bool:
        wake = Wake(self._dispatcher._label(self._subscription), wake.element)
        job = wake.job
        before = len(self._subscription.unsettled)
        self._dispatcher.hear(wake)
        self._begin()
        return job is None or len(self._subscription.unsettled) > before

    def interest(self, jobs: int, bytes: int = 0) -> str:
        self._jobs = jobs
        call = self._subscription.interest_call(Window(jobs, bytes))
        self._subscription._bytes_window = bytes
        queue = self._subscription.queue
        self._subscription.state = self._calls.run(call, queue=queue, consumer=self._called)
        return self._subscription.state

    def stop(self) -> list[Delivery]:
        self._jobs = 0
        return self.pull()

    def drain(self) -> Iterator[list[Delivery]]:
        while (jobs := self.pull()) or self.more:
            if jobs:
                yield jobs
        if last := self.stop():
            yield last

    def flush(self) -> list[Delivery]:
        return sorted([job for jobs in self.drain() for job in jobs], key=in_order)

    # -- what became of them -----------------------------------------------------------------------

    def settle(
        self,
        *,
        ack: Iterable[Delivery | str] = (),
        done: Iterable[tuple[Delivery | str, Any]] = (),
        retry: Iterable[Retried] = (),
        reject: Iterable[tuple[Delivery | str, dict[str, Any]]] = (),
        release: Iterable[Delivery | str] = (),
        pull: bool = False,
    ) -> list[Delivery]:
        """As the executors leave it, and as the dispatcher reports it."""
        subscription = self._subscription
        subscription.acks.extend(self._row(id_of(job)) for job in ack)
        subscription.dones.extend(
            Done(*self._row(id_of(job)), None, encode_result(result)) for job, result in done
        )
        for one in retry:
            name = orjson.loads(one.error or b"{}").get("type", "")
            uncounted = "refuse" if one.place == ELSEWHERE else "snooze"
            outcome = "retry" if one.charge else uncounted
            subscription.others.append(Unfinished(*self._row(text_of(one.id)), outcome, name, one))
        for job, cause in reject:
            said = orjson.dumps({"why": GAVE_UP, **cause})
            name = cause.get("type") or cause.get("kind") or ""
            row = self._row(id_of(job))
            subscription.others.append(Unfinished(*row, "reject", name, None, said))
        for job in release:
            id_ = id_of(job)
            subscription.back.append((id_.encode(), self._given.get(id_, (b"", 0))[0]))
        if pull:
            self._step()
            return self._begin()
        if not subscription.term:
            raise NotRegistered(self._called, queue=subscription.queue)
        subscription.settle(None)
        return []

    def _row(self, id_: str) -> Ack:
        value, acquired = self._given.get(id_) or (b"", 0)
        now = monotonic()
        return id_.encode(), value, value.partition(b";")[0], "t", acquired, now, now

    def ack(self, job: Delivery | str, result: Any = None) -> bool:
        self.settle(done=[(job, result)])
        return not self.refused

    def retry(
        self,
        job: Delivery | str,
        *,
        delay: float = 0,
        error: dict[str, Any] | None = None,
        place: str = "",
        charge: bool = True,
    ) -> bool:
        self.settle(retry=[retried(job, delay, error, place, charge)])
        return not self.refused

    def release(self, job: Delivery | str) -> bool:
        self.settle(release=[job])
        return not self.refused

    def refuse(self, job: Delivery | str) -> bool:
        self.settle(retry=[retried(job, 0, None, ELSEWHERE, False)])
        return not self.refused

    def reject(self, job: Delivery | str, reason: str, kind: str = "rejected") -> bool:
        cause = {"kind": kind, "type": "", "message": reason, "at": self.now, "worker": self.worker}
        self.settle(reject=[(job, cause)])
        return not self.refused


def make_driver(kind: str, queue: Queue, url: str, **options: Any) -> Any:
    """A consumer that is not registered yet. A worker never browses, and has no manager of credit:
    where a test asks for these it gets a consumer of its own."""
    if kind == "asyncio":
        return LoopDriver(queue, url, **options)
    if kind == "worker" and not options.keys() & {"mode", "credit"}:
        return WorkerDriver(queue, **options)
    return queue.consumer(**options)
