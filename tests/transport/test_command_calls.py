"""The calls of Redis's own commands: each asks the same of every kind of client, and reads what it
answers, in whatever form."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.exceptions import RedisClusterException

from rqueue import errors
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol import commands
from rqueue.protocol.call import CommandCall
from rqueue.protocol.commands import (
    clock,
    consumer_checks,
    consumer_rows,
    group_notes,
    history,
    job_notes,
    places,
    queue_keys,
    server,
    write_log,
)
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.key_scan import queue_names, scan
from rqueue.transport.redis_client import aexecute, execute, execute_all, open_client, translated
from tests.support.redis_cluster import SmallCluster

pytestmark = pytest.mark.each_server

ODD = "odd-\udcff"
"""A name with a byte that is no UTF-8."""

FIRST = history.Entry("5-1", {b"n": b"2", b"b": b"x"})
SECOND = history.Entry("7-0", {b"n": b"1", b"b": b"y"})


def fill(client: Any, keys: QueueKeys) -> None:
    """Something at every place that a call reads."""
    odd = ODD.encode("utf-8", "surrogateescape")
    client.hset(
        keys.meta,
        mapping={
            "v": 1,
            "clock": "@5000",
            "timer": "c1",
            "marked": 1,
            "history_trimmed": "4-0",
            "history_gone": 10,
            "history_rows": 3,
        },
    )
    for entry in (FIRST, SECOND):
        client.xadd(keys.history, entry.fields, id=entry.id)
    client.hset(keys.jobs, mapping={"j1": "head;one", odd: "head;three"})
    client.hset(keys.parked, mapping={"j1": "why", odd: "?"})
    client.zadd(keys.dead, {"j1": 6000.0})
    client.zadd(keys.expiring, {"j1": 9100})
    client.hset(keys.groups, mapping={"g1": "j1", odd: odd})
    client.zadd(keys.group("g1"), {"m5": 5, "m6": 6})
    client.zadd(keys.blocked, {"g1": 0})
    client.zadd(keys.heads, {"m7": 0})
    client.zadd(keys.scheduled, {"m1": 7000, "m2": 8000})
    client.rpush(keys.ready(4), "j1", odd, "j3")
    client.rpush(keys.due(4), "j4")
    client.zadd(keys.consumers, {"c1": 9000, odd: 9500.5})
    client.hset(
        keys.consumer("c1"),
        mapping={"state": "notified", "worker": "w1", "bytes": 100, "held_bytes": 8},
    )
    client.rpush(keys.held("c1"), "j1", odd)
    client.rpush(keys.wake("c1"), "w")
    client.zadd(keys.interested, {"c2": 1, odd: 2})
    client.zadd(keys.notified, {"c1": 8500})
    client.sadd(keys.not_interested, "c3", odd)
    client.sadd(keys.browsers, "c4")
    client.hset(keys.write("r"), mapping={"rows": 5, "jobs": 4})
    client.set(keys.written("r", 1, 2), b"abcdefgh")


@dataclass(frozen=True)
class Sample:
    """What a call answers. The clock stands, so that `now` is known."""

    call: CommandCall[Any]
    expected: Any


def samples(keys: QueueKeys) -> dict[str, list[Sample]]:
    empty = QueueKeys(keys.queue + "-no", keys.namespace)
    stopped = clock.Clock(0, stopped=5000)
    places_of_c1 = consumer_checks.ConsumerPlaces(
        {"state": "notified", "worker": "w1", "bytes": "100", "held_bytes": "8"},
        9000.0,
        ["notified"],
        8500.0,
        2,
        True,
    )
    return {
        "history_page": [
            Sample(history.history_page(keys, count=9), [FIRST, SECOND]),
            Sample(history.history_page(keys, "(5-1", count=9), [SECOND]),
            Sample(history.history_page(empty, count=9), []),
        ],
        "newest_entries": [
            Sample(history.newest_entries(keys), [SECOND]),
            Sample(history.newest_entries(keys, "(7-0"), [FIRST]),
        ],
        "history_part": [
            Sample(
                history.history_part(keys, "4-0", "5-1", count=9),
                history.HistoryPart([FIRST], "4-0"),
            ),
            Sample(
                history.history_part(empty, "4-0", "5-1", count=9), history.HistoryPart([], "0-0")
            ),
        ],
        "history_ends": [
            Sample(history.history_ends(keys), history.HistoryEnds("7-0", 13, "4-0", 10)),
            Sample(history.history_ends(empty), history.HistoryEnds()),
        ],
        "history_news": [
            Sample(
                history.history_news({keys: "5-1"}, count=9, block_ms=1), {keys.queue: [SECOND]}
            ),
            Sample(history.history_news({keys: "7-0"}, count=9, block_ms=1), {}),
        ],
        "notes_page": [
            Sample(
                job_notes.notes_page(keys, "parked", count=9),
                job_notes.NotesPage(0, {"j1": b"why", ODD: b"?"}),
            ),
            Sample(job_notes.notes_page(keys, "errors", count=9), job_notes.NotesPage(0, {})),
        ],
        "notes_of": [
            Sample(job_notes.notes_of(keys, "parked", ["j1", "j9", ODD]), [b"why", None, b"?"]),
            Sample(job_notes.notes_of(keys, "parked", []), []),
        ],
        "job_sizes": [
            Sample(job_notes.job_sizes(keys, ["j1", "j9", ODD]), [8, 0, 10]),
            Sample(job_notes.job_sizes(keys, ["j1"]), [8]),
            Sample(job_notes.job_sizes(keys, []), []),
        ],
        "deaths": [
            Sample(job_notes.deaths(keys, ["j1", "j9"]), [6000.0, None]),
            Sample(job_notes.deaths(keys, []), []),
        ],
        "expiries": [Sample(job_notes.expiries(keys, ["j1", "j9"]), [9100.0, None])],
        "expiry_page": [
            Sample(job_notes.expiry_page(keys, count=9), job_notes.ExpiryPage(0, {"j1": 9100.0}))
        ],
        "group_state": [
            Sample(group_notes.group_state(keys, "g1"), group_notes.GroupState("j1", 2, True)),
            Sample(group_notes.group_state(keys, ODD), group_notes.GroupState(ODD, 0, False)),
            Sample(group_notes.group_state(empty, "g1"), group_notes.GroupState(None, 0, False)),
        ],
        "turns_page": [
            Sample(
                group_notes.turns_page(keys, count=9),
                group_notes.TurnsPage(0, {"g1": "j1", ODD: ODD}),
            )
        ],
        "turns_of": [
            Sample(group_notes.turns_of(keys, ["g1", "g9", ODD]), ["j1", None, ODD]),
            Sample(group_notes.turns_of(keys, []), []),
        ],
        "groups_known": [
            Sample(group_notes.groups_known(keys), ["g1"]),
            Sample(group_notes.groups_known(empty), []),
        ],
        "group_sizes": [
            Sample(group_notes.group_sizes(keys, ["g1", "g9"]), 2),
            Sample(group_notes.group_sizes(keys, ["g1"], heads=True), 3),
        ],
        "place_sizes": [
            Sample(places.place_sizes(keys, [4, 5], ["c1", "c9"]), places.PlaceSizes(2, 9))
        ],
        "list_length": [
            Sample(places.list_length(keys, "ready", 4), 3),
            Sample(places.list_length(keys, "due", 5), 0),
        ],
        "id_at": [
            Sample(places.id_at(keys, "ready", 4, 1), ODD),
            Sample(places.id_at(keys, "due", 4, 0), "j4"),
            Sample(places.id_at(keys, "due", 4, 1), ""),
        ],
        "job_value": [
            Sample(places.job_value(keys, ODD), b"head;three"),
            Sample(places.job_value(keys, ""), None),
        ],
        "last_due": [Sample(places.last_due(keys), 8000), Sample(places.last_due(empty), None)],
        "leases": [
            Sample(
                consumer_rows.leases(keys),
                consumer_rows.Leases(5000, {"c1": 9000.0, ODD: 9500.5}, "c1"),
            ),
        ],
        "consumer_row": [
            Sample(
                consumer_rows.consumer_row(keys, "c1"),
                consumer_rows.ConsumerRow(places_of_c1.fields, 2, 1),
            ),
            Sample(consumer_rows.consumer_row(keys, "c9"), consumer_rows.ConsumerRow({}, 0, 0)),
        ],
        "registered_names": [Sample(consumer_rows.registered_names(keys), ["c1", ODD])],
        "worker_of": [
            Sample(consumer_rows.worker_of(keys, "c1"), "w1"),
            Sample(consumer_rows.worker_of(keys, "c9"), ""),
        ],
        "held_ids": [Sample(consumer_rows.held_ids(keys, "c1"), ["j1", ODD])],
        "consumer_names": [
            Sample(
                consumer_checks.consumer_names(keys),
                consumer_checks.ConsumerNames({"c1", ODD}, {"c1", "c2", "c3", "c4", ODD}),
            )
        ],
        "consumer_places": [
            Sample(consumer_checks.consumer_places(keys, "c1"), places_of_c1),
            Sample(
                consumer_checks.consumer_places(keys, ODD),
                consumer_checks.ConsumerPlaces(
                    {}, 9500.5, ["interested", "not_interested"], None, 0, False
                ),
            ),
        ],
        "held_bytes": [
            Sample(
                consumer_checks.held_bytes(keys, "c1"),
                consumer_checks.HeldBytes(100, 8, ["j1", ODD]),
            ),
            Sample(consumer_checks.held_bytes(keys, "c9"), consumer_checks.HeldBytes(0, 0, [])),
        ],
        "movement": [
            Sample(
                consumer_checks.movement(keys, [4]),
                consumer_checks.Movement(
                    paused=False, timer="c1", ready=3, due=7000.0, waiting=["c2", ODD], notified=1
                ),
            ),
            Sample(
                consumer_checks.movement(empty, []),
                consumer_checks.Movement(
                    paused=False, timer="", ready=0, due=None, waiting=[], notified=0
                ),
            ),
        ],
        "queue_exists": [
            Sample(queue_keys.queue_exists(keys), True),
            Sample(queue_keys.queue_exists(empty), False),
        ],
        "guard_exists": [Sample(queue_keys.guard_exists(keys), False)],
        "meta_fields": [Sample(queue_keys.meta_fields(keys, "v", "nothing"), [b"1", None])],
        "write_progress": [
            Sample(write_log.write_progress(keys, "r"), write_log.Progress(5, 4)),
            Sample(write_log.write_progress(keys, "s"), write_log.Progress(0, 0)),
        ],
        "written_marks": [
            Sample(write_log.written_marks(keys, "r", 1, 2, 3), b"defgh"),
            Sample(write_log.written_marks(keys, "r", 1, 3, 0), b""),
        ],
        "ping": [Sample(server.ping(), None)],
        # these change the clock, in this order
        "read_clock": [Sample(clock.read_clock(keys), stopped)],
        "reset_clock": [Sample(clock.reset_clock(keys), None)],
        "move_clock": [
            Sample(clock.move_clock(keys, 30), 30),
            Sample(clock.move_clock(keys, 2), 32),
        ],
        "stop_clock": [Sample(clock.stop_clock(keys, 6000), None)],
        # and this one takes what is there away
        "remove_keys": [
            Sample(queue_keys.remove_keys(keys, []), 0),
            Sample(queue_keys.remove_keys(keys, [keys.history, keys.held(ODD), keys.jobs]), 2),
        ],
    }


def without_time(answer: Any) -> Any:
    return answer._replace(server=0) if isinstance(answer, clock.Clock) else answer


def builders() -> set[str]:
    """All functions of `rqueue.protocol.commands` that build calls of Redis's own commands."""
    found = set()
    for info in pkgutil.iter_modules(commands.__path__):
        module = importlib.import_module(f"{commands.__name__}.{info.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if str(inspect.signature(function).return_annotation).startswith("CommandCall["):
                found.add(name)
    return found


def test_every_call_has_a_sample() -> None:
    assert builders() - {"server_info"} == set(samples(QueueKeys("q")))


@pytest.fixture(params=["resp2", "resp3", "cluster"])
def any_client(request: pytest.FixtureRequest, server: EmbeddedRedis) -> Iterator[Any]:
    if request.param == "cluster":
        with request.getfixturevalue("redis_cluster").client() as nodes:
            yield nodes
    else:
        with open_client(server.url, protocol=int(request.param[-1])) as client:
            yield client


@pytest.fixture
def keys(queue_name: str) -> QueueKeys:
    return QueueKeys(queue_name)


def test_each_call_over_each_client(any_client: Any, keys: QueueKeys) -> None:
    fill(any_client, keys)
    for name, found in samples(keys).items():
        for sample in found:
            assert without_time(execute(any_client, sample.call)) == sample.expected, name
    assert execute(any_client, server.server_info())["redis_version"]


@pytest.mark.parametrize("protocol", [2, 3])
def test_each_call_over_asyncio(
    server: EmbeddedRedis, client: redis.Redis, keys: QueueKeys, protocol: int
) -> None:
    async def ask_all() -> None:
        async with redis.asyncio.Redis.from_url(server.url, protocol=protocol) as anew:
            for name, found in samples(keys).items():
                for sample in found:
                    assert without_time(await aexecute(anew, sample.call)) == sample.expected, name

    fill(client, keys)
    asyncio.run(ask_all())


def test_several_go_together(any_client: Any, keys: QueueKeys) -> None:
    """More than one transaction has, of several queues, in their order."""
    queues = [QueueKeys(f"{keys.queue}-{number}") for number in range(120)]
    for number, one in enumerate(queues):
        any_client.hset(one.meta, "number", number)
    calls = [queue_keys.meta_fields(one, "number") for one in queues]
    assert execute_all(any_client, calls) == [[b"%d" % number] for number in range(120)]
    assert execute_all(any_client, []) == []
    assert [name for name in queue_names(any_client, "rqueue") if keys.queue in name] == sorted(
        one.queue for one in queues
    )
    assert list(scan(any_client, queues[7].pattern("m*"))) == [queues[7].meta]


def test_a_clock_that_goes(client: redis.Redis, keys: QueueKeys) -> None:
    execute(client, clock.move_clock(keys, 86_400_000))
    seconds, _ = client.time()
    read = execute(client, clock.read_clock(keys))
    assert read.stopped is None
    assert 0 <= read.now - 86_400_000 - seconds * 1000 < 60_000


def test_a_consumer_that_is_called_like_a_queue(client: redis.Redis, queue_name: str) -> None:
    """What ends like the `meta` key of a queue is none."""
    keys = QueueKeys(queue_name)
    client.hset(keys.meta, "v", 1)
    client.rpush(keys.held("{x}:meta"), "j1")
    assert [name for name in queue_names(client, "rqueue") if queue_name in name] == [queue_name]


def test_a_key_of_a_wrong_type_is_named(any_client: Any, keys: QueueKeys) -> None:
    """Also where it is one of several that go together."""
    fill(any_client, keys)
    any_client.unlink(keys.held("c1"))
    any_client.set(keys.held("c1"), "no list")
    for call in (consumer_rows.held_ids(keys, "c1"), consumer_rows.consumer_row(keys, "c1")):
        with pytest.raises(errors.QueueDamaged) as said:
            execute_all(any_client, [queue_keys.meta_fields(keys, "v"), call])
        wrong = said.value
        assert (wrong.queue, wrong.key) == (keys.queue, keys.held("c1"))
        assert (wrong.found, wrong.expected) == ("string", "list")


def test_what_redis_refuses_is_named(private_server: EmbeddedRedis) -> None:
    """One command, or one of several: the error is the same."""
    keys = QueueKeys("q")
    with open_client(private_server.url) as client:
        client.acl_setuser(
            "half",
            enabled=True,
            nopass=True,
            keys=["*"],
            commands=["+hget", "+multi", "+exec", "+@connection"],
        )
    with open_client(private_server.url, username="half", password="x") as client:
        for call in (job_notes.notes_of(keys, "parked", ["j1"]), history.history_ends(keys)):
            with pytest.raises(errors.AuthenticationFailed, match=r"give it \+(hmget|xrevrange)"):
                execute(client, call)


def test_a_cluster_is_no_single_server(redis_cluster: SmallCluster) -> None:
    """A plain client of a node asks for queues of other nodes; there is no cluster where none of
    its nodes answers."""
    with open_client(redis_cluster.url) as node:
        found = []
        for number in range(8):
            try:
                execute(node, queue_keys.queue_exists(QueueKeys(f"q{number}")))
            except errors.WrongServer as error:
                found.append(error)
        assert found, "some of the queues are on other nodes"
    with (
        redis_cluster.client() as nodes,
        pytest.raises(errors.ConnectionLost, match="no cluster to be reached"),
        translated(nodes),
    ):
        raise RedisClusterException("no node answers")
