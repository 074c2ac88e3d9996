"""Effects in a database happen exactly once, whatever is killed: workers before and after their
commits, the relay anywhere."""

import os
import random
import select as poll
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from rqueue.embedded.server import EmbeddedRedis
from tests.support.postgres import Postgres
from tests.workers import pools
from tests.workers.pools import ROOT, Pool, eventually

APP = "tests.contrib.outbox_app"
make_pool = pools.make_pool


@contextmanager
def relay(database: str, url: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A relay as a program, killed at the end of the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "rqueue.contrib.sqlalchemy", "relay", database, "--batch", "3"],
            cwd=ROOT,
            env={**os.environ, "RQUEUE_URL": url},
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("kills", [2, pytest.param(200, marks=pytest.mark.long)])
@pytest.mark.timeout(1200)
def test_effects_happen_once_whoever_is_killed(
    kills: int,
    server: EmbeddedRedis,
    queue_name: str,
    make_pool: Callable[..., Pool],
    no_defaults: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    postgres = Postgres()
    try:
        database = postgres.database()
        monkeypatch.setenv("TEST_DATABASE", database)
        monkeypatch.setenv("TEST_QUEUE", queue_name)
        monkeypatch.setenv("RQUEUE_URL", server.url)
        # anew: it reads where its database and its queue are, and another test had others
        monkeypatch.delitem(sys.modules, APP, raising=False)
        app: Any = import_module(APP)
        app.OUTBOX.metadata.create_all(app.ENGINE)
        queue = app.OUTBOX.queue(queue_name)
        pool = make_pool(app=[APP], processes=2)
        draw, orders, pause = random.Random(11), 0, poll.poll()
        for _ in range(kills):
            with relay(database, server.url, tmp_path / "relay.log"):
                for _ in range(3):
                    with Session(app.ENGINE) as session, session.begin():
                        app.OUTBOX.enqueue(session, app.pay, orders)
                    orders += 1
                    pause.poll(draw.randint(0, 250))
        paid = Counter((number, what) for number in range(orders) for what in (1, 2))

        def over() -> bool:
            counts = queue.counts()
            waiting = counts.ready + counts.scheduled + counts.held
            return not _written(app) and not waiting and _payments(app).keys() >= paid.keys()

        with relay(database, server.url, tmp_path / "relay.log"):
            while not over():  # as long as that takes, if only it goes on
                progress = _payments(app).total(), pool.log.count("SIGKILL")
                eventually(
                    lambda before=progress: (  # type: ignore[misc]
                        over() or (_payments(app).total(), pool.log.count("SIGKILL")) != before
                    ),
                    lambda: f"{_payments(app)}\n{pool.log[-2000:]}",
                )
                queue.promote_all()  # what crashed often waits for a minute
        assert _payments(app) == paid
        assert pool.log.count("SIGKILL") >= 1, "workers were killed as well"
        app.ENGINE.dispose()
    finally:
        postgres.stop()


def _written(app: Any) -> int:
    with app.ENGINE.connect() as connection:
        count = select(func.count()).select_from(app.OUTBOX.tables.outbox)
        return int(connection.execute(count).scalar_one())


def _payments(app: Any) -> Counter[tuple[int, int]]:
    with app.ENGINE.connect() as connection:
        return Counter((row.number, row.what) for row in connection.execute(select(app.PAYMENTS)))
