"""A worker process on the stage, and its connections, which fail when a rule says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import redis
from redis import exceptions as rx

from rqueue.transport.connection import Connection
from rqueue.transport.redis_client import translate
from rqueue_workers.spec import WorkerSpec
from rqueue_workers.status_page import StatusPage, consumer_of
from rqueue_workers.worker import worker as worker_module
from tests.workers.loop.stage import Gone
from tests.workers.loop.truth import Truth

if TYPE_CHECKING:
    from tests.workers.loop.world import World


class Worker:
    """One worker process, as far as it is one: its threads are actors, its death takes them off."""

    def __init__(self, world: World, number: int, spec: WorkerSpec, tasks: list[str]) -> None:
        self.world = world
        self.base = f"w{number}"
        self.spec = spec
        self.tasks = tasks
        self.page = StatusPage(spec.slots)
        self.dead = False
        self.left = False
        """Its end came by itself, in order or past its deadline."""
        self.code: int | None = None
        self.faults: list[str] = []
        self.stop: Any = None
        self.child: Any = None
        self.connections: list[StageConnection] = []
        """The one that carries its calls, the one that listens."""
        self.loops: list[asyncio.AbstractEventLoop] = []
        self.asked = False
        self.excused = False
        self.lost = -1
        """The registration that another supervisor took from it, by its number."""
        self.alone: tuple[Truth, str, int] | None = None
        """The crashed job that it began last, as which consumer, and by which delivery."""
        self.missed = False
        """Whether its registration was not there at the last renewal."""

    def work(self) -> None:
        """Its main thread; the process ends with it, whatever its other threads are at."""
        self.code = worker_module.run(self.spec, self.page, self.base, 0)
        self.left = self.dead = True

    def ask(self, level: int) -> None:
        """What the supervisor does: the page, and a knock."""
        self.asked = True
        self.page.ask(level)
        self.stop._knock(15, None)

    @property
    def ended(self) -> bool:
        return self.dead or self.code is not None

    @property
    def consumer(self) -> str:
        return consumer_of(self.base, self.page.rejoins)

    @property
    def executors(self) -> int:
        """How many jobs it can have begun at once."""
        return (self.spec.threads or 1) + (self.spec.async_slots if "loop" in self.tasks else 0)

    def die(self, code: int | None = None) -> None:
        """From one moment to the next."""
        self.dead = True
        if code is not None:
            self.code = code


class StageConnection(Connection):
    """A connection whose faults the test chooses. `lose`: the next reply is read and thrown away.
    `cut`: the next command does not arrive. `before`: what happens just before the next one.
    `lose_of`: a script whose next reply is thrown away."""

    def __init__(self, world: World, client: redis.Redis, timeout: float | None = 15.0) -> None:
        super().__init__(client, timeout)
        self.lose = False
        self.cut = False
        self.before: Callable[[], None] | None = None
        self.lose_of = ""
        self.world = world
        self.owner: Worker = world.stage.me.owner  # type: ignore[union-attr,assignment]
        self.owner.connections.append(self)

    def _fault(self) -> Exception:
        self.close()
        return translate(rx.ConnectionError("Connection closed by server."), url=self.url)

    def send(self, *commands: Any) -> None:
        if self.owner.dead:
            raise Gone
        self.world.tell_time()
        before, self.before = self.before, None
        if before is not None:
            before()
        if self.lose_of and commands[0][1] == self.world.scripts.script(self.lose_of).sha:
            self.lose, self.lose_of = True, ""
        if self.world.down or self.cut:
            self.cut = False
            raise self._fault()
        self.world.note(f"{self.owner.base} says {str([c for c in commands[0][3:]])[:300]}")
        super().send(*commands)
        self.world.catch_up()

    def read(self) -> Any:
        self.world.stage.pause()
        reply = super().read()
        self.world.catch_up()
        self.world.note(f"{self.owner.base} reads {str(reply)[:300]}")
        if self.lose or self.world.down:
            self.lose = False
            raise self._fault()
        return reply
