"""The relay moves each job of the outbox into its queue once, wherever it is killed."""

import itertools
import random
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import MetaData, create_engine
from sqlalchemy.orm import Session

from rqueue.client._sync.queue import Queue
from rqueue.client.numbered_batches import NumberedBatches
from rqueue.contrib.sqlalchemy import Outbox, Relay
from rqueue.contrib.sqlalchemy.store import EngineStore
from rqueue.errors import ConnectionLost
from tests.contrib import outbox_shop
from tests.contrib.outbox_shop import Killed, Refused, Shop, outbox, running
from tests.support.patience import PATIENCE
from tests.support.postgres import Postgres

postgres, database = outbox_shop.postgres, outbox_shop.database
queue, shop = outbox_shop.queue, outbox_shop.shop


# -- the relay -------------------------------------------------------------------------------------


def test_a_database_without_tables_is_said_once_with_what_makes_them(
    no_defaults: Any,
    tmp_path: Path,
    queue: Queue,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = f"sqlite:///{tmp_path}/empty.db"
    monkeypatch.setenv("RQUEUE_URL", str(queue.settings.url))
    makes = "rqueue.contrib.sqlalchemy tables DATABASE --create'"
    for command in (["status"], ["retry"], ["relay", "--once"]):
        said = outbox(command[0], url, *command[1:], code=2)
        assert said.startswith("outbox: no such table: rqueue_outbox (run the migration")
        assert makes in said and said.count("\n") == 1
    store = EngineStore(create_engine(url), Outbox(MetaData()).tables)
    tries: list[int] = []

    class Stop(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            tries.append(1)
            if len(tries) == 5:
                self.set()
            return self.is_set()

    Relay(store, lambda _: queue).run(Stop())
    store.engine.dispose()
    (warning,) = [one for one in caplog.records if one.levelname == "WARNING"]
    assert makes in warning.getMessage()


def test_a_relay_wants_to_know_where_the_queues_are(
    no_defaults: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("RQUEUE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    said = outbox("relay", f"sqlite:///{tmp_path}/x.db", code=2)
    assert said.startswith("outbox: url: no server: set RQUEUE_URL=redis://host:6379/0")


def test_order_is_kept_over_batches_and_queues(shop: Shop) -> None:
    other = f"{shop.queue.name}-other"
    for number in range(40):
        shop.order(number, queue=other if number % 3 == 0 else None)
    shop.relay.batch = 7
    assert shop.relay.move_all() == 40
    assert shop.waiting() == [number for number in range(40) if number % 3]
    assert shop.waiting(other) == list(range(0, 40, 3))


def test_a_job_that_its_queue_refuses_keeps_no_other_back(shop: Shop) -> None:
    shop.queue.configure(kind="last_value")
    shop.order(*range(5), key="k")
    shop.order(5, group="g")  # the two exclude each other
    shop.order(6, key="other")
    assert shop.relay.move_all() == 6
    (refused,) = shop.written()
    assert "last_value" in refused.problem and shop.waiting() == [4, 6]
    said = outbox("status", shop.database, code=1)
    assert f"job {refused.job_id} is refused" in said
    assert outbox("retry", shop.database, "--drop") == "1 job dropped\n"
    assert (shop.written(), outbox("status", shop.database)) == ([], "the outbox is empty\n")


def test_a_full_queue_is_waited_for(shop: Shop) -> None:
    shop.queue.configure(max_jobs=2, overflow="reject")
    shop.order(1, 2, 3, 4)
    shop.relay.batch = 2
    assert shop.relay.move_all() == 2 and shop.waiting() == [1, 2]
    with shop.queue.consumer() as consumer:
        (job,) = consumer.pull()
        consumer.ack(job)
    moved = threading.Semaphore(0)
    shop.relay.on_moved = moved.release
    with running(shop.relay):
        assert moved.acquire(timeout=PATIENCE)
        assert shop.waiting() == [2, 3], "there was room for one of two"
        with shop.queue.consumer(jobs=10) as consumer:
            for job in consumer.pull():
                consumer.ack(job)
        assert moved.acquire(timeout=PATIENCE)
    assert shop.waiting() == [4]


def test_postgresql_tells_the_relay_and_a_second_one_stands_by(
    queue: Queue, postgres: Postgres
) -> None:
    shop = Shop(postgres.database(), queue)
    moved = [threading.Event(), threading.Event()]
    first, second = (
        shop.outbox.relay(shop.engine, poll=0.02, on_moved=lambda _, its=its: its.set())
        for its in moved
    )
    with running(first):
        shop.order(1)
        assert moved[0].wait(PATIENCE)
        with running(second):
            moved[0].clear()
            shop.order(2)
            assert moved[0].wait(PATIENCE) and not moved[1].is_set()
    with running(second):
        shop.order(3)
        assert moved[1].wait(PATIENCE)
    shop.engine.dispose()


# -- crashes ---------------------------------------------------------------------------------------


class Crashes:
    """Kills a relay at a chosen step, once."""

    STEPS = ("numbered", "sent", "stored", "unheard", "deleted", "")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at = ""
        store, delete = NumberedBatches.store, EngineStore.delete

        def crashing_store(self_: NumberedBatches, number: int, puts: Any) -> Any:
            self._die("numbered")
            answer = store(self_, number, puts)
            self._die("stored")
            if self.at == "unheard":
                self.at = ""
                raise ConnectionLost("cut")
            return answer

        def crashing_delete(self_: EngineStore, batch: Any) -> None:
            delete(self_, batch)
            self._die("deleted")

        monkeypatch.setattr(NumberedBatches, "store", crashing_store)
        monkeypatch.setattr(EngineStore, "delete", crashing_delete)

    def _die(self, step: str) -> None:
        if self.at == step:
            self.at = ""
            raise Killed


@pytest.mark.parametrize("seed", range(3))
def test_each_job_is_enqueued_once_wherever_relays_are_killed(
    shop: Shop, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _play(shop, random.Random(seed), Crashes(monkeypatch))


def _play(shop: Shop, random_: random.Random, crashes: Crashes) -> None:
    """Transactions, relays that die at any step, and workers that are done at once, so that the
    queue has forgotten nothing but may take a job for new."""
    orders, committed, ran = itertools.count(), [], []
    shop.queue.configure(keep=1)
    consumer = shop.queue.consumer(jobs=100)
    with consumer:
        for _ in range(25):
            numbers = [next(orders) for _ in range(random_.randint(1, 4))]
            try:
                with Session(shop.engine) as session, session.begin():
                    for number in numbers:
                        shop.outbox.enqueue(session, shop.ship, number)
                    if random_.random() < 0.2:
                        raise Refused
                committed += numbers
            except Refused:
                pass
            crashes.at = random_.choice(Crashes.STEPS)
            relay = shop.outbox.relay(shop.engine, batch=random_.randint(1, 6))
            with suppress(Killed):
                relay.move_all()
            if random_.random() < 0.5:
                ran += _run_all(shop, consumer)
        crashes.at, done = "", False
        while not done:
            with suppress(Killed):
                shop.outbox.relay(shop.engine).move_all()
                done = True
        ran += _run_all(shop, consumer)
    assert ran == committed
    assert shop.written() == []


def _run_all(shop: Shop, consumer: Any) -> list[int]:
    """Run what is there; the queue then forgets that there ever were such jobs."""
    done = []
    while jobs := consumer.pull():
        for job in jobs:
            done.append(shop.queue.envelope(job).args[0])
            consumer.ack(job)
    keys = shop.queue.keys
    shop.queue.redis.delete(f"{keys.base}ended", f"{keys.base}ended:old")
    return done


@pytest.mark.parametrize("fault", ["unnumbered", "forgets first", "takes the next"])
def test_a_relay_that_is_wrong_is_found(
    queue: Queue, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same play finds faults that are put into the relay."""
    shop = Shop(f"sqlite:///{tmp_path}/shop.db", queue)
    if fault == "unnumbered":  # stores jobs without the number

        def store(self: NumberedBatches, number: int, puts: Any) -> Any:
            return self.queue.enqueue_puts([put for put, _ in puts])

        monkeypatch.setattr(NumberedBatches, "store", store)
    elif fault == "forgets first":  # forgets the number before the batch is deleted
        delete = EngineStore.delete

        def hasty(self: EngineStore, batch: Any) -> None:
            target = queue.at(batch.queue)
            target.redis.delete(f"{target.keys.base}write:{batch.source}")
            for key in target.redis.scan_iter(f"{target.keys.base}written:*"):
                target.redis.delete(key)
            if random_.random() < 0.5:
                raise Killed
            delete(self, batch)

        monkeypatch.setattr(EngineStore, "delete", hasty)
    else:  # deletes a batch that was not stored
        rest = Relay._rest

        def eager(self: Relay, batch: Any, error: Any) -> None:
            rest(self, batch, error)
            self.store.delete(batch)

        monkeypatch.setattr(Relay, "_rest", eager)
        crashing = NumberedBatches.store

        def cut(self: NumberedBatches, number: int, puts: Any) -> Any:
            if random_.random() < 0.3:
                raise ConnectionLost("cut")
            return crashing(self, number, puts)

        monkeypatch.setattr(NumberedBatches, "store", cut)
    for seed in range(20):
        random_ = random.Random(seed)
        try:
            _play(shop, random_, Crashes(monkeypatch))
        except AssertionError:
            break
    else:
        pytest.fail("it was not found")
    shop.engine.dispose()


def test_two_relays_at_the_first_jobs_of_a_queue(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both see the jobs before either has numbered them: neither fails, and each job is sent."""
    shop.order(*range(9))
    both, number = threading.Barrier(2, timeout=PATIENCE), EngineStore._number

    def together(self: EngineStore, *args: Any) -> None:
        with suppress(threading.BrokenBarrierError):
            both.wait()
            both.abort()  # later ones go on at once
        number(self, *args)

    def moves(relay: Relay) -> None:
        moved.append(relay.move_all())

    monkeypatch.setattr(EngineStore, "_number", together)
    moved: list[int] = []
    relays = [shop.relay, shop.outbox.relay(shop.engine)]
    threads = [threading.Thread(target=moves, args=(relay,)) for relay in relays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(moved) == 2, "one of them has failed"
    assert sum(moved) >= 9
    assert (shop.waiting(), shop.written()) == ([*range(9)], [])
