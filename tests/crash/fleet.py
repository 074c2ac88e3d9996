"""Queues on all nodes of a cluster under load, the pools that run their jobs, and what became of
them."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from rqueue.errors import DuplicateJob, ServerError
from rqueue.inspector.history import read_history
from rqueue.model.confirmation import Confirmation
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import open_client
from rqueue.transport.routed_connection import connection_for
from tests.crash.programs import start_pool
from tests.support import invariants
from tests.support.forked_program import ForkedProgram
from tests.support.marks import Marks
from tests.support.redis_cluster import ClusterNode, SmallCluster
from tests.support.snapshot import take_snapshot
from tests.workers.pools import eventually

EVERY_S = 0.005
"""Seconds between two jobs of one producer."""

AGAIN_S = 0.02
"""Seconds until a producer says again what was not accepted."""

PATIENT_S = 0.5
"""Seconds that a producer waits for an answer: by new jobs it is seen that pools go on."""


class Producer(threading.Thread):
    """Enqueues one job after the other into one queue; what fails is said again, with the same id.
    replicas: how many of them confirm each job before it counts as accepted."""

    def __init__(self, url: str, queue: str, replicas: int) -> None:
        super().__init__(name=f"producer of {queue}", daemon=True)
        self._keys = QueueKeys(queue)
        self._client = open_client(url, socket_connect_timeout=PATIENT_S)
        self._connection = connection_for(self._client, self._keys, PATIENT_S)
        self._confirm = Confirmation(replicas, False, 100) if replicas else None
        self._over = threading.Event()
        self.accepted: dict[str, float] = {}
        """Id -> when it was accepted, of the jobs that were."""
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            number = 0
            while not self._over.wait(EVERY_S):
                number += 1
                self._accept(f"{self._keys.queue}-{number:06}")
        except BaseException as error:
            self.failure = error
        finally:
            self._connection.close()
            self._client.close()

    def _accept(self, id_: str) -> None:
        call = commands.enqueue(self._keys, [Put(id_, b'["fleet.step"]')], confirm=self._confirm)
        while True:
            try:
                answer = self._connection.run(call, queue=self._keys.queue)
            except DuplicateJob:
                break
            except ServerError:
                if self._over.wait(AGAIN_S):
                    return
            else:
                if answer.unconfirmed is not None:
                    return  # it is stored, and nobody was promised that it stays
                break
        self.accepted[id_] = time.monotonic()

    def end(self) -> None:
        self._over.set()
        self.join()
        if self.failure is not None:
            raise self.failure


class Fleet:
    """Queues, producers, and pools of two workers that serve all the queues."""

    def __init__(
        self, cluster: SmallCluster, queues: Sequence[str], folder: Path, *, url: str = ""
    ) -> None:
        self.cluster = cluster
        self.queues = list(queues)
        self._url = url or cluster.cluster_url
        self._marks = Marks(folder / "marks")
        self._ends: dict[str, list[float]] = {queue: [] for queue in queues}
        self._folder = folder
        self._pools: list[ForkedProgram] = []
        self.producers: dict[str, Producer] = {}

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pool in self._pools:
            if pool.poll() is None:
                os.killpg(pool.pid, signal.SIGKILL)
                pool.wait()
        for producer in self.producers.values():
            producer.end()

    def pool(self, *options: str) -> ForkedProgram:
        """Start a pool, as an operator would."""
        arguments = ["tests.crash.fleet_app", *self.queues, "--lease", "10s", "--drain", "5s"]
        log = self._folder / f"pool{len(self._pools)}.log"
        marks = str(self._marks.path)
        self._pools.append(start_pool(log, self._url, *arguments, *options, FLEET_MARKS=marks))
        return self._pools[-1]

    @contextmanager
    def load(self, replicas: int = 0) -> Iterator[None]:
        """Producers enqueue into all queues, and jobs have begun to end in each of them."""
        for queue in self.queues:
            self.producers[queue] = Producer(self._url, queue, replicas)
            self.producers[queue].start()
        self.goes_on()
        yield
        for producer in self.producers.values():
            producer.end()

    def goes_on(self, jobs: int = 20, queues: Sequence[str] = ()) -> None:
        """Wait until so many more jobs have ended in each queue."""
        since = time.monotonic()
        for queue in queues or self.queues:
            eventually(
                lambda queue=queue: len(self.ends(queue, since)) >= jobs,  # type: ignore[misc]
                lambda queue=queue: f"{queue} does not go on\n{self.logs()}",  # type: ignore[misc]
            )

    def ends(self, queue: str, since: float = 0.0) -> list[float]:
        """When jobs of a queue ended."""
        for what, at, id_ in self._marks.news():
            if what == "end":
                self._ends[id_.rpartition("-")[0]].append(float(at))
        return sorted(at for at in self._ends[queue] if at >= since)

    def stall(self, queue: str, since: float, until: float) -> float:
        """The longest time, of that between two moments, in which no job of a queue ended."""
        moments = [since, *(at for at in self.ends(queue, since) if at <= until), until]
        return max(later - at for at, later in itertools.pairwise(moments))

    def first_end(self, queue: str, since: float) -> float:
        """When a job of a queue ended first after a moment."""
        eventually(lambda: bool(self.ends(queue, since)), self.logs)
        return self.ends(queue, since)[0]

    def logs(self) -> str:
        """What the pools said."""
        logs = sorted(self._folder.glob("pool*.log"))
        return "\n".join(log.read_text(errors="replace")[-6000:] for log in logs)

    # -- the end -----------------------------------------------------------------------------------

    def _left(self, queue: str) -> int:
        with self.node(queue).client() as client:
            stored: Any = client.hvals(QueueKeys(queue).jobs)
        return sum(value[:1] != b"!" for value in stored)

    def node(self, queue: str) -> ClusterNode:
        """Where a queue is."""
        return self.cluster.home(queue)

    def settled(self) -> None:
        """Wait until nothing waits or runs any more."""
        for queue in self.queues:
            eventually(
                lambda queue=queue: self._left(queue) == 0,  # type: ignore[misc]
                lambda queue=queue: f"{queue}: {self._left(queue)} left\n{self.logs()}",  # type: ignore[misc]
            )

    def lost(self, queue: str) -> set[str]:
        """Jobs that were accepted, and of which Redis knows nothing any more. Everything else that
        it knows must be sound."""
        keys = QueueKeys(queue)
        with self.node(queue).client() as client:
            snapshot = take_snapshot(client, keys)
            rows = list(read_history(client, keys))
        acked = Counter(row["id"] for row in rows if row["outcome"] == "ack")
        assert set(acked.values()) <= {1}, "a job ended twice"
        assert not [row for row in rows if row["outcome"] not in ("ack",)], rows
        lost = set(self.producers[queue].accepted) - set(acked)
        assert invariants.of_state(snapshot, set(acked)) == []
        return lost

    def twice(self, queue: str) -> set[str]:
        """Jobs that began more than once."""
        begins = Counter(id_ for what, _, id_ in self._marks.lines() if what == "begin")
        return {id_ for id_, times in begins.items() if times > 1 and id_.startswith(f"{queue}-")}

    def drained(self) -> None:
        """The pools leave in order."""
        for pool in self._pools:
            pool.send_signal(signal.SIGTERM)
        for pool in self._pools:
            assert pool.wait(60) == 0, self.logs()
