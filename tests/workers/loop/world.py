"""A server, its queues, the workers on a stage, and the truth about every job."""

from __future__ import annotations

import asyncio
import logging
import os
import traceback
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import redis

from rqueue.client._sync.queue import Queue
from rqueue.model.job import parse_value
from rqueue.protocol import consumer_state, server_clock
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.scripts import Scripts
from rqueue.tasks.context import current_job
from rqueue.tasks.control import Reject, Retry, Snooze
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage
from rqueue_workers.worker import (
    attempt,
    demand,
    departure,
    dispatcher,
    hearing,
    isolation,
    news,
    outage,
    recycling,
    route,
    shutdown,
    standby_thread,
    subscription,
    under_way,
)
from rqueue_workers.worker import worker as worker_module
from rqueue_workers.worker.executors import base, event_loop, main_thread, threads
from rqueue_workers.worker.task_plans import ASYNC, plan_of
from tests.workers.loop.process import StageConnection, Worker
from tests.workers.loop.server_line import ServerLine
from tests.workers.loop.stage import Gone, Spinning, Stage
from tests.workers.loop.truth import Truth

LEASE_MS = 30_000
CAUSE = b'{"kind":"crash","type":"SIGKILL"}'

SINCE_MS = 60_000_000_000
"""From the frozen clock's beginning to a time at which jobs may be stored."""


class World:
    """Queues on a server whose clock is the stage's, and workers for them. apart: the workers have
    a route to each queue, as on a cluster, and what becomes of one is not the others' trouble."""

    def __init__(
        self, client: redis.Redis, url: str, scripts: Scripts, queues: int, apart: bool = False
    ) -> None:
        self.stage = Stage()
        self.client = client
        self.url = url
        self.scripts = scripts
        tag = uuid.uuid4().hex[:10]
        self.queues = [Queue(f"loop{i}-{tag}", redis=client) for i in range(queues)]
        self.workers: list[Worker] = []
        self.jobs: list[Truth] = []
        self.apart = apart
        self.away: set[str] = set()
        """The queues that cannot be reached."""
        self.hung: dict[str, float] = {}
        """The queues whose Redis answers nothing, and keeps its connections open; since when."""
        self.sending = ExitStack()
        """What jobs report is being sent, until this is closed."""
        self.paused: set[str] = set()
        self._clock_ms = -1
        self._line = ServerLine(client)
        self._patches = ExitStack()
        self.log: list[str] = []
        self.ran: Counter[object] = Counter()
        """How often the workers had a script run, by its SHA."""
        self.overtaken: list[str] = []
        self.not_alone: list[str] = []
        self.not_theirs: list[str] = []
        """Jobs that began although they were others', cancelled or expired."""
        self._held_at: dict[tuple[str, str], float] = {}
        """When a job was seen to be held by a consumer, last."""

    # -- the stage is set --------------------------------------------------------------------------

    def open(self) -> None:
        """Everything that the worker waits with becomes the stage's."""
        stage = self.stage
        put = self._patches.enter_context
        for module in (
            attempt, base, demand, departure, dispatcher, hearing, isolation, main_thread, outage,
            recycling, route, shutdown, standby_thread, subscription, under_way, consumer_state,
            server_clock, worker_module,
        ):  # fmt: skip
            put(patch.object(module, "monotonic", stage.monotonic))
        put(patch("rqueue.protocol.scripts.SCRIPTS", self.scripts))
        for name in ("rqueue.transport.wake_listener", "rqueue.transport.connection"):
            put(patch(f"{name}.readable", stage.readable))
        put(patch("threading.Thread.start", lambda thread: stage.start(thread)))
        put(patch.object(outage, "random", lambda: 0.5))
        for module in (hearing, shutdown):
            put(patch.object(module, "readable", stage.readable))
        for module in (news, standby_thread):
            put(patch.object(module, "threading", stage.module_threading()))
        put(patch.object(hearing, "new_lock", stage.lock))
        put(patch.object(threads, "SimpleQueue", stage.simple_queue))
        put(patch.object(event_loop, "_new_loop", self._loop))
        for module in (threads, event_loop, standby_thread):
            put(patch.object(module, "fail_hard", self._fail_hard))
        put(patch.object(departure, "os", SimpleNamespace(_exit=self._exit, getpid=os.getpid)))
        put(patch.object(route, "connection_for", self._connection))
        put(patch.object(route, "is_cluster", lambda _client: self.apart))
        put(patch.object(worker_module, "load_plans", self._plans))
        put(patch.object(worker_module, "Stop", self._remember("stop", worker_module.Stop)))
        put(patch.object(worker_module, "Worker", self._remember("child", worker_module.Worker)))
        handler = _Log(self)
        for name in ("rqueue", "asyncio"):
            logger = logging.getLogger(name)
            put(patch.object(logger, "handlers", [handler]))
            put(patch.object(logger, "propagate", False))
            put(patch.object(logger, "level", logging.DEBUG))
            logger.manager._clear_cache()  # type: ignore[attr-defined]

    def close(self) -> None:
        self.sending.close()
        for worker in self.workers:
            if not worker.ended:
                worker.die()
            worker.dead = True
            self.mourn(worker)
        self._patches.close()
        self._line.close()
        for queue in self.queues:
            found = list(self.client.scan_iter(queue.keys.base + "*", count=10_000))
            if found:
                self.client.delete(*found)
            queue.close()

    def mourn(self, worker: Worker) -> None:
        """What the kernel does when a process dies: everything that it had open is closed."""
        for job in self.jobs:
            job.runs = [one for one in job.runs if one is not worker]
        self.stage.dismiss(worker)
        for connection in worker.connections:
            connection.close()
        for executor in worker.child.executors.values() if worker.child is not None else ():
            executor.todo.clear()
        for loop in worker.loops:
            if not loop.is_closed():
                for left in asyncio.all_tasks(loop):
                    left._log_destroy_pending = False  # type: ignore[attr-defined]
                    with suppress(BaseException):  # not later, in another thread
                        left.get_coro().close()  # type: ignore[union-attr]
                loop.close()

    def _connection(
        self, client: redis.Redis, keys: QueueKeys, timeout: float | None, **_of_clusters: object
    ) -> StageConnection:
        return StageConnection(self, client, keys.queue, timeout)

    def _loop(self) -> asyncio.AbstractEventLoop:
        loop = self.stage.event_loop()
        self._owner().loops.append(loop)
        return loop

    def _remember(self, name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any) -> Any:
            thing = make(*arguments)
            actor = self.stage.me
            assert actor is not None
            setattr(actor.owner, name, thing)
            return thing

        return made

    def _plans(self, spec: WorkerSpec, held: Any) -> dict[str, Any]:
        actor = self.stage.me
        assert actor is not None
        registry = Registry()
        for name in actor.owner.tasks:
            play: Any = self._aplay if name == "loop" else self._play
            task(name=name, registry=registry, ack="early" if name == "early" else "late")(play)
        plans = [plan_of(task, spec, held) for task in registry]
        return {plan.name: plan for plan in plans if plan.executor != ASYNC or spec.async_slots}

    def _fail_hard(self, _page: StatusPage) -> None:
        if self.stage.me is None:
            raise Gone  # what is left of a dead process is swept up
        owner = self._owner()
        if not owner.dead:
            owner.faults.append(traceback.format_exc())
            owner.die(70)
        raise Gone

    def _exit(self, code: int) -> None:
        self._owner().die(code)
        raise Gone

    def _owner(self) -> Worker:
        actor = self.stage.me
        assert actor is not None
        owner: Worker = actor.owner
        return owner

    def note(self, what: str) -> None:
        """Keep it for those who have to find out what happened."""
        self.log.append(f"{self.stage.now:.6f} {what}")

    def fall(self, *queues: str) -> None:
        """Redis cannot be reached any more for these queues, or for all, until `rise`."""
        self.away.update(queues or [queue.name for queue in self.queues])
        for worker in self.workers:
            for connection in worker.connections:
                if connection.queue in self.away and connection.socket is not None:
                    connection.socket.shutdown(2)

    def rise(self) -> None:
        """Redis can be reached again, and hangs no more."""
        self.away.clear()
        self.hung.clear()
        self.sending.close()
        for worker in self.workers:
            for connection in worker.connections:
                connection.go_on()

    def hang(self, queue: str) -> None:
        """The Redis of a queue answers nothing, until `rise`."""
        self.hung[queue] = self.stage.now

    def number(self, name: str) -> int:
        """Which of the queues has this name."""
        return [queue.name for queue in self.queues].index(name)

    # -- time --------------------------------------------------------------------------------------

    def tell_time(self) -> bool:
        """Redis's clock is the stage's; whether it was another one before."""
        ms = SINCE_MS + int(self.stage.now * 1000)
        if ms == self._clock_ms:
            return False
        self._clock_ms = ms
        self._line.tell([queue.keys.meta for queue in self.queues], ms)
        return True

    def advance(self, seconds: float) -> None:
        """Let time pass, step by step, and everybody do what is due."""
        end = self.stage.now + seconds
        turns = 0
        while True:
            self.settle()
            turns += self.stage.turns
            if turns > 500 + 1000 * seconds * len(self.workers):
                raise Spinning(f"{turns} turns in {seconds} s:\n{self.stage.stacks()}")
            at = self.stage.next_at()
            if at is None or at >= end:
                break
            self.stage.now = max(self.stage.now, at)
        self.stage.now = end
        self.settle()

    def catch_up(self) -> None:
        """Wait until the server has read what was sent so far, and its answers have arrived."""
        self._line.catch_up()

    def settle(self) -> None:
        """Let everybody go on as far as they can now; leases are renewed, the dead are mourned."""
        if self.tell_time():  # all that was sent before has been read by now
            self._line.end_turn()
        else:
            self.catch_up()
        self.stage.settle()
        for worker in self.workers:
            if worker.dead and self.stage.of(worker):
                self.mourn(worker)

    # -- jobs --------------------------------------------------------------------------------------

    def _begin(self, number: int) -> Truth:
        job = self.jobs[number]
        if self._owner().dead:
            raise Gone  # it went on behind one that its death has ended
        job.begins.append(self._owner().base)
        self.note(f"{job.begins[-1]} begins {job.id}")
        self._look_for_overtaken(job)
        self._look_for_company(job)
        self._look_whose(job)
        job.runs.append(self._owner())
        at = self.number(job.queue)
        if self._owner().lost.get(at) == self._owner().page.rejoins(at):
            job.excuses += 1
        return job

    def _look_for_overtaken(self, job: Truth) -> None:
        """Where one slot of one worker is all there ever was, jobs begin in their order."""
        worker = self._owner()
        alone = worker.spec.threads <= 1 and not worker.lost and len(self.workers) == 1
        if not alone or job.task != "sync" or len(job.begins) > 1 or not job.plain:
            return
        for other in self.jobs[: job.number]:
            waits = not other.begins and not other.cancelled
            if waits and other.plain and (other.queue, other.task) == (job.queue, job.task):
                self.overtaken.append(f"{job.id} begins before {other.id}")

    def look_who_holds(self) -> None:
        """To be called before anything takes a job from its consumer."""
        for queue in self.queues:
            for name in self.client.zrange(queue.keys.consumers, 0, -1):
                for id_ in self.client.lrange(queue.keys.held(name.decode()), 0, -1):
                    self._held_at[id_.decode(), name.decode()] = self.stage.now

    def _look_whose(self, job: Truth) -> None:
        """A job begins where it is held, and while it lives. A moment ago is as good; while Redis
        is gone a part of the lease is."""
        owner, now = self._owner(), self.stage.now
        if job.task == "early":
            return  # it was acked
        at = self.number(job.queue)
        subscription, name = owner.child.dispatcher.subscriptions[at], owner.consumer(at)
        away = subscription.route.away or job.queue in {*self.away, *self.hung}
        allowed = max(LEASE_MS / 3000 if away else 0.0, subscription.trust_s)
        if now > job.expires + 0.002:
            self.not_theirs.append(f"{job.id} begins {now - job.expires} s after it expired")
        held = self.client.lrange(self.queues[at].keys.held(name), 0, -1)
        gone = now - self._held_at.get((job.id, name), 0.0)
        if job.id.encode() not in held and gone > allowed:
            self.not_theirs.append(f"{job.id} begins, and was not {name}'s for {gone} s")

    def _look_for_company(self, job: Truth) -> None:
        """A job that was charged with a crash runs alone, and is settled before another begins."""
        owner, context = self._owner(), current_job()
        assert context is not None
        beside = [other for other in self.jobs if owner in other.runs]
        if owner.alone is not None:
            before, consumer, deliveries = owner.alone
            if before in beside:
                self.not_alone.append(f"{job.id} begins beside {before.id}, which crashed before")
            elif before.queue != job.queue and before.queue in {*self.hung, *self.away}:
                pass  # others are served while nobody can say it
            elif self._holds(before, consumer, deliveries):
                self.not_alone.append(f"{job.id} begins before {before.id} is settled")
            else:
                owner.alone = None
        if context.crashes:
            if beside:
                self.not_alone.append(f"{job.id} crashed before, and begins beside {beside}")
            owner.alone = job, owner.consumer(self.number(job.queue)), context.delivery

    def _holds(self, job: Truth, consumer: str, delivery: int) -> bool:
        """Whether a job is still held here by this delivery."""
        keys = next(queue.keys for queue in self.queues if queue.name == job.queue)
        if job.id.encode() not in self.client.lrange(keys.held(consumer), 0, -1):
            return False
        value: Any = self.client.hget(keys.jobs, job.id)
        return parse_value(value)[0].deliveries + 1 == delivery

    def _end(self, job: Truth) -> Any:
        if not job.verdict:
            job.verdict = job.verdicts.pop(0) if job.verdicts else "none"
        said = job.verdict
        job.runs.remove(self._owner())
        job.verdict = ""
        job.ends.append(said)
        self.note(f"{job.begins[-1]} ends {job.id}: {said}")
        match said:
            case "none":
                return None
            case "value":
                return {"job": job.number}
            case "error":
                raise ValueError("it went wrong")
            case "retry":
                raise Retry(0.0, "again")
            case "snooze":
                raise Snooze(0.5)
            case "reject":
                raise Reject("no")
            case "exit":
                raise SystemExit(3)
            case "interrupt":
                raise KeyboardInterrupt
        raise AssertionError(said)

    def _play(self, number: int) -> Any:
        job = self._begin(number)
        if job.lasts is None:
            self.stage.wait(lambda: job.may_end)
        elif job.lasts:
            self.stage.wait(lambda: False, job.lasts)
        return self._end(job)

    async def _aplay(self, number: int) -> Any:
        job = self._begin(number)
        try:
            if job.lasts is None:
                loop = asyncio.get_running_loop()
                job.future = (loop, loop.create_future())
                job.verdict = await job.future[1]
            elif job.lasts:
                await asyncio.sleep(job.lasts)
        except asyncio.CancelledError:
            job.runs.remove(self._owner())
            job.ends.append("cancelled")
            raise
        finally:
            job.future = None
        return self._end(job)


class _Log(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        actor = self._world.stage.me
        self._world.note(f"{actor}: {self.format(record)}")
