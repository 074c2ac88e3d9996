"""Shards open and are drained under load while workers are killed: nothing is lost, everything ends
once, and the jobs of each key in their order."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path

import psutil
import pytest

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ShardsMoving
from rqueue.inspector.history import read_history
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from tests.workers.pools import ROOT, eventually

KEYS = 12

pytestmark = pytest.mark.timeout(240)


class Load:
    """Jobs of several keys, enqueued by name by a thread that knows nothing of shards."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.ids: dict[str, list[str]] = {f"k{number}": [] for number in range(KEYS)}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.wait(0.01):
            calls = [Call("crash.step", [1.0], None, Options(group=key)) for key in self.ids]
            for key, handle in zip(self.ids, self._queue.enqueue_many(calls), strict=True):
                self.ids[key].append(handle.id)

    def end(self) -> int:
        """No more of them; how many there were."""
        self._ends.set()
        self._thread.join()
        return sum(map(len, self.ids.values()))


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


def change(queue: ShardedQueue, number: int) -> bool:
    """The next change, unless the one before goes on."""
    try:
        if number < 2:
            queue.open()
        else:
            queue.drain(0)
    except ShardsMoving:
        return False
    return True


def test_shards_open_under_load(
    private_server: EmbeddedRedis, queue_name: str, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    marks.touch()
    url, chance = private_server.url, random.Random(queue_name)
    environment = {**os.environ, "RQUEUE_URL": url, "CRASH_MARKS": str(marks)}
    environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'workers'}"
    command = [sys.executable, "-m", "rqueue.cli", "worker", "tests.crash.app", queue_name]
    command += ["--processes", "2", "--lease", "2s", "--drain", "5s", "--max-crashes", "0"]
    with (
        ShardedQueue(queue_name, url, shards=2) as queue,
        Queue(queue_name, url) as plain,
        (tmp_path / "pool.log").open("wb") as log,
    ):
        queue.table()
        pool = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            eventually(lambda: b"is ready" in (tmp_path / "pool.log").read_bytes())
            load = Load(plain)
            for number in range(3):
                eventually(lambda number=number: change(queue, number))
                workers = psutil.Process(pool.pid).children()
                if workers:
                    chance.choice(workers).send_signal(signal.SIGKILL)
            eventually(lambda: not queue.table().moving)
            count = load.end()

            def over() -> bool:
                its = queue.counts()
                return int(its.meta.get("acked", 0)) == count

            eventually(over, lambda: f"{queue.counts()}\n{(tmp_path / 'pool.log').read_text()}")
            eventually(lambda: queue.table().shards[0].state == "closed")
        finally:
            pool.send_signal(signal.SIGTERM)
            pool.wait(30)
        table = queue.table()
        rows: Counter[str] = Counter()
        for shard in table.shards.values():
            name = plain.at(table.name(shard))
            rows.update(
                row["id"] for row in read_history(name.redis, name.keys) if row["outcome"] == "ack"
            )
    assert rows == Counter(id_ for ids in load.ids.values() for id_ in ids)
    lines = [line.split() for line in marks.read_text().splitlines()]
    assert [out for ids in load.ids.values() for out in out_of_order(ids, lines)] == []
    assert len({table.shard_of(key).number for key in load.ids}) == 3
