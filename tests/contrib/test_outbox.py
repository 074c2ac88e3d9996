"""Jobs that are enqueued in a transaction of a database, and effects that happen once in one."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rqueue.client._sync.queue import Queue
from rqueue.contrib.sqlalchemy import Relay
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, LifecycleError, NotEncodable, ResultNotReady
from rqueue.inspector import Inspector
from rqueue.model.job import Delivery
from rqueue.model.signing import Signer
from rqueue.tasks.context import JobContext, current
from rqueue.tasks.registry import registry
from rqueue.tasks.unique import Throttle
from tests.contrib import outbox_shop
from tests.contrib.outbox_shop import Refused, Shop, outbox
from tests.support.pages import blocks
from tests.support.patience import PATIENCE
from tests.support.postgres import Postgres

postgres, database = outbox_shop.postgres, outbox_shop.database
queue, shop = outbox_shop.queue, outbox_shop.shop


# -- enqueue ---------------------------------------------------------------------------------------


def test_a_job_is_enqueued_by_the_commit_and_the_relay(shop: Shop) -> None:
    with Session(shop.engine) as session, session.begin():
        job = shop.outbox.enqueue(session, shop.ship, 7)
        assert (job.created, job.state()) == (None, "unknown")
        assert shop.relay.move_all() == 0, "it is not committed"
    assert shop.waiting() == []
    assert shop.relay.move_all() == 1
    assert (shop.waiting(), job.state(), shop.written()) == ([7], "ready", [])
    assert shop.relay.move_all() == 0


def test_a_job_that_its_queue_does_not_know_yet_waits_in_the_outbox(shop: Shop) -> None:
    name = shop.queue.name
    with Session(shop.engine) as session:
        job = shop.outbox.enqueue(session, shop.ship, 7)
        assert shop.outbox.waits(session, job.id, name)
        session.rollback()
        assert not shop.outbox.waits(session, job.id, name)
    (id_,) = shop.order(8)
    with Session(shop.engine) as session:
        assert shop.outbox.waits(session, id_, name)
        assert not shop.outbox.waits(session, id_, "another")
        assert not shop.outbox.waits(session, id_)
    shop.relay.move_all()
    with Session(shop.engine) as session:
        assert not shop.outbox.waits(session, id_, name)
    assert shop.queue.job(id_).state() == "ready"


def test_a_rolled_back_transaction_leaves_no_job(shop: Shop) -> None:
    with pytest.raises(Refused), Session(shop.engine) as session, session.begin():
        shop.outbox.enqueue(session, shop.ship, 7)
        raise Refused
    assert (shop.relay.move_all(), shop.waiting()) == (0, [])


def late(shop: Shop, ms: int) -> None:
    """The relay was away for so long."""
    with shop.engine.begin() as connection:
        table = shop.outbox.tables.outbox
        connection.execute(table.update().values(enqueued_ms=table.c.enqueued_ms - ms))


@pytest.mark.parametrize("keys", [None, {"k1": "a secret of at least 16"}], ids=["", "signed"])
def test_times_count_from_the_enqueue(shop: Shop, keys: dict[str, str] | None) -> None:
    """By the database's clock, in ms; signatures say the same."""
    queue = Queue(shop.queue.name, redis=shop.queue.redis, signing_keys=keys)
    relay = Relay(shop.relay.store, lambda _: queue)
    said: dict[str, dict[str, Any]] = {
        "delay": {"at": timedelta(hours=1)},
        "due": {"at": timedelta(minutes=1)},
        "hold": {"at": timedelta(hours=1), "hold": True},
        "ttl": {"ttl": 3600},
        "expired": {"ttl": 60},
        "nothing": {},
    }
    before = queue.counts().now
    with queue.consumer(jobs=9, renew=False) as consumer:
        consumer.pull()  # it waits: what comes alone is delivered to it
        ids = {name: shop.order(1, **options)[0] for name, options in said.items()}
        late(shop, 1_800_000)
        now = queue.counts().now
        relay.move_all()
        values = queue.redis.hgetall(queue.keys.jobs)
        jobs = {name: Delivery(id_, values[id_.encode()]) for name, id_ in ids.items()}
        for name, job in jobs.items():
            assert before - 1_800_000 - 100 <= job.enqueued_ms < now - 1_700_000
            assert (job.expires_ms - job.enqueued_ms) / 1000 == said[name].get("ttl", 0) or (
                "ttl" not in said[name] and not job.expires_ms
            )
            if name in ("delay", "hold"):
                assert job.due_ms - job.enqueued_ms == 3_600_000
            if keys:
                Signer(keys, queue.keys.namespace).verify(queue.name, job.id, job.body, job.header)
        while not (got := {job.id for job in consumer.pull()}) and consumer.wait(PATIENCE):
            pass
        assert got == {ids["due"], ids["ttl"], ids["nothing"]}
        assert queue.job(ids["expired"]).state() == "expired"


def test_options_hold(shop: Shop) -> None:
    shop.order(2, priority=9)
    shop.order(3)
    shop.relay.move_all()
    assert shop.waiting() == [2, 3]


def test_what_cannot_wait_is_refused_before_anything_is_written(shop: Shop) -> None:
    with Session(shop.engine) as session, session.begin():
        with pytest.raises(ConfigError, match="cannot be refused at once; enqueue it without"):
            shop.outbox.enqueue(session, shop.ship.options(immediate=True), 1)
        with pytest.raises(NotEncodable):
            shop.outbox.enqueue(session, shop.ship, b"x")
        with pytest.raises(ConfigError, match=r"task: 'shop.ship' is not a task: "):
            shop.outbox.enqueue(session, "shop.ship", 1)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="no Session and no Connection"):
            shop.outbox.enqueue(shop.engine, shop.ship, 1)  # type: ignore[arg-type]
    assert shop.written() == []


def test_asyncio_has_the_same(queue: Queue, postgres: Postgres) -> None:
    shop = Shop(postgres.database(), queue)

    async def order() -> str:
        engine = create_async_engine(shop.database)
        async with AsyncSession(engine) as session, session.begin():
            with pytest.raises(ConfigError, match="await aenqueue"):
                shop.outbox.enqueue(session, shop.ship, 1)  # type: ignore[arg-type]
            job = await shop.outbox.aenqueue(session, shop.ship, 1)
        await engine.dispose()
        return job.id

    asyncio.run(order())
    assert (shop.relay.move_all(), shop.waiting()) == (1, [1])
    shop.engine.dispose()


def test_the_page(
    database: str,
    server: EmbeddedRedis,
    queue_name: str,
    no_defaults: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATABASE_URL", database)
    monkeypatch.setenv("RQUEUE_URL", server.url)
    monkeypatch.setenv("RQUEUE_NAMESPACE", queue_name)
    monkeypatch.setattr(registry, "_tasks", {})
    names: dict[str, Any] = {"__name__": "outbox_page"}
    exec(compile(blocks("outbox.md"), "outbox.md", "exec"), names)
    try:
        id_ = names["place_order"](250)
        assert outbox("status", database) == "default: 1 job to be sent\n"
        assert names["look"](id_) == (202, {"state": "to be sent"})
        assert outbox("relay", database, "--once") == "1 job moved\n"
        assert names["look"]("another") == (404, {"state": "unknown"})
        with no_defaults.queue("default").consumer() as consumer:
            (delivered,) = consumer.pull()
            assert delivered.id == id_
            for _ in range(2):
                with job(SimpleNamespace(queue=SimpleNamespace(name="default")), id_):
                    assert names["pay"](1) == 250
        said = outbox("tables", database)
        assert said.count("CREATE TABLE rqueue_") == 3 and said.count("CREATE INDEX") == 2
        assert outbox("tables", database, "--create") == "the tables are there\n"
    finally:
        names["engine"].dispose()


@pytest.mark.parametrize(
    "database", ["nonsense", "mysql://localhost/shop", "sqlite:////nowhere/at.db", "oracle://x"]
)
def test_a_wrong_database_is_one_line(database: str) -> None:
    said = outbox("status", database, code=2)
    assert said.startswith("outbox: ") and said.count("\n") == 1


# -- effects that happen once ----------------------------------------------------------------------


@contextmanager
def job(shop: Any, id: str) -> Iterator[None]:
    """A worker runs this job."""
    delivery = Delivery(id, b"0,0;[]")
    token = current.set(JobContext(delivery, "pay", shop.queue.name))
    try:
        yield
    finally:
        current.reset(token)


def test_what_a_job_has_done_it_does_not_do_again(shop: Shop) -> None:
    called = []

    def charge(amount: int, *, currency: str) -> tuple[int, str]:
        called.append(amount)
        return amount, currency

    def attempt(id: str) -> Any:
        with job(shop, id), Session(shop.engine) as session, session.begin():
            return shop.outbox.run_once(session, charge, 5, currency="EUR")

    assert (attempt("a"), attempt("a"), attempt("b")) == ((5, "EUR"), [5, "EUR"], (5, "EUR"))
    assert called == [5, 5]


def test_what_fails_is_not_done_also_where_the_caller_commits(shop: Shop) -> None:
    def fail() -> None:
        raise Refused

    with job(shop, "a"):
        with Session(shop.engine) as session, session.begin(), suppress(Refused):
            shop.outbox.run_once(session, fail)
        with (
            pytest.raises(NotEncodable),
            Session(shop.engine) as session,
            session.begin(),
        ):
            shop.outbox.run_once(session, lambda: b"x")
        with Session(shop.engine) as session, session.begin():
            assert shop.outbox.run_once(session, lambda: 3) == 3
    with (
        pytest.raises(LifecycleError, match="inside of a task"),
        Session(shop.engine) as session,
    ):
        shop.outbox.run_once(session, fail)


def test_what_is_done_is_forgotten_after_the_job(shop: Shop) -> None:
    (waits,) = shop.order(1)
    shop.relay.move_all()
    for id_ in (waits, "ended"):
        with job(shop, id_), Session(shop.engine) as session, session.begin():
            shop.outbox.run_once(session, lambda: None)
    assert shop.relay.clean() == 0, "they are not old"
    shop.relay.keep = -1
    assert shop.relay.clean() == 1, "one of them may run yet"
    shop.queue.cancel(waits)
    assert shop.relay.clean() == 1


def test_effects_in_asyncio(queue: Queue, postgres: Postgres) -> None:
    shop = Shop(postgres.database(), queue)

    async def attempt() -> Any:
        engine = create_async_engine(shop.database)
        async with AsyncSession(engine) as session, session.begin():
            found = await shop.outbox.arun_once(session, lambda session, n: [n], 4)
            assert not await shop.outbox.awaits(session, "a", shop.queue.name)
        await engine.dispose()
        return found

    with job(shop, "a"):
        assert [asyncio.run(attempt()) for _ in range(2)] == [[4], [4]]
    shop.engine.dispose()


def test_a_command_without_a_database_says_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("RQUEUE_OUTBOX", raising=False)
    for command in ("relay", "status", "tables", "retry"):
        assert "pass DATABASE, or set RQUEUE_OUTBOX" in outbox(command, code=2)
    monkeypatch.setenv("RQUEUE_OUTBOX", "nonsense")
    assert "DATABASE: Could not parse" in outbox("status", code=2)
    assert "RQUEUE_OUTBOX" in outbox("--help")


@pytest.mark.parametrize("how", ["twice", "direct", "throttle"])
@pytest.mark.parametrize("batch", [500, 1])
def test_the_handle_of_a_merged_job_goes_on_as_the_other_one(
    shop: Shop, how: str, batch: int
) -> None:
    unique: Any = Throttle(3600) if how == "throttle" else True
    queue, one = shop.queue, shop.ship.options(unique=unique)
    relay = shop.outbox.relay(shop.engine, batch=batch)
    if how == "direct":
        first = queue.enqueue(one, 7)
    else:
        (id_,) = shop.order(7, unique=unique)
        first = queue.job(id_)
    merged = shop.order(7, 7, 8, 7, unique=unique)
    other = merged.pop(2)
    relay.move_all()
    assert relay.store.counts().waiting == []
    for id_ in merged:  # each question, of a handle that was asked nothing before
        assert queue.job(id_).state() == "ready"
        assert next(iter(queue.job(id_).states())) == "ready"
        assert next(iter(queue.job(id_).watch())).state == "ready"
        assert queue.job(id_).progress() is None
        with pytest.raises(ResultNotReady):
            queue.job(id_).result(timeout=0)
        with Inspector(redis=queue.redis) as inspector:
            assert inspector.job(id_, queue.name).job.problem == f"merged into job '{first.id}'"
    assert queue.job(other).state() == "ready"
    queue.enqueue(shop.ship.options(id=merged[0]), 9)  # its id stays known
    with queue.consumer(renew=False) as consumer:
        (job,) = consumer.pull()
        assert job.id == first.id
        consumer.ack(job, {"sent": 7})
    last = queue.job(merged[1])
    assert queue.job(merged[0]).result(timeout=PATIENCE) == {"sent": 7}
    assert last.state() == "done" and last.id == first.id


def test_a_merged_job_is_cancelled_as_the_other_one(shop: Shop) -> None:
    ids = shop.order(7, 7, unique=True)
    shop.relay.move_all()
    assert shop.queue.job(ids[1]).cancel()
    assert [shop.queue.job(id_).state() for id_ in ids] == ["cancelled", "cancelled"]
    assert not shop.queue.job(ids[1]).cancel()
