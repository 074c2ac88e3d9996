"""Worker processes for tests: forked from the test, without a supervisor."""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rqueue.client._sync.queue import Queue
from rqueue.model.history_batch import read_entry
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import READY, StatusPage
from rqueue_workers.worker import worker
from tests.support.patience import PATIENCE

APP = "tests.workers.child_app"


def eventually(look: Callable[[], Any], what: str = "it", patience: float = PATIENCE) -> Any:
    """Look again and again until it is true; returns what it was then."""
    end = time.monotonic() + patience
    pause = threading.Event()
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"{what} did not happen within {patience} s"
        pause.wait(0.005)


class ChildProcess:
    """One worker process. Its log is in `log`."""

    number = 0

    def __init__(self, spec: WorkerSpec, directory: Path, ready: bool = True) -> None:
        ChildProcess.number += 1
        self.base = f"w{os.getpid()}-{ChildProcess.number}"
        self.spec = spec
        self.page = StatusPage(spec.slots, len(spec.queues))
        self.log_file = directory / f"{self.base}.log"
        self.log_file.touch()
        self.code: int | None = None
        os.environ["CHILD_TEST_URL"] = spec.settings.url or ""
        parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            code = 99
            try:
                root = logging.getLogger()
                handler = logging.FileHandler(self.log_file)
                handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
                root.handlers[:] = [handler]
                root.setLevel(logging.INFO)
                sys.stdin = open(os.devnull)  # noqa: SIM115
                code = worker.run(spec, self.page, self.base, parent)
            finally:
                logging.shutdown()
                os._exit(code)
        if ready:
            eventually(lambda: self.page.phase == READY or self.exited, "the worker's start")
            assert self.code is None, f"{self.page.words}\n{self.log}"

    @property
    def log(self) -> str:
        return self.log_file.read_text()

    @property
    def exited(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def ask_to_leave(self, signal_: int = signal.SIGTERM) -> None:
        os.kill(self.pid, signal_)

    def wait(self) -> int:
        eventually(lambda: self.exited, f"the end of the worker ({self.log[-2000:]})")
        assert self.code is not None
        return self.code

    def leave(self) -> int:
        self.ask_to_leave()
        return self.wait()

    def kill(self) -> None:
        if not self.exited:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()


class WorkerFixture:
    """A queue on a server, and workers for it."""

    def __init__(self, url: str, name: str, directory: Path) -> None:
        self.url = url
        self.name = name
        self.queue = Queue(name, url)
        self.redis = self.queue.redis
        self.directory = directory
        self.children: list[ChildProcess] = []

    def child(self, *, ready: bool = True, **options: Any) -> ChildProcess:
        settings = options.pop("settings", None) or Settings(url=self.url, lease_ms=600_000)
        options.setdefault("app", (APP,))
        options.setdefault("queues", (self.name,))
        made = ChildProcess(WorkerSpec(settings=settings, **options), self.directory, ready)
        self.children.append(made)
        return made

    def send(self, task: str, *args: Any, **options: Any) -> Any:
        return self.queue.send(task, args, None, Options(**options))

    def result(self, task: str, *args: Any, **options: Any) -> Any:
        return self.send(task, *args, **options).result(PATIENCE)

    def hear(self, key: str) -> str:
        """The next thing that a job says."""
        for _ in range(round(PATIENCE / 4)):  # the client's own timeout is shorter
            heard = self.redis.blpop([key], 4)
            if heard is not None:
                return heard[1].decode()
        raise AssertionError(f"nothing heard on {key}: {[c.log for c in self.children]}")

    def heard(self, key: str) -> list[str]:
        """All that jobs have said."""
        return [one.decode() for one in self.redis.lrange(key, 0, -1)]

    def go(self, key: str) -> None:
        self.redis.rpush(key + ":go", 1)

    def counts(self) -> Any:
        return self.queue.counts()

    def settled(self) -> Any:
        """Wait until nobody holds anything, and nothing waits."""

        def look() -> Any:
            counts = self.counts()
            return counts if not (counts.held or counts.ready or counts.scheduled) else None

        return eventually(look, "an empty queue")

    def history(self, queue: str = "") -> list[dict[str, Any]]:
        key = (self.queue.at(queue) if queue else self.queue).keys.history
        return [
            row
            for _, fields in self.redis.xrange(key)
            for row in read_entry(fields, queue or self.name)
        ]

    def close(self) -> None:
        for made in self.children:
            made.kill()
        self.queue.close()
