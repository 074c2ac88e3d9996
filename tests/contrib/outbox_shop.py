"""An application with an outbox in its database, for tests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.orm import Session

from rqueue.client._sync.queue import Queue
from rqueue.contrib.sqlalchemy import Outbox, Relay
from rqueue.contrib.sqlalchemy.command import main
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector import Inspector
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue.tasks.task import Task
from tests.support.command_line import runner
from tests.support.patience import PATIENCE
from tests.support.postgres import Postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.stop()


@pytest.fixture(params=["postgresql", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/shop.db"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()


class Shop:
    """An application with a database, an outbox in it, and a queue."""

    def __init__(self, database: str, queue: Queue) -> None:
        self.database = database
        self.engine: Engine = create_engine(database)
        self.queue = queue
        self.outbox = Outbox(queue=queue.at)
        self.outbox.create_tables(self.engine)
        self.relay = self.outbox.relay(self.engine)

        def ship(order: int) -> None: ...

        self.ship: Task[..., Any] = task(queue=queue.name, registry=Registry())(ship)

    def order(self, *numbers: int, **options: Any) -> list[str]:
        with Session(self.engine) as session, session.begin():
            ship = self.ship.options(**options)
            return [self.outbox.enqueue(session, ship, number).id for number in numbers]

    def waiting(self, queue: str = "") -> list[int]:
        with Inspector(redis=self.queue.redis) as inspector:
            name = queue or self.queue.name
            if name not in inspector.queue_names():
                return []
            return [job.args[0] for job in inspector.all_jobs(name)]

    def written(self) -> list[Any]:
        with self.engine.connect() as connection:
            return list(connection.execute(select(self.outbox.tables.outbox)))


@pytest.fixture
def shop(database: str, queue: Queue) -> Iterator[Shop]:
    shop = Shop(database, queue)
    yield shop
    shop.engine.dispose()


@pytest.fixture
def queue(server: EmbeddedRedis, queue_name: str) -> Iterator[Queue]:
    with Queue(queue_name, server.url) as queue:
        yield queue


def outbox(*args: str, code: int = 0) -> str:
    """What a command of the outbox prints."""
    done = runner().invoke(main, args)
    assert done.exit_code == code, done.output
    return done.output


@contextmanager
def running(relay: Relay) -> Iterator[None]:
    """A relay, as long as the block lasts."""
    stop = threading.Event()
    thread = threading.Thread(target=relay.run, args=[stop], daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()


class Refused(Exception):
    pass


class Killed(BaseException):
    pass
