"""The bench: one private server, one board, sizes and rounds; rows are measured on it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import redis

from benchmarks.apps.board import Board
from benchmarks.lab.processes import Program, rqueue_pool
from benchmarks.lab.server import describe, private_server
from rqueue.client._sync.queue import Queue

SIZES = ("tiny", "quick", "full")


class Stalled(Exception):
    """A condition did not come true in time."""


@dataclass(frozen=True)
class Size:
    """How much is measured: `tiny` proves that a row runs, `full` is what is published."""

    name: str

    def of(self, tiny: int, quick: int, full: int) -> int:
        """The number for this size."""
        return (tiny, quick, full)[SIZES.index(self.name)]


class Bench:
    """Owns the server; every row gets an empty one."""

    def __init__(
        self,
        size: str,
        rounds: int,
        *,
        server: str = "newest",
        aof: bool = False,
        say: Callable[[str], None] = lambda _line: None,
    ):
        self.size = Size(size)
        self.say = say
        """Shows how far a row is that takes minutes."""
        self.rounds = rounds
        self.aof = aof
        self.server = server
        self._server = private_server(server, aof=aof)
        self._folder = tempfile.TemporaryDirectory(prefix="rqueue-bench-")
        self._path = Path(self._folder.name, "board")

    def __enter__(self) -> Self:
        self._server.start()
        self.url = self._server.tcp_url
        self.redis = redis.Redis.from_url(self.url, socket_timeout=120)
        self.about = describe(self._server, aof=self.aof)
        return self

    def __exit__(self, *_: object) -> None:
        self.redis.close()
        self._server.stop()
        self._folder.cleanup()

    @property
    def valkey(self) -> bool:
        """Whether the server is Valkey; else it is Redis."""
        return self.about.startswith("valkey")

    @property
    def server_pid(self) -> int:
        return self._server.pid

    @property
    def board_path(self) -> Path:
        """Where the workers find the board."""
        return self._path

    def empty(self) -> None:
        """Forget all data. The server is this run's own."""
        # SYNC: newer servers free memory in the background by default, and rows measure memory
        self.redis.execute_command("FLUSHALL", "SYNC")

    def board(self, marks: int = 0) -> Board:
        """A new board, for workers that are started after this."""
        return Board.create(self._path, marks)

    def queue(self, name: str = "bench") -> Queue:
        """A client of a queue."""
        return Queue(name, self.url)

    @contextmanager
    def pool(
        self, processes: int, *options: str, queue: str = "bench", app: str = "tasks"
    ) -> Iterator[Program]:
        """A running pool of rqueue's workers, for a module of `benchmarks.apps`."""
        with rqueue_pool(self.url, self._path, queue, processes, *options, app=app) as program:
            yield program

    def ready(self, pool: Program, queue: Queue, consumers: int) -> None:
        """Wait until so many workers wait for work."""
        self.watch(pool, lambda: queue.counts().interested >= consumers, 30, "idle workers", 0.02)
        # what they do right after their first pull is over, too
        time.sleep(0.2)

    def watch(
        self,
        pool: Program,
        true: Callable[[], object],
        seconds: float,
        what: str,
        every: float = 0.01,
    ) -> None:
        """Wait until it is true; Died if the pool ended, Stalled if it takes longer."""
        end = time.monotonic() + seconds
        while not true():
            pool.check()
            if time.monotonic() > end:
                raise Stalled(f"{what}: not within {seconds:g} s; the pool said: {pool.said(400)}")
            time.sleep(every)
