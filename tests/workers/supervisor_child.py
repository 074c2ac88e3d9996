"""A small worker for the tests of the supervisor: one slot, a fixed window, no retries.

It keeps what a worker promises its supervisor: it shows what it runs, drains when asked, says why
it cannot start.
"""

import importlib
import os
import select
import signal
import time
from collections import deque
from types import FrameType

from rqueue.codec import unpack
from rqueue.connection import open_client
from rqueue.consumer import Consumer
from rqueue.errors import RegistrationLost, ServerError
from rqueue.job import Delivery
from rqueue.keys import QueueKeys
from rqueue.listener import Listener
from rqueue.task import registry
from rqueue.wire import Wire
from rqueue_workers.exits import Exit
from rqueue_workers.shared import CONTINUE, DRAINING, LEAVING, READY, STOP, Shared, consumer_of
from rqueue_workers.spec import WorkerSpec

WINDOW = 8


class Interrupted(BaseException):
    """The drain deadline came, or a stop, while a job ran."""


class Child:
    def __init__(self, spec: WorkerSpec, shared: Shared, base: str) -> None:
        self.spec, self.shared, self.base = spec, shared, base
        assert spec.settings.url
        self.client = open_client(spec.settings.url)
        self.wire = Wire(self.client)
        self.stopping = False
        self.running = False
        self.pipe = os.pipe()
        os.set_blocking(self.pipe[1], False)
        self.done = 0

    def knocked(self, _number: int, _frame: FrameType | None) -> None:
        asked = self.shared.asked
        if self.stopping and asked != STOP:
            return
        self.stopping = True
        os.write(self.pipe[1], b"x")
        if self.running:
            signal.setitimer(signal.ITIMER_REAL, 0.001 if asked == STOP else self.spec.drain)

    def deadline(self, _number: int, _frame: FrameType | None) -> None:
        raise Interrupted

    def join(self) -> None:
        self.listener = Listener(Wire(self.client, timeout=None))
        self.consumers = [
            Consumer(
                self.client,
                QueueKeys(queue, self.spec.settings.namespace),
                name=consumer_of(self.base, self.shared.rejoins),
                jobs=self.spec.prefetch or WINDOW,
                lease_ms=self.spec.settings.lease_ms,
                slots=1,
                worker=self.base,
                renew=False,
                wire=self.wire,
                listener=self.listener,
            ).register()
            for queue in self.spec.queues
        ]

    def execute(self, index: int, job: Delivery) -> None:
        name, args, kwargs, opts = unpack(job.body)
        task = registry.get(name)
        now = time.monotonic()
        limit = opts.get("limit") or task.runs.limit or 0
        self.running = True
        self.shared.start(0, index, job.id.encode(), now, now + limit if limit else 0.0)
        try:
            if self.stopping:
                raise Interrupted
            result = task.function(*args, **kwargs)
        finally:
            self.running = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.shared.finish(0)
        self.consumers[index].settle(done=[(job, result)])
        self.done += 1
        self.shared.add_done(1)

    def work(self) -> int:
        jobs: deque[tuple[int, Delivery]] = deque()
        recall = False
        while not self.stopping:
            for index, consumer in enumerate(self.consumers):
                jobs += [(index, job) for job in consumer.pull(recall=recall)]
            recall, empty = False, not jobs
            while jobs and not self.stopping:
                index, job = jobs.popleft()
                try:
                    self.execute(index, job)
                except Interrupted:
                    self.consumers[index].release(job)
                    return Exit.UNFINISHED
                if 0 < self.spec.max_jobs <= self.done:
                    self.shared.set_phase(LEAVING)
                    return Exit.OK
            if empty and not self.stopping:
                for wake in self.listener.wait(None, self.pipe[0]):
                    for index, consumer in enumerate(self.consumers):
                        if wake.kind == "reconnected":
                            recall = True
                        elif consumer.name == wake.consumer and consumer.hear(wake) and wake.job:
                            jobs.append((index, wake.job))
        return Exit.OK


def run(spec: WorkerSpec, shared: Shared, base: str, parent_pid: int) -> int:
    try:
        for module in spec.app:
            importlib.import_module(module)
    except Exception as error:
        shared.last_words(f"cannot import the app: {error}")
        return Exit.APP
    child = Child(spec, shared, base)
    signal.signal(signal.SIGTERM, child.knocked)
    signal.signal(signal.SIGALRM, child.deadline)
    if shared.asked != CONTINUE:
        return Exit.OK
    joined = False
    while True:
        try:
            if not joined:
                child.join()
                joined = True
                shared.set_phase(READY)
            code = child.work()
            break
        except ServerError:
            if child.stopping:
                return Exit.OK
            select.select([child.pipe[0]], (), (), 0.05)
        except RegistrationLost:
            print(f"{base}: registration lost", flush=True)
            shared.rejoined()
            joined = False
    if shared.phase != LEAVING:
        shared.set_phase(DRAINING)
    for consumer in child.consumers:
        consumer.close()
    return code
