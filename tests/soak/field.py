"""Everything that a soak has running: the server, pools of several kinds, producers, consumers."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.binaries import ServerBinary
from rqueue.inspector import Inspector
from tests.soak.programs import Keeper, Program, Run
from tests.soak.publisher import Publisher
from tests.soak.records import READY, read_records
from tests.soak.scenario import Scenario, Served
from tests.soak.servers import Server, wait_for
from tests.soak.tasks import LATE

QUEUES = ("main", "side", "order", "own", "aown")
ORDERED = ("order", "own", "aown")
"""Queues that are served by one process with one slot: there jobs begin in order."""

PRODUCERS = 3
"""How many programs the producers of the scenarios are spread over."""

CODE = "SOAK_CODE"
"""The variable that names the file which says what code a pool has."""

OLD = ("pool-sync", "pool-old")
"""Pools that do not know all tasks of their queues."""

DEPLOYED = "pool-new"
"""The pool that gets newer code now and then."""

KNOWN = ("tests.soak.async_tasks", "tests.soak.scenarios")
"""Modules with all tasks."""

SHARDS = 2
KEEP = "1h"
RATE = 12.0
"""Jobs a second and producer, in the mean; how often scenarios do something is in proportion."""

LEASE_S = 3.0
DRAIN_S = 5.0
READY_S = 180
"""Seconds that all of it may need to start, on a busy machine."""

HISTORY_ROWS = 5_000_000
"""More than a soak has jobs: its verdict reads them all."""

POOL = """\
app = {app}
queues = {queues}
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

    def __init__(
        self,
        binary: ServerBinary,
        folder: Path,
        seed: int,
        lease: float,
        scenarios: Sequence[Scenario] = (),
    ) -> None:
        self.seed = seed
        self.lease = lease
        self.folder = folder
        self.scenarios = scenarios
        self.run = Run(folder, f"{os.getpid()}-{folder.name}")
        self.recorder = self.run.recorder
        self.server = Server(binary, folder)
        self.keeper: Keeper
        self._relays: list[Program] = []
        self._never = threading.Event()

    def start(self, rate: float) -> None:
        """Start all of it. rate: jobs a second and producer, in the mean."""
        self.server.start()
        kept = {"history_rows_max": HISTORY_ROWS, "keep": KEEP}
        for name in QUEUES:
            self.queue(name).configure(**kept)
        for scenario in self.scenarios:
            for name, options in scenario.queues.items():
                self._configure(scenario, name, {**kept, **options})
            scenario.prepare(self)
        programs = [
            self._pool(OLD[0], ("main", "side"), processes=2),
            self._pool("pool-threads", ("main",), threads=4),
            self._pool("pool-order", ("order",), app=("tests.soak.tasks",)),
            *self._scenario_pools(),
            self._consumer("sync", "own"),
            self._consumer("async", "aown"),
            *self._relays,
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
            *self._scenario_producers(rate / RATE),
        ]
        self.keeper = Keeper(programs)
        self.keeper.start()

    def wait_ready(self) -> None:
        """Wait until every scenario has its producer, and every queue a consumer. Raises
        TimeoutError."""
        names = {scenario.name for scenario in self.scenarios}

        def ready() -> bool:
            records = read_records(self.run.records)
            return names <= {r["scenario"] for r in records if r["what"] == READY}

        wait_for(ready, READY_S)
        with self.inspector() as inspector:
            queues = self.plain_queues
            wait_for(lambda: all(inspector.queue(name).acquiring for name in queues), READY_S)

    def _configure(self, scenario: Scenario, name: str, options: dict[str, Any]) -> None:
        if scenario.served == "shards":
            with ShardedQueue(name, self.server.master.url, shards=SHARDS) as sharded:
                sharded.configure(**options)
        else:
            with self.queue(name) as queue:
                queue.configure(**options)

    def _scenario_pools(self) -> Iterator[Program]:
        """With old and with new code side by side, with one slot, and of shards."""
        queues = self.queues_of("pools")
        if queues:
            yield self._pool(OLD[1], queues, KNOWN, environment={CODE: "code-old"})
            self.deploy(DEPLOYED)
            code = {CODE: f"code-{DEPLOYED}"}
            yield self._pool(DEPLOYED, queues, KNOWN, processes=2, environment=code)
        for served in ("line", "shards"):
            if queues := self.queues_of(served):
                yield self._pool(f"pool-{served}", queues, KNOWN)

    def _scenario_producers(self, factor: float) -> Iterator[Program]:
        for place in range(PRODUCERS):
            names = ",".join(scenario.name for scenario in self.scenarios[place::PRODUCERS])
            if names:
                url = self.server.url("producers")
                arguments = [names, f"{factor:g}", str(self.seed), url]
                module = "tests.soak.scenario_producer"
                its = {"RQUEUE_URL": url}
                yield Program("producer", f"scenarios-{place}", module, arguments, self.run, its)

    def relay(self, database: str) -> None:
        """Have a relay run, from an outbox to the queues."""
        arguments = ["relay", database, "--poll", "200ms"]
        module = "rqueue.contrib.sqlalchemy"
        its = {"RQUEUE_URL": self.server.url("producers")}
        self._relays.append(Program("relay", "relay", module, arguments, self.run, its))

    def queues_of(self, served: Served) -> tuple[str, ...]:
        """The queues of scenarios that are served so."""
        return tuple(
            name
            for scenario in self.scenarios
            if scenario.served == served
            for name in scenario.queues
        )

    @property
    def plain_queues(self) -> tuple[str, ...]:
        """All queues that are one queue each."""
        return (*QUEUES, *self.queues_of("pools"), *self.queues_of("line"))

    def deploy(self, pool: str) -> None:
        """Let processes of a pool that begin from now on have newer code."""
        path = self.folder / f"code-{pool}"
        version = int(path.read_text()) + 1 if path.exists() else 1
        following = path.with_suffix(".next")
        following.write_text(str(version))
        following.replace(path)
        self.recorder.write("deployed", program=pool, version=version)

    def finish(self) -> None:
        """Let each scenario have what its producers left half done, and no more come."""
        url = self.server.master.url
        for scenario in self.scenarios:
            publisher = Publisher(scenario.name, self.seed, url, self.run.records)
            scenario.resume(publisher)
            publisher.close()
            scenario.finish(self)

    def queue(self, name: str) -> Queue:
        """A queue as the soak itself uses it: past the proxies; to be closed."""
        return Queue(name, self.server.master.url)

    def inspector(self) -> Inspector:
        """Who looks at all queues, past the proxies."""
        return Inspector(self.server.master.url)

    def retire_old_code(self, seconds: float) -> list[str]:
        """End the pools that do not know all tasks: what they parked goes to others; names of those
        that had to be killed."""
        return self.keeper.end("pool", seconds, *OLD)

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
        app: Sequence[str] = ("tests.soak.async_tasks",),
        processes: int = 1,
        threads: int = 0,
        environment: dict[str, str] | None = None,
    ) -> Program:
        path = self.folder / f"{name}.toml"
        path.write_text(
            POOL.format(
                app=list(app),
                queues=list(queues),
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
