"""Workflows that are enqueued in a transaction, through one queue or several: what waits is in its
queue before what it waits for."""

import asyncio
import itertools
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from rqueue.client._sync.queue import Queue
from rqueue.contrib.outbox import workflows
from rqueue.contrib.outbox.workflows import Fresh, Unsent, sendable
from rqueue.errors import ConfigError, NotEncodable
from rqueue.tasks.stream import stream
from rqueue.tasks.workflow import Workflow, chain, chord
from tests.contrib import outbox_shop
from tests.contrib.outbox_shop import Killed, Refused, Shop, outbox
from tests.contrib.test_outbox_relay import Crashes
from tests.support.postgres import Postgres

postgres, database = outbox_shop.postgres, outbox_shop.database
queue, shop = outbox_shop.queue, outbox_shop.shop


def enqueue(shop: Shop, flow: Workflow[Any], id: str = "w") -> Any:
    with Session(shop.engine) as session, session.begin():
        return shop.outbox.enqueue_workflow(session, flow, id=id)


def run(shop: Shop, *queues: str) -> Iterator[str]:
    """What is ready in these queues runs, one after the other, until nothing is; the ids."""
    again = True
    while again:
        again = False
        for name in queues:
            target = shop.queue.at(name)
            with target.consumer(jobs=100, renew=False) as consumer:
                while jobs := consumer.pull():
                    for job in jobs:
                        consumer.ack(job, 1)
                        yield job.id
                    again = True
            target.forward()


def three(shop: Shop) -> list[str]:
    return [shop.queue.name, f"{shop.queue.name}-a", f"{shop.queue.name}-b"]


def through(shop: Shop) -> Workflow[Any]:
    """Members in two queues, a callback in a third one."""
    last, *others = (shop.ship.options(queue=name) for name in three(shop))
    return chord([others[n % 2].s(n) for n in range(4)], last.si(9))


def test_a_workflow_of_one_queue(shop: Shop) -> None:
    ship = shop.ship
    with pytest.raises(Refused), Session(shop.engine) as session, session.begin():
        shop.outbox.enqueue_workflow(session, chain(ship.s(1), ship.si(2)))
        raise Refused
    assert shop.written() == []
    handle = enqueue(shop, chord([ship.s(1), chain(ship.s(2), ship.si(3))], ship.si(4)))
    assert handle.ids == ["w", "w.0", "w.1", "w.1.0"]
    assert shop.relay.move_all() == 4
    assert list(run(shop, shop.queue.name)) == ["w.0", "w.1.0", "w.1", "w"]
    assert handle.result(0) == 1


def test_a_workflow_through_several_queues(shop: Shop) -> None:
    handle = enqueue(shop, through(shop))
    assert set(handle.queues.values()) == {*three(shop)[1:]}
    shop.relay.batch = 1
    assert shop.relay.move_all() == 5
    ran = list(run(shop, *three(shop)))
    assert sorted(ran) == sorted(handle.ids) and ran[-1] == "w"
    assert handle.result(0) == 1


def test_who_waits_is_stored_before_what_it_waits_for(shop: Shop) -> None:
    """Where there is no room for it now, the others are kept back; jobs of other queues go."""
    first, second, third = three(shop)
    shop.queue.configure(max_jobs=1, overflow="reject")
    shop.order(0)
    shop.relay.move_all()
    handle = enqueue(shop, through(shop))
    shop.order(5, queue=second)
    shop.order(6, queue=f"{first}-c")
    assert shop.relay.move_all() == 1
    assert shop.waiting(f"{first}-c") == [6]
    assert (shop.waiting(second), shop.waiting(third)) == ([], [])
    with shop.queue.consumer() as consumer:
        consumer.settle(ack=consumer.pull())
    for pace in shop.relay._paces.values():
        pace.again = 0.0
    assert shop.relay.move_all() == 6
    assert shop.waiting(second) == [0, 2, 5]
    assert list(run(shop, first, second, third))[-1] == "w"
    assert handle.result(0) == 1


def test_what_a_refused_job_waits_for_is_put_aside_with_it(shop: Shop) -> None:
    first, second, third = three(shop)
    shop.queue.configure(kind="last_value")  # no workflows there
    enqueue(shop, through(shop))
    shop.order(5, queue=second)
    shop.order(6, key="k")
    assert shop.relay.move_all() == 2
    assert (shop.waiting(first), shop.waiting(second), shop.waiting(third)) == ([6], [5], [])
    said = outbox("status", shop.database, code=1)
    assert said.count("is refused") == 5
    assert said.count(f"job 'w' waits for it, which queue '{first}' refuses") == 4
    assert outbox("retry", shop.database, "--drop") == "5 jobs dropped\n"


def test_what_is_wrong_is_refused_before_anything_is_written(shop: Shop) -> None:
    ship = shop.ship
    with Session(shop.engine) as session, session.begin():
        with pytest.raises(NotEncodable):
            shop.outbox.enqueue_workflow(session, chain(ship.s(1), ship.si(object())))
        with pytest.raises(ConfigError, match="stored while they are drawn"):
            shop.outbox.enqueue_workflow(session, stream([ship.s(1)], ship.si(2)))  # type: ignore[arg-type]
    assert shop.written() == []


def test_asyncio_has_the_same(queue: Queue, postgres: Postgres) -> None:
    shop = Shop(postgres.database(), queue)

    async def order() -> list[str]:
        engine = create_async_engine(shop.database)
        async with AsyncSession(engine) as session, session.begin():
            handle = await shop.outbox.aenqueue_workflow(session, through(shop), id="w")
        await engine.dispose()
        return list(handle.ids)

    ids = asyncio.run(order())
    assert shop.relay.move_all() == len(ids)
    assert sorted(run(shop, *three(shop))) == sorted(ids)
    shop.engine.dispose()


# -- relays that are killed ------------------------------------------------------------------------


def drawn(shop: Shop, random_: random.Random) -> Workflow[Any]:
    """A workflow whose calls are in whichever of three queues."""

    def call() -> Any:
        return shop.ship.options(queue=random_.choice(three(shop))).si(1)

    members = [chain(call(), call()) if random_.random() < 0.4 else call() for _ in range(3)]
    return random_.choice([chain(call(), call(), call()), chord(members, call())])


def play(shop: Shop, random_: random.Random, crashes: Crashes) -> None:
    """Transactions, relays that die at any step, and workers that are done at once: in the end all
    has run, and what waited for others behind them."""
    numbers, ids, ran = itertools.count(), [], []
    for _ in range(15):
        with suppress(Refused), Session(shop.engine) as session, session.begin():
            its = []
            for _ in range(random_.randint(1, 2)):
                flow, root = drawn(shop, random_), f"w{next(numbers)}"
                its += shop.outbox.enqueue_workflow(session, flow, id=root).ids
            if random_.random() < 0.2:
                raise Refused
            ids += its
        crashes.at = random_.choice(Crashes.STEPS)
        with suppress(Killed):
            shop.outbox.relay(shop.engine, batch=random_.randint(1, 4)).move_all()
        ran += run(shop, *random_.sample(three(shop), 2))
    crashes.at = ""
    shop.outbox.relay(shop.engine).move_all()
    ran += run(shop, *three(shop))
    assert shop.written() == []
    assert sorted(ran) == sorted(ids)
    for id_ in ids:
        if "." in id_:
            assert ran.index(id_) < ran.index(id_.rpartition(".")[0])


@pytest.mark.parametrize("seed", range(2))
def test_all_of_each_runs_wherever_relays_are_killed(
    shop: Shop, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(shop, random.Random(seed), Crashes(monkeypatch))


def test_a_relay_that_sends_too_early_is_found(
    queue: Queue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(f"sqlite:///{tmp_path}/shop.db", queue)
    monkeypatch.setattr(workflows, "_awaiting", lambda job: [])
    with pytest.raises(AssertionError):
        for seed in range(10):
            play(shop, random.Random(seed), Crashes(monkeypatch))
    shop.engine.dispose()


def test_what_may_be_sent_before_what() -> None:
    """Of each queue those before the first one that another one waits for."""
    jobs = [
        Fresh(1, "a", "x", "4,,0,"),
        Fresh(2, "b", "w.0", "4,,0|trq,"),
        Fresh(3, "b", "y", "4,,0,"),
        Fresh(4, "c", "v-before", "4,,0|tnq:0/v|tna:1/u,"),
        Fresh(5, "d", "z.1", "4,,0|tr|tnd:0/z,"),
    ]
    none = sendable(jobs, lambda ids: [])
    assert none.ready == {"a": [1], "b": [2, 3], "c": [4], "d": [5]}
    assert not none.kept and not none.refused
    some = sendable(jobs, lambda ids: [Unsent("q", "w", False), Unsent("a", "u", True)])
    assert (some.ready, some.kept) == ({"a": [1], "d": [5]}, {"b"})
    assert some.refused == {4: "job 'u' waits for it, which queue 'a' refuses"}
    asked: list[Any] = []
    sendable(jobs, lambda ids: asked.append(sorted(ids)) or [])
    assert asked == [["u", "v", "w"]]
