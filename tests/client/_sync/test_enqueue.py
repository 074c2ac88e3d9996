# Generated from tests/client/_async/test_enqueue.py (`make generate`): do not edit.
"""Enqueue: options, one job per id whatever happens to the connection, errors of the server."""

import logging
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    BadArguments,
    ConnectionLost,
    NoConsumer,
    NotEncodable,
    RedisOutOfMemory,
    RedisUnavailable,
)
from rqueue.model.envelope import unpack
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.request import JobRequest
from rqueue.tasks.retry import RetryPolicy
from rqueue.transport import server_check
from tests.support.proxy import Proxy
from tests.support.pulling import pull, pull_one

registry = Registry()


@task(name="add", registry=registry, priority=6, headers={"app": "shop"})
def add(a: int, b: int = 0) -> int:
    return a + b


def test_a_task_and_a_name(queue: Queue, consumer: Consumer) -> None:
    first = queue.enqueue(add, 1, b=2)
    second = queue.enqueue("other.task", "x", y=[1])
    jobs = {job.id: job for job in pull(consumer, 2)}
    assert unpack(jobs[first.id].body) == ("add", [1], {"b": 2}, {"headers": {"app": "shop"}})
    assert jobs[first.id].level == 6
    assert unpack(jobs[second.id].body) == ("other.task", ["x"], {"y": [1]}, {})
    assert jobs[second.id].level == 4
    assert (first.created, second.created) == (True, True)


def test_a_parameter_may_have_any_name(queue: Queue, consumer: Consumer) -> None:
    queue.enqueue("t", task="a", self="b", args=1)
    assert unpack((pull_one(consumer)).body)[2] == {"task": "a", "self": "b", "args": 1}


def test_options_of_one_job(queue: Queue, consumer: Consumer) -> None:
    options = Options(
        id="my-own",
        priority=9,
        max_deliveries=3,
        retry=RetryPolicy(delay=2),
        time_limit=5,
        keep=60,
        labels={"gpu": True},
    )
    handle = queue.send("t", (1,), options=options)
    job = pull_one(consumer)
    assert (handle.id, job.id, job.level, job.max_deliveries) == ("my-own", "my-own", 9, 3)
    opts = unpack(job.body)[3]
    assert (opts["time_limit"], opts["keep"], opts["labels"]) == (5, 60, {"gpu": True})


def test_due_times(queue: Queue) -> None:
    queue.enqueue(add.options(at=timedelta(hours=1)), 1)
    queue.enqueue(add.options(at=datetime.now(UTC) + timedelta(days=1)), 1)
    queue.enqueue(add.options(at=datetime.now(UTC) - timedelta(days=1)), 1)
    counts = queue.counts()
    assert (counts.scheduled, counts.ready) == (2, 1)
    assert 0 < counts.next_due_ms - counts.now <= 3_600_000


def test_one_id_is_one_job(queue: Queue, consumer: Consumer) -> None:
    bound = add.options(id="order-7")
    assert (queue.enqueue(bound, 1)).created
    assert not (queue.enqueue(bound, 2)).created
    job = pull_one(consumer)
    assert unpack(job.body)[1] == [1]
    consumer.ack(job, 1)
    again = queue.enqueue(bound, 3)
    assert not again.created
    assert again.result(0) == 1


def test_many(queue: Queue) -> None:
    calls = [Call(add, (i,)) for i in range(600)] + [Call("t", (1,), {"b": 2}, Options(id="x"))]
    handles = queue.enqueue_many(iter(calls))
    assert len({handle.id for handle in handles}) == 601
    assert all(handle.created for handle in handles)
    with queue.consumer(jobs=601, renew=False) as consumer:
        jobs = consumer.pull() + consumer.pull()
    assert [job.id for job in jobs] == [handle.id for handle in handles]
    again = queue.enqueue_many([Call("t", options=Options(id="x")), Call("t")])
    assert [handle.created for handle in again] == [False, True]
    assert queue.enqueue_many([]) == []


def test_the_next_batch_is_packed_while_one_is_under_way(far: Queue, proxy: Proxy) -> None:
    far.send("t")
    proxy.hold()

    def calls() -> Iterator[Call]:
        for i in range(500):
            if i == 250:
                proxy.release()  # the first batch is sent, and its reply is held back until now
            yield Call("t", (i,))

    assert all(handle.created for handle in far.enqueue_many(calls()))
    assert (far.counts()).ready == 501


def test_a_call_that_is_wrong_leaves_the_batch_before_it_stored(queue: Queue) -> None:
    with pytest.raises(BadArguments):
        queue.enqueue_many([*(Call(add, (i,)) for i in range(250)), Call(add, ())])
    assert (queue.counts()).ready == 250
    assert (queue.send("t")).created


def test_what_raises_stores_nothing(queue: Queue) -> None:
    """C-12."""
    with pytest.raises(BadArguments):
        queue.enqueue(add, 1, 2, 3)  # type: ignore[call-arg]
    with pytest.raises(NotEncodable, match="argument 'a'"):
        queue.enqueue(add, b"x")  # type: ignore[arg-type]
    with pytest.raises(NotEncodable, match=r"^arguments of task 't': 17,000,010 bytes"):
        queue.send("t", ["x" * 17_000_000])
    with pytest.raises(BadArguments):
        queue.enqueue_many([Call(add, (1,)), Call(add, ())])
    with pytest.raises(NoConsumer):
        queue.send("t", options=Options(immediate=True))
    assert (queue.counts()).ready == 0


def test_immediate_is_delivered_to_who_waits(queue: Queue, consumer: Consumer) -> None:
    consumer.pull()
    handle = queue.send("t", options=Options(immediate=True))
    assert handle.handed_to == consumer.name
    assert [wake.job and wake.job.id for wake in consumer.wait(10)] == [handle.id]


def test_other_queues_over_one_connection(queue: Queue, consumer: Consumer) -> None:
    """A-40."""
    other = queue.at(f"{queue.name}-b")
    assert other is queue.at(f"{queue.name}-b")
    assert other.at(queue.name) is queue
    assert other.redis is queue.redis
    handle = queue.enqueue_request(JobRequest("t", (), {}, Options(), (), other.name))
    assert handle.queue == other.name
    assert ((queue.counts()).ready, (other.counts()).ready) == (0, 1)


def test_namespaces_are_apart(queue: Queue, server: EmbeddedRedis) -> None:
    with Queue(queue.name, server.url, namespace="other") as other:
        other.send("t")
        assert ((queue.counts()).ready, (other.counts()).ready) == (0, 1)


@pytest.mark.parametrize("after", [0, 1, 4, 9])
def test_a_reply_that_is_cut_makes_no_second_job(
    far: Queue, near: Queue, proxy: Proxy, after: int
) -> None:
    far.send("t")  # the script is known, the connection is there
    proxy.cut_reply(after)
    handle = far.send("t", [1])
    assert proxy.wait_cut()
    assert handle.created  # it was sent twice, but this call made the job
    assert (near.counts()).ready == 2

    proxy.cut_reply(after)
    mine = far.send("t", options=Options(id="mine"))
    assert (mine.id, (near.counts()).ready) == ("mine", 3)

    proxy.cut_reply(after)
    handles = far.enqueue_many([Call("t", (i,)) for i in range(300)])
    assert all(handle.created for handle in handles)
    assert (near.counts()).ready == 303


def test_a_server_that_is_away_and_comes_back(far: Queue, proxy: Proxy) -> None:
    proxy.refuse()
    with pytest.raises(ConnectionLost) as error:
        far.send("t")
    assert isinstance(error.value, RedisUnavailable)
    assert f"127.0.0.1:{proxy.port}" in str(error.value)
    proxy.accept()
    assert (far.send("t")).created


def test_scripts_survive_a_flush_and_a_restart(near: Queue, private_server: EmbeddedRedis) -> None:
    near.send("t")
    near.redis.script_flush()
    near.send("t")
    private_server.restart()
    near.send("t")
    assert (near.counts()).ready == 3


def test_a_server_without_memory_stores_nothing(
    make_server: Callable[..., EmbeddedRedis], queue_name: str
) -> None:
    server = make_server(config={"maxmemory": "3mb"})
    with Queue(queue_name, server.url) as queue:
        with pytest.raises(RedisOutOfMemory):
            for _ in range(100):
                queue.send("t", ["x" * 100_000])
        before = (queue.counts()).ready
        with pytest.raises(RedisOutOfMemory):
            queue.send("t", ["x" * 100_000])
        assert (queue.counts()).ready == before


def test_a_policy_that_evicts_is_warned_of_once(
    make_server: Callable[..., EmbeddedRedis],
    queue_name: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = make_server(config={"maxmemory-policy": "allkeys-lru"})
    with caplog.at_level(logging.WARNING, "rqueue"):
        for _ in range(2):
            with Queue(queue_name, server.url) as queue:
                queue.send("t")
                queue.send("t")
    warnings = [record.getMessage() for record in caplog.records]
    assert len(warnings) == 1
    assert "maxmemory-policy is 'allkeys-lru'" in warnings[0]
    assert server.url in warnings[0]


def test_a_server_that_hides_itself_is_no_trouble(
    private_server: EmbeddedRedis, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Queue(queue_name, private_server.url) as queue:
        queue.redis.acl_setuser(
            "app",
            enabled=True,
            passwords=["+pw"],
            keys=["*"],
            categories=["+@all"],
            commands=["-info"],
        )
    url = private_server.tcp_url.replace("redis://", "redis://app:pw@")
    server_check._seen.discard(url)
    with caplog.at_level(logging.INFO, "rqueue"):
        with Queue(queue_name, url) as queue:
            assert (queue.send("t")).created
    assert "cannot look at the settings" in caplog.text
    assert "pw@" not in caplog.text
