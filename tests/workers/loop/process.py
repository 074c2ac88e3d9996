"""A worker process on the stage, and its connections, which fail when a rule says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import redis
from redis import exceptions as rx

from rqueue.transport.connection import Connection
from rqueue.transport.knock import SILENT_S
from rqueue.transport.resp import Framing
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage, consumer_of
from rqueue_workers.worker import worker as worker_module
from tests.workers.loop.stage import Gone
from tests.workers.loop.truth import Truth

if TYPE_CHECKING:
    from tests.workers.loop.world import World


CLOSED = "Connection closed by server."


class Worker:
    """One worker process, as far as it is one: its threads are actors, its death takes them off."""

    def __init__(self, world: World, number: int, spec: WorkerSpec, tasks: list[str]) -> None:
        self.world = world
        self.base = f"w{number}"
        self.spec = spec
        self.tasks = tasks
        self.page = StatusPage(spec.slots, len(spec.queues))
        self.dead = False
        self.frozen = False
        """Its threads stand still (SIGSTOP)."""
        self.frozen_at = 0.0
        self.presumed_dead = False
        """It has been for so long that others may have its jobs."""
        self.freezes = 0
        """The replies until it is frozen, just before it reads the last of them; 0 = it is not
        about to be."""
        self.left = False
        """Its end came by itself, in order or past its deadline."""
        self.code: int | None = None
        self.faults: list[str] = []
        self.stop: Any = None
        self.child: Any = None
        self.connections: list[StageConnection] = []
        """Of each route the one that carries its calls, the one that listens."""
        self.loops: list[asyncio.AbstractEventLoop] = []
        self.asked = False
        self.excused = False
        self.lost: dict[int, int] = {}
        """By queue, the registration that another supervisor took from it, by its number."""
        self.alone: tuple[Truth, str, int] | None = None
        """The crashed job that it began last, as which consumer, and by which delivery."""
        self.missed: set[int] = set()
        """The queues in which its registration was not there at the last renewal."""

    def work(self) -> None:
        """Its main thread; the process ends with it, whatever its other threads are at."""
        self.code = worker_module.run(self.spec, self.page, self.base, 0)
        self.left = self.dead = True

    def ask(self, level: int) -> None:
        """What the supervisor does: the page, and a knock."""
        self.asked = True
        self.page.ask(level)
        self.stop._knock(15, None)

    def doubt(self, queue: int) -> None:
        """What the supervisor does where a queue does not know the worker: the page, and a word
        that there is news."""
        self.page.doubt(queue)
        self.stop.wake()

    @property
    def ended(self) -> bool:
        return self.dead or self.code is not None

    def consumer(self, queue: int) -> str:
        """As which consumer it is registered in a queue, by its number."""
        return consumer_of(self.base, self.page.rejoins(queue))

    @property
    def executors(self) -> int:
        """How many jobs it can have begun at once."""
        return (self.spec.threads or 1) + (self.spec.async_slots if "loop" in self.tasks else 0)

    def freeze(self) -> None:
        """As SIGSTOP does."""
        self.frozen, self.frozen_at, self.freezes = True, self.world.stage.now, 0

    @property
    def frozen_s(self) -> float:
        """Seconds that it has been frozen."""
        return self.world.stage.now - self.frozen_at

    def die(self, code: int | None = None) -> None:
        """From one moment to the next."""
        self.dead, self.frozen = True, False
        if code is not None:
            self.code = code


class StageConnection(Connection):
    """A connection whose faults the test chooses. `lose`: the next reply is read and thrown away.
    `cut`: the next command does not arrive. `before`: what happens just before the next one.
    `lose_of`: a script whose next reply is thrown away. `queue`: the one it is for, or the first
    of several. `kept`: what was sent to a Redis that hangs."""

    def __init__(
        self, world: World, client: redis.Redis, queue: str, timeout: float | None = 15.0
    ) -> None:
        super().__init__(client, timeout)
        self.queue = queue
        self.kept: list[tuple[Any, ...]] = []
        self.lose = False
        self.cut = False
        self.before: Callable[[], None] | None = None
        self.lose_of = ""
        self.world = world
        self.owner: Worker = world.stage.me.owner  # type: ignore[union-attr,assignment]
        self.owner.connections.append(self)

    def _failed(self, error: BaseException) -> None:
        if not isinstance(error, Gone):  # of a process that is dead, nobody closes anything
            super()._failed(error)

    def _framed(self, sock: Any) -> Framing:
        return StageFraming(self, super()._framed(sock))

    def connect(self) -> None:
        if self.owner.dead:
            raise Gone
        try:
            self.wait()
            if self.queue in self.world.away:
                raise rx.ConnectionError(CLOSED)
        except rx.RedisError as error:
            raise self._broken(error) from error
        super().connect()

    def wait(self) -> None:
        """For a Redis that hangs, as long as its answer may take."""
        if self.queue not in self.world.hung:
            return
        self.world.stage.wait(lambda: self.queue not in self.world.hung, self._timeout)
        if self.queue in self.world.hung:
            raise rx.TimeoutError("Timeout reading from socket")

    def go_on(self) -> None:
        """Redis hangs no more, and reads what was sent to it meanwhile."""
        kept, self.kept = self.kept, []
        for commands in kept:
            assert isinstance(self._framing, StageFraming)
            with suppress(OSError):  # whose end the worker reads
                self._framing.real.send(*commands)

    def close(self) -> None:
        self.kept = []
        super().close()

    def knock(self, key: str = "") -> Any:
        return StageKnock(self.world, self.queue)


class StageFraming:
    """What carries the commands of such a connection."""

    def __init__(self, connection: StageConnection, real: Framing) -> None:
        self.real = real
        self._connection = connection

    def send(self, *commands: Any) -> None:
        its, world = self._connection, self._connection.world
        if its.owner.dead:
            raise Gone
        if its.queue in world.hung:
            its.kept.append(commands)
            return
        world.tell_time()
        before, its.before = its.before, None
        if before is not None:
            before()
        if its.lose_of and commands[0][1] == world.scripts.script(its.lose_of).sha:
            its.lose, its.lose_of = True, ""
        if its.queue in world.away or its.cut:
            its.cut = False
            raise rx.ConnectionError(CLOSED)
        world.ran[commands[0][1]] += commands[0][0] == "EVALSHA"
        world.note(f"{its.owner.base} says {str([c for c in commands[0][3:]])[:300]}")
        self.real.send(*commands)
        world.catch_up()

    def ask(self, command: Any) -> Any:
        self.send(command)
        return self.read()

    def read(self, *, blocked: bool = False) -> Any:
        its, world = self._connection, self._connection.world
        if its.kept:
            its.wait()
        world.stage.pause()
        if its.owner.freezes == 1:
            its.owner.freeze()
            world.stage.wait(lambda: True)
        its.owner.freezes = max(0, its.owner.freezes - 1)
        reply = self.real.read(blocked=blocked)
        world.catch_up()
        world.note(f"{its.owner.base} reads {str(reply)[:300]}")
        if its.lose or its.queue in world.away:
            its.lose = False
            raise rx.ConnectionError(CLOSED)
        return reply


class StageKnock:
    """A knock at a Redis on the stage."""

    def __init__(self, world: World, queue: str) -> None:
        self._world = world
        self._queue = queue
        self._since = world.stage.now

    def answered(self, within: float = 0.0) -> bool | None:
        if self._queue in self._world.hung and within:
            self._world.stage.wait(lambda: self._queue not in self._world.hung, within)
        if self._queue not in self._world.hung:
            return True
        return None if self._world.stage.now < self._since + SILENT_S else False

    def close(self) -> None:
        """Nothing is open."""
