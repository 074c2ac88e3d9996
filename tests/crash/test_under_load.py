"""Crashes at random moments, under load, with real processes: nothing lost, everything once.

After each: every job ended exactly once in the history, what was charged had begun, and the queue
holds nothing any more.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
import pytest

from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector.history import read_history
from rqueue.tasks.options import Options
from rqueue.tasks.workflow import chord
from tests.crash.app import step
from tests.crash.programs import start_pool
from tests.support import invariants
from tests.support.forked_program import ForkedProgram
from tests.support.marks import Marks
from tests.support.proxy import Proxy
from tests.support.snapshot import take_snapshot
from tests.workers.pools import eventually

JOBS = 1200
LEASE = "2s"

pytestmark = pytest.mark.timeout(180)


class Field:
    """A queue with jobs, the pools that run them, and the marks that the jobs leave."""

    def __init__(self, url: str, queue: str, folder: Path) -> None:
        self.url = url
        self.queue = Queue(queue, url)
        self.queues = [self.queue]
        self._marks = Marks(folder / "marks")
        self._lines: list[tuple[str, int, str]] = []
        self._ended: set[str] = set()
        self._folder = folder
        self.pools: list[ForkedProgram] = []
        self.ids: list[str] = []
        self.random = random.Random(queue)

    def pool(self, url: str = "") -> ForkedProgram:
        """Start a pool of two, as an operator would."""
        arguments = ["tests.crash.app", *(queue.name for queue in self.queues)]
        arguments += ["--lease", LEASE, "--drain", "5s"]
        log = self._folder / f"pool{len(self.pools)}.log"
        marks = str(self._marks.path)
        self.pools.append(start_pool(log, url or self.url, *arguments, CRASH_MARKS=marks))
        return self.pools[-1]

    def enqueue(self, jobs: int = JOBS) -> None:
        """Fill the queue with jobs of a millisecond or two."""
        calls = (Call("crash.step", (self.random.choice((0.5, 1, 2)),)) for _ in range(jobs))
        self.ids += [handle.id for handle in self.queue.enqueue_many(calls)]

    def enqueue_shares(self, small: int, jobs: int) -> None:
        """One share fills the queue, and as many others as `small` have a few jobs behind that."""
        for share, count in (("big", jobs), *((f"s{number}", 12) for number in range(small))):
            calls = (Call("crash.step", (1,), {}, Options(share=share)) for _ in range(count))
            self.ids += [handle.id for handle in self.queue.enqueue_many(calls)]

    def enqueue_chord(self, members: int) -> None:
        """A group, and a job that waits for all of it."""
        workflow = chord((step.si(0) for _ in range(members)), step.si(0))
        self.ids += self.queue.enqueue_workflow(workflow).ids

    def enqueue_chord_apart(self, members: int) -> None:
        """The same, its members by turns in two other queues."""
        self.queues += [self.queue.at(f"{self.queue.name}-{at}") for at in "ab"]
        last, *others = (step.options(queue=queue.name) for queue in self.queues)
        workflow = chord((others[n % 2].si(0) for n in range(members)), last.si(0))
        self.ids += self.queue.enqueue_workflow(workflow, spread=True).ids

    def lines(self) -> list[tuple[str, int, str]]:
        """The marks so far: begin or end, process, job."""
        for what, pid, id_ in self._marks.news():
            self._lines.append((what, int(pid), id_))
            if what == "end":
                self._ended.add(id_)
        return self._lines

    def ended(self) -> int:
        """How many jobs have ended at least once."""
        self.lines()
        return len(self._ended)

    def after(self, share: float) -> None:
        """Wait until this share of the jobs has ended at least once."""
        wanted = share * len(self.ids)
        eventually(
            lambda: self.ended() >= wanted,
            lambda: f"{self.queue.counts()}\n{self.logs()}",
        )

    def someone(self) -> int:
        """A worker process that lives and ended a job lately."""
        found: list[int] = []

        def lives() -> bool:
            pids = (pid for _, pid, _ in reversed(self.lines()))
            found.extend(islice((pid for pid in pids if psutil.pid_exists(pid)), 1))
            return bool(found)

        eventually(lives, self.logs)  # those that were killed may just have successors
        return found[0]

    def logs(self) -> str:
        """What the pools said."""
        return "\n".join(
            log.read_text(errors="replace")[-1500:] for log in self._folder.glob("pool*.log")
        )

    def _left(self) -> int:
        left = 0
        for queue in self.queues:
            counts = queue.counts()
            left += counts.ready + counts.scheduled + counts.held + counts.outgoing
            # a word from a queue that is looked at later may let one go that is deferred now
            left += counts.more.get("deferred", 0)
        return left

    def settled(self) -> None:
        """Wait until everything has ended, and judge."""
        eventually(lambda: self._left() == 0, lambda: f"{self.queue.counts()}\n{self.logs()}")
        rows = [row for queue in self.queues for row in read_history(queue.redis, queue.keys)]
        acked = Counter(row["id"] for row in rows if row["outcome"] == "ack")
        assert set(acked) == set(self.ids), "a job was lost, or one came from nowhere"
        assert set(acked.values()) == {1}, "a job ended twice"
        began = {id_ for what, _, id_ in self.lines() if what == "begin"}
        charged = {row["id"] for row in rows if row["outcome"] == "crash"}
        assert charged <= began, "a job was charged that had not begun"
        for queue in self.queues:
            assert queue.counts().dead == 0
            snapshot = take_snapshot(queue.redis, queue.keys)
            accepted = self.ids if len(self.queues) == 1 else None
            assert invariants.of_state(snapshot, accepted) == []

    def begun_twice(self) -> set[str]:
        """Jobs that began more than once."""
        begins = Counter(id_ for what, _, id_ in self.lines() if what == "begin")
        return {id_ for id_, times in begins.items() if times > 1}

    def close(self) -> None:
        """End everything that was started."""
        for pool in self.pools:
            if pool.poll() is None:
                os.killpg(pool.pid, signal.SIGCONT)
                os.killpg(pool.pid, signal.SIGKILL)
                pool.wait()
        self.queue.close()


@pytest.fixture
def field(server: EmbeddedRedis, queue_name: str, tmp_path: Path) -> Iterator[Field]:
    field = Field(server.url, queue_name, tmp_path)
    yield field
    field.close()


def test_workers_killed_again_and_again(field: Field) -> None:
    field.enqueue()
    field.pool()
    kills = 0
    for share in (0.1, 0.3, 0.5, 0.7):
        field.after(share + field.random.uniform(0, 0.1))
        os.kill(field.someone(), signal.SIGKILL)
        kills += 1
    field.settled()
    charged = {
        row["id"]
        for row in read_history(field.queue.redis, field.queue.keys)
        if row["outcome"] == "crash"
    }
    assert len(charged) <= kills, "one worker runs one job at a time: no more can be charged"


@pytest.mark.parametrize(
    "members",
    [1200, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(900)])],
)
def test_workers_and_pools_of_a_large_group_killed(field: Field, members: int) -> None:
    """None of its members is lost, and what waits for them runs once, after all of them."""
    field.enqueue_chord(members)
    callback = field.ids[0]
    first = field.pool()
    for share in (0.1, 0.3):
        field.after(share)
        os.kill(field.someone(), signal.SIGKILL)
    field.after(0.5)
    os.killpg(first.pid, signal.SIGKILL)
    field.pool()
    field.after(0.8)
    os.kill(field.someone(), signal.SIGKILL)
    field.settled()
    ends = [id_ for what, _, id_ in field.lines() if what == "end"]
    assert ends.index(callback) >= members
    assert ends.count(callback) == 1


@pytest.mark.parametrize(
    "members",
    [1200, pytest.param(20_000, marks=[pytest.mark.long, pytest.mark.timeout(900)])],
)
def test_workers_and_pools_of_a_group_over_queues_killed(field: Field, members: int) -> None:
    """Who brings a word of an end to another queue may die: it arrives, and counts once."""
    field.enqueue_chord_apart(members)
    callback = field.ids[0]
    field.pool()
    for share in (0.1, 0.2, 0.3, 0.4):
        field.after(share)
        os.kill(field.someone(), signal.SIGKILL)
    for share in (0.5, 0.7):
        field.after(share)
        os.killpg(field.pools[-1].pid, signal.SIGKILL)
        field.pool()
    field.after(0.9)
    os.kill(field.someone(), signal.SIGKILL)
    field.settled()
    ends = [id_ for what, _, id_ in field.lines() if what == "end"]
    assert ends.index(callback) >= members
    assert ends.count(callback) == 1


def test_workers_and_pools_of_shares_killed(field: Field) -> None:
    """Those of small shares do not wait for the large one, and each share keeps its order."""
    field.enqueue_shares(20, JOBS)
    first = field.pool()
    for share in (0.1, 0.25):
        field.after(share)
        os.kill(field.someone(), signal.SIGKILL)
    field.after(0.5)
    os.killpg(first.pid, signal.SIGKILL)
    field.pool()
    field.after(0.8)
    os.kill(field.someone(), signal.SIGKILL)
    field.settled()
    ends = [id_ for what, _, id_ in field.lines() if what == "end"]
    small = {*field.ids[JOBS:]}
    rows = [*read_history(field.queue.redis, field.queue.keys)]
    # what those had that were killed came back when their leases ended, behind many others
    once = {row["id"] for row in rows if row["outcome"] == "ack" and not row["deliveries"]}
    last = max(at for at, id_ in enumerate(ends) if id_ in small & once)
    assert last <= 3 * len(small), f"the last of {len(small)} ended behind {last} others"
    begun: dict[int, list[int]] = {}
    for what, pid, id_ in field.lines():
        if what == "begin" and id_ in once and id_ not in small:
            begun.setdefault(pid, []).append(field.ids.index(id_))
    assert all(places == sorted(places) for places in begun.values())


def test_the_supervisor_killed(field: Field) -> None:
    field.enqueue()
    first = field.pool()
    field.after(0.3)
    first.kill()
    field.pool()
    field.settled()


def test_the_whole_pool_killed(field: Field) -> None:
    field.enqueue()
    first = field.pool()
    field.after(0.3)
    os.killpg(first.pid, signal.SIGKILL)
    field.pool()
    field.settled()


def test_a_pool_frozen_longer_than_its_lease(field: Field) -> None:
    field.enqueue()
    first = field.pool()
    field.after(0.2)
    os.killpg(first.pid, signal.SIGSTOP)
    field.pool()
    # the other pool takes over what the frozen one held once its lease is over
    field.after(1.0)
    os.killpg(first.pid, signal.SIGCONT)
    field.settled()
    field.enqueue(100)
    field.settled()


def test_redis_killed_and_restarted_with_its_file(
    make_server: Callable[..., EmbeddedRedis], queue_name: str, tmp_path: Path
) -> None:
    server = make_server(persistent=True, config={"appendfsync": "always"})
    field = Field(server.url, queue_name, tmp_path)
    try:
        field.enqueue()
        field.pool()
        for share in (0.2, 0.6):
            field.after(share)
            server.kill()
            server.start()
        field.settled()
    finally:
        field.close()


def test_connections_cut_in_the_middle_of_replies(server: EmbeddedRedis, field: Field) -> None:
    with Proxy(server.url.removeprefix("unix://")) as proxy:
        field.enqueue()
        field.pool(proxy.url)
        for share in (0.1, 0.25, 0.4, 0.55, 0.7, 0.85):
            field.after(share)
            # somewhere inside of whatever is answered next, the supervisor's renewals included
            proxy.cut_reply(field.random.randrange(1, 400))
            assert proxy.wait_cut()
        field.settled()


def test_redis_unreachable_for_longer_than_a_lease(server: EmbeddedRedis, field: Field) -> None:
    with Proxy(server.url.removeprefix("unix://")) as proxy:
        field.enqueue()
        field.pool(proxy.url)
        field.after(0.2)
        proxy.refuse()
        # another pool, which reaches Redis, finds the leases ended and takes everything over
        field.pool()
        field.after(1.0)
        proxy.accept()
        field.settled()
        field.enqueue(200)
        field.settled()


def test_jobs_that_arrive_while_workers_die(field: Field) -> None:
    field.pool()
    feeding = threading.Thread(target=lambda: [field.enqueue(100) for _ in range(10)])
    feeding.start()
    for _ in range(3):
        eventually(lambda: len(field.lines()) > 20)
        os.kill(field.someone(), signal.SIGKILL)
    feeding.join()
    field.settled()


def test_what_a_clean_stop_leaves_is_exactly_what_is_left(field: Field) -> None:
    field.enqueue()
    first = field.pool()
    field.after(0.3)
    first.terminate()
    assert first.wait(30) == 0
    counts: Any = field.queue.counts()
    assert counts.held == 0
    assert counts.ready > 0
    field.pool()
    field.settled()
    assert field.begun_twice() == set(), "a drained pool releases only jobs that had not begun"
