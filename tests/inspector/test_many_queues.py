"""Many queues: what is asked ahead is what would be asked, and says the same."""

import random
from collections.abc import Iterator
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector import Inspector
from rqueue.inspector.doctor.doctor import Doctor
from rqueue.inspector.doctor.findings import Finding
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.options import Options
from rqueue.tasks.unique import Unique
from rqueue.transport.asked_ahead import AskedAhead

QUEUES = 40


@pytest.fixture
def names(server: EmbeddedRedis, queue_name: str) -> Iterator[list[str]]:
    """Queues of several kinds, some of them damaged; another set in each run."""
    its = random.Random()
    with Queue(queue_name, server.url) as first:
        names = [f"{queue_name}-{number}" for number in range(QUEUES)]
        for name in names:
            queue = first.at(name)
            for number in range(its.randint(1, 3)):
                options: Any = its.choice(
                    [
                        *({}, {}, {"priority": 9}, {"at": 2e9}, {"group": "g"}),
                        {"unique": Unique(key=str(number))},
                    ]
                )
                queue.send("t", [number], None, Options(**options))
            if its.random() < 0.3:
                with queue.consumer(jobs=1, renew=False) as consumer:
                    for job in consumer.pull():
                        consumer.reject(job, "no")
            _damage(queue, its)
        yield names


def _damage(queue: Queue, its: random.Random) -> None:
    client, keys = queue.redis, queue.keys
    what = its.randrange(8)
    if what == 0:
        client.delete(*client.keys(keys.pattern("ready:*")), keys.heads)
    elif what == 1:
        client.set(keys.base + "history", "of something else")
    elif what == 2:
        client.rpush(keys.ready(4), "nobody")
    elif what == 3:
        client.hset(keys.meta, "levels", "3")
    elif what == 4:
        client.hset(keys.base + "causes", "nobody", "{}")


def seen(findings: list[Finding]) -> set[tuple[str, ...]]:
    return {(one.queue, one.invariant, one.kind, one.subject, one.says) for one in findings}


def test_the_doctor_finds_the_same(server: EmbeddedRedis, names: list[str]) -> None:
    def doctor(client: redis.Redis) -> Doctor:
        return Doctor(client, "rqueue", wait=lambda _seconds: None)

    with Inspector(server.url) as inspector:
        apart = [doctor(inspector.redis).check_queue_at(name, "") for name in names]
        together = list(doctor(inspector.redis).check_queues_at(dict.fromkeys(names, "")))
        assert [seen(its) for its in together] == [seen(its) for its in apart]


def test_the_numbers_are_the_same(server: EmbeddedRedis, names: list[str]) -> None:
    with Inspector(server.url) as inspector:
        found = {info.name: info for info in inspector.queues() if info.name in names}
        for name in names:
            its = inspector.queue(name)
            assert found[name].levels == its.levels
            assert (found[name].ready, found[name].dead) == (its.ready, its.dead)
            assert found[name].consumers == its.consumers


class Trips:
    """Counts what a client sends at once."""

    def __init__(self, client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for kind, name in ((redis.Redis, "execute_command"), (redis.client.Pipeline, "execute")):
            monkeypatch.setattr(kind, name, self._counting(getattr(kind, name)))

    def _counting(self, call: Any) -> Any:
        def counted(client: Any, *args: Any, **options: Any) -> Any:
            self.count += 1
            return call(client, *args, **options)

        return counted


def test_some_queues_cost_one_round_trip(
    server: EmbeddedRedis, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Queue(queue_name, server.url) as first, Inspector(server.url) as inspector:
        names = [f"{queue_name}-{number}" for number in range(QUEUES)]
        for name in names:
            first.at(name).send("t", [1])
        trips = Trips(inspector.redis, monkeypatch)
        list(inspector.doctor().check_queues_at(dict.fromkeys(names, "")))
        assert trips.count < 200 + 2 * QUEUES, "each alone asks some 65 times"
        trips.count = 0
        for name in inspector.each(names):
            assert inspector.survey(name).whole.ready == 1
        assert trips.count < 20


def test_what_looks_wrong_is_looked_at_again_later(server: EmbeddedRedis, queue_name: str) -> None:
    """Also in a queue that looks as the one before, of which each was asked three times."""
    with Queue(queue_name, server.url) as first:
        names = [f"{queue_name}-{number}" for number in range(6)]
        client = first.redis
        for name in names:
            first.at(name).send("t", [1])
            client.rpush(first.at(name).keys.ready(4), "nobody")
        found: list[set[tuple[str, ...]]] = []

        def wait(_seconds: float) -> None:
            if len(found) >= 2:  # it was only on its way
                client.lrem(first.at(names[len(found)]).keys.ready(4), 0, "nobody")

        doctor = Doctor(client, "rqueue", wait=wait)
        for its in doctor.check_queues_at(dict.fromkeys(names, "")):
            found.append({one for one in seen(its) if one[1] != "service"})
        assert [bool(its) for its in found] == [True, True, False, False, False, False]


def test_only_within_each_is_asked_ahead(server: EmbeddedRedis, queue_name: str) -> None:
    with Queue(queue_name, server.url) as queue:
        client = queue.redis
        ahead = AskedAhead(client)
        queues = [QueueKeys(f"{queue_name}-{number}") for number in range(5)]
        for number, keys in enumerate(ahead.each(queues)):
            client.set(keys.guard, "after")
            # the others were asked ahead of this
            before = None if number else b"after"
            assert ahead.execute_command("GET", keys.guard) == before
            ahead.expire()
            assert ahead.execute_command("GET", keys.guard) == b"after"
        assert ahead.execute_command("GET", queues[0].guard) == b"after"
        client.delete(*[keys.guard for keys in queues])
