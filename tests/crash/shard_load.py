"""Jobs of several keys of a queue that is spread, the pools that run them, and what became of
them."""

from __future__ import annotations

import signal
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from types import TracebackType

import psutil

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.errors import ServerError, ShardsMoving
from rqueue.inspector.history import read_history
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from tests.crash.programs import start_pool
from tests.support.forked_program import ForkedProgram
from tests.support.marks import Marks
from tests.workers.pools import eventually

KEYS = 12


class Load:
    """Jobs of several keys, enqueued by name by a thread that knows nothing of shards. What fails
    is enqueued again, under the same id."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.ids: dict[str, list[str]] = {f"k{number}": [] for number in range(KEYS)}
        self.failures = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ends.wait(0.03):
            number += 1
            calls = [
                Call("crash.step", [0.5], None, Options(group=key, id=f"{key}-{number:05}"))
                for key in self.ids
            ]
            while True:
                try:
                    handles = self._queue.enqueue_many(calls)
                except ServerError:
                    self.failures += 1
                    self._ends.wait(0.05)
                else:
                    break
            for key, handle in zip(self.ids, handles, strict=True):
                self.ids[key].append(handle.id)

    def end(self) -> int:
        """No more of them; how many there were."""
        self._ends.set()
        self._thread.join()
        return self.enqueued()

    def enqueued(self) -> int:
        """How many there are so far."""
        return sum(map(len, self.ids.values()))


class Pools:
    """Pools of two workers, each of some queues of one server."""

    def __init__(self, folder: Path, chance: Random) -> None:
        self.marks = Marks(folder / "marks")
        self._ended: set[str] = set()
        self._folder = folder
        self._chance = chance
        self._pools: list[ForkedProgram] = []

    def start(self, url: str, *queues: str) -> None:
        """One more; it is ready then."""
        arguments = ["tests.crash.app", *queues, "--lease", "2s", "--drain", "5s"]
        arguments += ["--max-crashes", "0"]
        log = self._folder / f"pool{len(self._pools)}.log"
        marks = str(self.marks.path)
        self._pools.append(start_pool(log, url, *arguments, CRASH_MARKS=marks))
        eventually(lambda: b"is ready" in log.read_bytes(), log.read_text)

    def kill_a_worker(self) -> None:
        """One of any pool, in the middle of whatever it does."""
        pool = self._chance.choice(self._pools)
        if workers := psutil.Process(pool.pid).children():
            self._chance.choice(workers).send_signal(signal.SIGKILL)

    def ended(self) -> set[str]:
        """The jobs that have ended at least once, by what they mark."""
        self._ended.update(id_ for what, _, id_ in self.marks.news() if what == "end")
        return self._ended

    @property
    def logs(self) -> str:
        """What they all have said."""
        return "\n".join(path.read_text() for path in sorted(self._folder.glob("pool*.log")))

    def __enter__(self) -> Pools:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for pool in self._pools:
            pool.send_signal(signal.SIGTERM)
        for pool in self._pools:
            pool.wait(30)


def changed(change: object) -> bool:
    """Whether it could be made now: not while an earlier one goes on, or a server is away."""
    assert callable(change)
    try:
        change()
    except (ShardsMoving, ServerError):
        return False
    return True


def ended(queue: ShardedQueue) -> Counter[str]:
    """How often each job has ended as done, by the histories of all shards."""
    rows: Counter[str] = Counter()
    for shard in queue.table().shards.values():
        its = queue._shards.at(shard)
        rows.update(
            row["id"] for row in read_history(its.redis, its.keys) if row["outcome"] == "ack"
        )
    return rows


def out_of_order(ids: list[str], marks: list[list[str]]) -> list[str]:
    """Jobs of a key that began before the one before them had ended."""
    begun: dict[str, int] = {}
    ended: dict[str, int] = {}
    for at, (what, _, id_) in enumerate(marks):
        if what == "begin":
            begun.setdefault(id_, at)
        else:
            ended[id_] = at
    return [two for one, two in pairwise(ids) if begun[two] < ended[one]]


def judge(queue: ShardedQueue, load: Load, pools: Pools) -> None:
    """Nothing is lost, everything ends once, and the jobs of each key in their order."""
    count = load.end()
    eventually(lambda: not queue.advance().moving, lambda: f"{queue.table()}\n{pools.logs}")

    def said() -> str:
        return f"{queue.counts()}\n{pools.logs}"

    # the histories are read when they are about to be whole: each time all of them are
    eventually(lambda: len(pools.ended()) >= count, said)
    eventually(lambda: sum(ended(queue).values()) >= count, said)
    assert ended(queue) == Counter(id_ for ids in load.ids.values() for id_ in ids)
    lines = pools.marks.lines()
    assert [out for ids in load.ids.values() for out in out_of_order(ids, lines)] == []
