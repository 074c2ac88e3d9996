"""Everything that a soak has running: the server, pools of several kinds, producers, consumers."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import suppress
from pathlib import Path

from rqueue.client._sync.queue import Queue
from rqueue.embedded.binaries import ServerBinary
from rqueue.inspector import Inspector
from tests.soak.programs import Keeper, Program, Run
from tests.soak.servers import Server
from tests.soak.tasks import LATE

QUEUES = ("main", "side", "order", "own", "aown")
ORDERED = ("order", "own", "aown")
"""Queues that are served by one process with one slot: there jobs begin in order."""

LEASE_S = 3.0
DRAIN_S = 5.0
HISTORY_ROWS = 5_000_000
"""More than a soak has jobs: its verdict reads them all."""

POOL = """\
app = [{app}]
queues = [{queues}]
processes = {processes}
threads = {threads}
async_slots = 10
drain = "{drain:g}s"
name = "{name}"
url = "{url}"
lease = "{lease:g}s"
"""


class Field:
    """One soak, running. `lease`: seconds."""

    def __init__(self, binary: ServerBinary, folder: Path, seed: int, lease: float) -> None:
        self.seed = seed
        self.lease = lease
        self.folder = folder
        self.run = Run(folder, f"{os.getpid()}-{folder.name}")
        self.recorder = self.run.recorder
        self.server = Server(binary, folder)
        self.keeper: Keeper
        self._never = threading.Event()

    def start(self, rate: float) -> None:
        """Start all of it. rate: jobs a second and producer, in the mean."""
        self.server.start()
        for name in QUEUES:
            self.queue(name).configure(history_rows_max=HISTORY_ROWS, keep="1h")
        programs = [
            self._pool("pool-sync", ("main", "side"), processes=2),
            self._pool("pool-threads", ("main",), threads=4),
            self._pool("pool-order", ("order",), app="tests.soak.tasks"),
            self._consumer("sync", "own"),
            self._consumer("async", "aown"),
            self._producer("single", "main", rate),
            self._producer("loop", "main", rate),
            self._producer("background", "main", rate),
            self._producer("batch", "main", rate),
            self._producer("delayed", "main", rate),
            self._producer("single", "order", rate),
            self._producer("background", "order", rate / 2),
            self._producer("batch", "own", rate / 2),
            self._producer("single", "own", rate / 2),
            self._producer("loop", "aown", rate / 2),
            self._producer("loop", "side", rate / 4),
        ]
        self.keeper = Keeper(programs)
        self.keeper.start()

    def queue(self, name: str) -> Queue:
        """A queue as the soak itself uses it: past the proxies; to be closed."""
        return Queue(name, self.server.master.url)

    def inspector(self) -> Inspector:
        """Who looks at all queues, past the proxies."""
        return Inspector(self.server.master.url)

    def late_pool(self) -> None:
        """Start the pool that knows the task that nobody knew."""
        self.keeper.add(self._pool("pool-late", ("side",), environment={LATE: "1"}))

    def pools(self) -> list[Program]:
        """The pools that run just now."""
        return [pool for pool in self.keeper.of("pool") if pool.pid]

    def wait(self, seconds: float) -> None:
        """A pause between two looks at what nothing tells of."""
        self._never.wait(seconds)

    def a_worker(self, draw: random.Random) -> tuple[Program, int] | None:
        """A worker process and its pool; None where there is none just now."""
        found = [(pool, child) for pool in self.pools() for child in pool.children()]
        return draw.choice(found) if found else None

    def stop(self) -> None:
        """Leave no process behind, whatever happened."""
        self.keeper.stop()
        for pid in self.run.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for program in self.keeper.programs:
            program.end()
        self.server.stop()

    def _pool(
        self,
        name: str,
        queues: tuple[str, ...],
        app: str = "tests.soak.async_tasks",
        processes: int = 1,
        threads: int = 0,
        environment: dict[str, str] | None = None,
    ) -> Program:
        path = self.folder / f"{name}.toml"
        path.write_text(
            POOL.format(
                app=f'"{app}"',
                queues=", ".join(f'"{queue}"' for queue in queues),
                processes=processes,
                threads=threads,
                drain=DRAIN_S,
                name=name,
                url=self.server.url("pools"),
                lease=self.lease,
            )
        )
        arguments = ["--pool-file", str(path)]
        return Program("pool", name, "rqueue_workers", arguments, self.run, environment)

    def _consumer(self, way: str, queue: str) -> Program:
        url = self.server.url("consumers")
        arguments = [way, queue, f"{self.lease:g}s", url]
        return Program("consumer", f"consumer-{way}", "tests.soak.consumer", arguments, self.run)

    def _producer(self, way: str, queue: str, rate: float) -> Program:
        url = self.server.url("producers")
        arguments = [way, queue, f"{rate:g}", str(self.seed), url]
        return Program("producer", f"{way}-{queue}", "tests.soak.producer", arguments, self.run)
