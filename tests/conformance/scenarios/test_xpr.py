"""rqueue's own: processes that are killed, frozen and cut off, and what Redis makes of all that."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    ConfigError,
    RedisOutOfMemory,
    RedisUnavailable,
    RegistrationLost,
    ScriptError,
)
from rqueue.model.envelope import unpack
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, ScriptCall, Window
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from rqueue_workers.exit_codes import Exit
from tests.support import invariants
from tests.support.holder import Holder
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.queue_fixture import QueueFixture, every_kind_in_a_pool, ids, one_kind
from tests.workers.pools import Pool, eventually, go, header, noted, started

MakePool = Callable[..., Pool]


WORD: Any = "soon"
"""No number, and no mode."""

WRONG: dict[str, Any] = {
    "more arguments than the groups say": lambda k, c: _with(
        commands.settle(k, c.name, c.term, None, ack=["A"]), "more"
    ),
    "an unknown place": lambda k, c: commands.settle(
        k, c.name, c.term, None, ack=["A"], retry=[Retried("B", 0, "nowhere", True, b"")]
    ),
    "a delay that is no number": lambda k, c: commands.settle(
        k, c.name, c.term, None, ack=["A"], retry=[Retried("B", WORD, "old", True, b"")]
    ),
    "a negative window": lambda k, c: commands.pull(k, c.name, c.term, Window(-1)),
    "no window": lambda k, c: commands.interest(k, c.name, c.term, Window(WORD)),
    "no jobs": lambda k, c: commands.enqueue_alike(k, []),
    "half a job": lambda k, c: commands.enqueue_alike(k, ["A", b"[]", "B"]),
    "runs of another number": lambda k, c: commands.enqueue_alike(k, ["A", b"[]"], "4,,0,9"),
    "two immediate jobs": lambda k, c: commands.enqueue(
        k, [Put("X", b"[]"), Put("Y", b"[]")], immediate=True
    ),
    "an unknown option": lambda k, c: commands.configure(k, {"keep_ms": 5000, "colour": 1}),
    "a limit out of range": lambda k, c: commands.configure(k, {"keep_ms": 5000, "priorities": 0}),
    "other levels with jobs there": lambda k, c: commands.configure(
        k, {"keep_ms": 5000, "priorities": 3}
    ),
    "a lease of nothing": lambda k, c: commands.renew(k, 0, [c.name]),
    "a name that is taken": lambda k, c: commands.register(k, c.name, lease_ms=1000),
    "a name with a newline": lambda k, c: commands.register(k, "a\nb", lease_ms=1000),
    "an unknown mode": lambda k, c: commands.register(
        k,
        "new",
        mode=WORD,
        lease_ms=1000,
    ),
    "a purge without limit": lambda k, c: commands.purge(k, 0),
    "a purge of nothing held": lambda k, c: commands.purge_held(k, c.name, []),
    "too many ids": lambda k, c: commands.requeue(k, [str(i) for i in range(300)]),
}


def _with(call: ScriptCall[Any], *more: str) -> ScriptCall[Any]:
    return ScriptCall(call.script, call.key, [*call.args, *more], call.read)


@pytest.fixture
def holder(q: QueueFixture, server: EmbeddedRedis) -> Iterator[Holder]:
    """A consumer of `q`'s queue in a process of its own, with a window of five."""
    with Holder(server.url, q.queue.name, jobs=5) as holder:
        yield holder


def end_lease(q: QueueFixture) -> None:
    """Time passes, and another client looks."""
    move_time(q.queue, 60_000)
    q.renew()


@every_kind_in_a_pool
def test_XPR_01_jobs_of_a_killed_process_come_back_in_their_places(
    q: QueueFixture, holder: Holder, kind: str
) -> None:
    """C-05, Q-59: each once, before what waited. None is charged: nothing says that one ran."""
    names = [f"{i:02}" for i in range(1, 11)]
    q.put(*names)
    assert holder.do("pull") == names[:5]
    holder.kill()
    assert q.listed() == names[5:]
    end_lease(q)
    jobs = q.join().pull()
    assert ids(jobs) == names
    assert [job.redelivered for job in jobs] == [True] * 5 + [False] * 5
    assert [job.attempts for job in jobs] == [0] * 10


@one_kind
@pytest.mark.parametrize(
    "step", [("ack", "A"), ("release", "A"), ("reject", "A", "no"), ("retry", "A"), ("pull",)]
)
def test_XPR_03_a_process_that_was_frozen_changes_nothing(
    q: QueueFixture, holder: Holder, step: tuple[str, ...]
) -> None:
    """a) H-08: its lease ended meanwhile; it is answered so, and what another one said holds."""
    q.put("A")
    assert holder.do("pull") == ["A"]
    holder.freeze()
    holder.ask(*step)
    end_lease(q)
    taker = q.join(1)
    assert ids(taker.pull()) == ["A"]
    assert taker.ack("A", "in time")
    before = q.look()
    holder.thaw()
    assert holder.answer() == "its registration is lost"
    assert not (wrong := invariants.unchanged(before, q.look())), wrong
    assert q.queue.job("A").result(0) == "in time"
    assert q.queue.counts().meta["acked"] == "1"


@pytest.mark.parametrize("verb", ["ack", "release", "reject", "retry", "pull", "interest"])
def test_XPR_03_what_a_consumer_says_after_its_lease_changes_nothing(
    q: QueueFixture, verb: str
) -> None:
    """b) H-08: while nobody else has the job either."""
    q.put("A", "B")
    zombie = q.join(1)
    zombie.pull()
    end_lease(q)
    before = q.look()
    arguments = {"reject": ("A", "why"), "pull": (), "interest": (3,)}.get(verb, ("A",))
    with pytest.raises(RegistrationLost):
        getattr(zombie, verb)(*arguments)
    assert not (wrong := invariants.unchanged(before, q.look())), wrong


@every_kind_in_a_pool
def test_XPR_05_a_lost_wake_up_is_made_good_by_the_next_renewal(q: QueueFixture, kind: str) -> None:
    """H-07, X-02: a notification has a deadline."""
    q.queue.pause()
    deaf, other = q.join(10), q.join(10)
    q.put(*"0123456789")
    q.queue.resume()
    assert q.state(deaf) == "notified"
    q.queue.redis.delete(q.queue.keys.wake(deaf.name))
    move_time(q.queue, 6000)
    q.renew(other)
    assert q.state(other) == "notified"
    assert ids(other.pull()) == list("0123456789")


def test_XPR_07_after_a_lost_reply_a_consumer_asks_what_it_holds(q: QueueFixture) -> None:
    """a) H-18."""
    consumer = q.join(2)
    q.put("A", "B", "C")
    q.queue.redis.delete(q.queue.keys.wake(consumer.name))  # A was delivered there
    got = consumer.pull(recall=True)
    assert ids(got) == ["A", "B"]
    assert [consumer.ack(job) for job in got] == [True, True]


@one_kind
def test_XPR_07_a_pull_whose_reply_is_cut_loses_and_doubles_nothing(
    server: EmbeddedRedis, q: QueueFixture
) -> None:
    """b) H-18: the connection ends after the step was done, and before its reply came."""
    proxy = Proxy(server.url.removeprefix("unix://").partition("?")[0])
    with Queue(q.queue.name, proxy.url) as far:
        q.put("A", "B", "C")
        consumer = far.consumer(jobs=2, renew=False).register()
        proxy.swallow_reply()
        jobs = [job.id for job in (consumer.receive(10), consumer.receive(10)) if job]
        assert proxy.wait_cut()
        assert jobs == ["A", "B"]
        assert q.look().held == {consumer.name: ["A", "B"]}
        assert ids(q.join().pull()) == ["C"]
        consumer.close()
    proxy.close()


@pytest.mark.each_server
@pytest.mark.parametrize("what", WRONG)
def test_XPR_09_a_wrong_call_changes_nothing(q: QueueFixture, what: str) -> None:
    """H-01."""
    consumer = q.join(2)
    q.queue.pause()
    q.put("A", "B", "C")
    q.queue.resume()
    consumer.pull()
    before = q.look()
    with pytest.raises((ScriptError, ConfigError)):
        execute(q.queue.redis, WRONG[what](q.queue.keys, consumer))
    assert not (wrong := invariants.unchanged(before, q.look())), wrong


@one_kind
def test_XPR_11_a_busy_queue_holds_no_other_one_up(
    q: QueueFixture, client: redis.Redis, make_pool: Callable[..., Pool]
) -> None:
    """Q-31, H-06: a job of the quiet queue begins after a bounded number of the busy one's."""
    busy, quiet = q.queue, QueueFixture(q.queue.at(f"{q.queue.name}-quiet"))
    key = f"{busy.name}-ran"
    pool = make_pool(queues=[busy.name, quiet.queue.name], async_slots=0)
    for number in range(15):
        if busy.counts().ready < 1000:
            busy.enqueue_many(Call("note", [key, ""]) for _ in range(2000))
        quiet.queue.enqueue("note", key, str(number)).result(PATIENCE)
    q.purge()
    assert pool.drained() == 0
    began = [row["started"] for row in q.look().history if row["started"]]
    rows = quiet.look().history
    waited = [sum(row["enqueued"] < started < row["started"] for started in began) for row in rows]
    assert len(waited) == 15 and max(waited) <= 600, waited
    client.delete(key)


def test_XPR_13_a_full_server_takes_nothing_in_and_lets_all_out(
    make_server: Callable[..., EmbeddedRedis], make_q: Callable[[EmbeddedRedis], QueueFixture]
) -> None:
    """H-10."""
    q = make_q(make_server())
    q.put("A", "B", "C")
    consumer = q.join(2)
    consumer.pull()
    q.queue.redis.config_set("maxmemory", 1)
    before = q.look()
    with pytest.raises(RedisOutOfMemory):
        q.put("D")
    assert not (wrong := invariants.unchanged(before, q.look())), wrong
    assert consumer.ack("A", "done")
    assert consumer.release("B")
    assert ids(consumer.pull()) == ["B", "C"]
    assert q.queue.job("A").result(0) == "done"
    q.close()


def test_XPR_15_names_and_bodies_of_any_text_survive(q: QueueFixture) -> None:
    """a) H-03."""
    odd = ["a b", "{x}", "_", "日本", "per%cent", "x" * 512, "1,2;3"]
    bodies = ["", "\0\x01", "é" * 1000, "y" * 1_000_000, "]", '"', ";"]
    for id, body in zip(odd, bodies, strict=True):
        q.queue.send("t", [body], None, Options(id=id))
    got = q.join().pull()
    assert ids(got) == odd
    for body, job in zip(bodies, got, strict=True):
        assert unpack(job.body)[1] == [body]


@pytest.mark.parametrize("name", ["a b", "{x}y", "}", "日本", "*?[a]\\", "100%"])
def test_XPR_15_queues_of_any_name_are_apart(q: QueueFixture, name: str) -> None:
    """b) H-03, H-02."""
    other = q.queue.at(f"{q.queue.name} {name}")
    there = QueueFixture(other)
    there.put("there")
    q.put("here")
    assert ids(there.join().pull()) == ["there"]
    assert ids(q.join().pull()) == ["here"]
    there.close()


@one_kind
def test_XPR_17_a_pool_that_is_asked_to_leave_finishes_what_runs(
    q: QueueFixture, client: redis.Redis, make_pool: MakePool
) -> None:
    """a) C-02, C-13, X-21: what it had fetched goes back at once, uncounted and in its place."""
    key = q.queue.name
    running = [q.queue.enqueue("hold", key) for _ in range(2)]
    waiting = [q.queue.enqueue("note", key, "never").id for _ in range(5)]
    pool = make_pool(threads=2, prefetch=10)
    for job in running:
        started(client, key)
        noted(q.queue, job.id)
    pool.send(signal.SIGTERM)
    pool.said("draining")
    eventually(lambda: q.queue.counts().ready == 5)
    for _ in running:
        go(client, key, "finished")
    assert pool.ended() == 0
    assert [job.result(0) for job in running] == ["finished"] * 2
    jobs = q.join().pull()
    assert ids(jobs) == waiting
    assert [job.attempts for job in jobs] == [0] * 5
    assert client.llen(key) == 0


@one_kind
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_XPR_17_a_second_signal_stops_a_pool_at_once(
    second: signal.Signals,
    q: QueueFixture,
    client: redis.Redis,
    make_pool: MakePool,
) -> None:
    """b) C-02: what runs is released, uncounted."""
    job = q.queue.enqueue("hold", q.queue.name)
    pool = make_pool(drain="1h")
    started(client, q.queue.name)
    pool.send(signal.SIGTERM)
    pool.said("draining")
    pool.send(second)
    assert pool.ended() == Exit.UNFINISHED
    assert job.state() is JobState.READY
    assert header(q.queue, job.id).attempts == 0


def test_XPR_18_what_was_replicated_outlives_the_primary(
    make_server: Callable[..., EmbeddedRedis], queue_name: str
) -> None:
    """H-05, H-12: confirmed by WAIT, it is delivered; twice only what was held or just settled."""
    primary, replica = make_server(port=0), make_server(port=0)
    with redis.Redis.from_url(primary.url) as old, redis.Redis.from_url(replica.url) as new:
        old.config_set("repl-diskless-sync-delay", 0)
        new.execute_command("REPLICAOF", "127.0.0.1", str(address_of(primary)[1]))
        eventually(lambda: new.info("replication")["master_link_status"] == "up")
        proxy = Proxy(address_of(primary))
        with Queue(queue_name, proxy.url) as queue:
            q = QueueFixture(queue)
            names = [f"{i:03}" for i in range(220)]
            q.put(*names[:200])
            first = q.join(20)
            taken = ids(first.pull())
            first.settle(ack=taken[:10])
            assert old.execute_command("WAIT", 1, 10_000) == 1
            first.settle(ack=taken[10:15])
            q.put(*names[200:210])
            primary.kill()
            with pytest.raises(RedisUnavailable):
                q.put(names[210])
            new.execute_command("REPLICAOF", "NO", "ONE")
            proxy.lead_to(address_of(replica))
            # the outcome of the last ones is not known: they are enqueued again under their ids
            q.put(*names[200:])
            end_lease(q)
            second = q.join(500)
            jobs = second.pull()
            seen = set(ids(jobs))
            assert set(names[10:]) - set(taken[10:15]) <= seen <= set(names[10:])
            assert len({job.position for job in jobs}) == len(jobs)
            assert [job.id for job in jobs if job.redelivered] == [
                id for id in taken[10:] if id in seen
            ]
            second.settle(ack=jobs)
            assert not (wrong := invariants.of_state(q.look())), wrong
            second.close()
        proxy.close()


def address_of(server: EmbeddedRedis) -> tuple[str, int]:
    """Host and port."""
    assert server.tcp_url
    return "127.0.0.1", int(server.tcp_url.rpartition(":")[2].partition("/")[0])
