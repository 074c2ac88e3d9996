# Generated from tests/client/_async/test_sharded_queue.py (`make generate`): do not edit.
"""One queue that is spread over several."""

from time import monotonic

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, QueueSharded, ShardsChanged, ShardsMoving
from rqueue.inspector import Inspector
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE


def keyed(number: int) -> Options:
    return Options(key=f"k{number}")


def test_jobs_with_keys_go_where_their_keys_are(server: EmbeddedRedis, queue_name: str) -> None:
    with ShardedQueue(queue_name, server.url, shards=4) as queue:
        for round_ in range(3):
            for number in range(20):
                queue.send("t", [round_], options=keyed(number))
        counts = [its.ready for its in [one.counts() for one in queue.queues()]]
        assert sum(counts) == 60 == (queue.counts()).ready and min(counts) > 0
        assert all(count % 3 == 0 for count in counts)
        many = queue.enqueue_many([Call("t", [1], None, keyed(n)) for n in range(20)])
        assert len({handle.id for handle in many}) == 20
        counts = [its.ready for its in [one.counts() for one in queue.queues()]]
        assert all(count % 4 == 0 for count in counts)


def test_a_queue_of_that_name_knows_its_shards(
    server: EmbeddedRedis, queue_name: str, queue: Queue
) -> None:
    """Who enqueues by name need not know that it is spread."""
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        sharded.table()
        handle = queue.send("t", options=Options(id="a"))
        assert handle.created and not (queue.send("t", options=Options(id="a"))).created
        assert len(queue.enqueue_many([Call("t") for _ in range(9)])) == 9
        assert (sharded.counts()).ready == 10
        assert ((sharded.job("a")).state()).value == "ready"
        assert sharded.cancel("a")
        assert len([job for job in sharded.browse()]) == 9
        consumer = queue.consumer()
        with pytest.raises(QueueSharded):
            consumer.register()
        consumer.close()
        with pytest.raises(ShardsChanged, match=f"a shard of queue '{queue_name}'"):
            queue.at(f"{queue_name}~0").send("t")


def test_a_shard_that_opens_waits_for_what_came_before(
    server: EmbeddedRedis, queue_name: str
) -> None:
    with (
        ShardedQueue(queue_name, server.url, shards=1) as one,
        ShardedQueue(queue_name, server.url) as other,
    ):
        for number in range(8):
            one.send("t", [0], options=keyed(number))
            other.send("t", [1], options=keyed(number))
        assert one.open() == 1
        with pytest.raises(ShardsMoving):
            one.open()
        for number in range(8):
            other.send("t", [2], options=keyed(number))
        first, second = one.queues()
        assert (first.counts()).ready + (second.counts()).ready == 24
        consumer, later = first.consumer(jobs=100, renew=False), second.consumer(jobs=100)
        with consumer, later:
            assert later.pull() == []
            jobs = consumer.pull()
            consumer.settle(ack=[job.id for job in jobs if job.header.position <= 15])
            assert (one.advance()).moving
            consumer.settle(ack=[job.id for job in jobs if job.header.position > 15])
            assert not (one.advance()).moving
            assert len(later.pull()) == (second.counts()).held > 0


def in_two_shards(queue: ShardedQueue) -> None:
    """Eight jobs before a shard opens, and eight behind."""
    for number in range(8):
        queue.send("t", options=keyed(number))
    assert queue.open() == 1
    for number in range(8):
        queue.send("t", options=keyed(number))


@pytest.mark.parametrize("listens", [True, False])
def test_consumers_of_ones_own_lift_fences_as_pools_do(
    server: EmbeddedRedis, queue_name: str, listens: bool
) -> None:
    """When the shard has a word for them, and with each renewal."""
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        in_two_shards(queue)
        consumers = [
            its.consumer(jobs=9, renew=not listens, lease=2).register() for its in queue.queues()
        ]
        until = monotonic() + PATIENCE
        while (queue.counts()).ready and monotonic() < until:
            for consumer in consumers:
                if listens and consumer.state != "notified":
                    consumer.wait(0.05)
                jobs = consumer.pull()
                consumer.settle(ack=[job.id for job in jobs])
        assert (queue.counts()).ready == 0
        for consumer in consumers:
            consumer.close()
        assert not (queue.table()).moving


def test_the_doctor_sees_a_fence_that_stands(server: EmbeddedRedis, queue_name: str) -> None:
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        in_two_shards(queue)
        first, second = queue.queues()
        first.cancel_all()
        with first.consumer(jobs=9, renew=False) as consumer:
            assert consumer.pull() == []  # the marks go
        with Inspector(server.url) as inspector:
            doctor = inspector.doctor(wait=lambda _: None)
            found = doctor.check_queue(queue_name)
            assert [one.kind for one in found] == ["standing-fence"]
            assert doctor.repair(found[0])
            assert doctor.check_queue(queue_name) == []
        with second.consumer(jobs=9, renew=False) as consumer:
            assert consumer.pull()


def test_a_shard_is_drained(server: EmbeddedRedis, queue_name: str) -> None:
    with ShardedQueue(queue_name, server.url, shards=3) as queue:
        queue.configure(max_deliveries=3)
        for number in range(9):
            queue.send("t", options=keyed(number))
        queue.drain(1)
        for number in range(9):
            queue.send("t", options=keyed(number))
        _, drained, _ = queue.queues()
        with drained.consumer(jobs=100) as consumer:
            jobs = consumer.pull()
            assert 0 < len(jobs) < 9
            consumer.settle(ack=[job.id for job in jobs])
        table = queue.advance()
        assert (table.moving, table.shards[1].state) == ("", "closed")
        assert [one.name for one in queue.queues()] == [
            f"{queue_name}~0",
            f"{queue_name}~2",
        ]
        assert queue.open(1) == 1
        with pytest.raises(ConfigError, match="is open"):
            queue.open(1)


def test_a_queue_with_jobs_gets_no_shards(queue: Queue, server: EmbeddedRedis) -> None:
    queue.send("t")
    with ShardedQueue(queue.name, server.url, shards=2) as sharded:
        with pytest.raises(ConfigError, match="shards"):
            sharded.table()
    with ShardedQueue(f"{queue.name}-x", server.url) as unknown:
        with pytest.raises(ConfigError, match="rqueue shards create"):
            unknown.send("t")


def test_an_id_whose_key_moved_is_known(server: EmbeddedRedis, queue_name: str) -> None:
    """Also to clients that learn of the move by being refused, alone and in a batch, and once the
    job has ended."""
    with (
        ShardedQueue(queue_name, server.url, shards=1) as queue,
        ShardedQueue(queue_name, server.url) as other,
    ):
        ids = [f"id-{number}" for number in range(12)]
        for id_ in ids:
            queue.send("t", options=Options(id=id_))
        other.table()
        queue.open()
        (first, second) = queue.queues()
        again = other.enqueue_many([Call("t", [1], None, Options(id=id_)) for id_ in ids])
        assert not any(handle.created for handle in again)
        assert {handle.queue for handle in again} == {first.name}
        assert not (queue.send("t", options=Options(id=ids[3]))).created
        fresh = [Call("t", [1], None, Options(id=f"new-{id_}")) for id_ in ids]
        new = other.enqueue_many(fresh)
        assert all(handle.created for handle in new)
        assert {handle.queue for handle in new} == {first.name, second.name}
        with first.consumer(jobs=100) as consumer:
            jobs = consumer.pull()
            consumer.settle(ack=[job.id for job in jobs])
        assert not (queue.advance()).moving
        handles = [other.send("t", options=Options(id=id_)) for id_ in ids]
        assert not any(handle.created for handle in handles)
        assert (queue.counts()).ready == (second.counts()).ready


def test_a_unique_key_that_moved_has_one_job(server: EmbeddedRedis, queue_name: str) -> None:
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        uniques = [Options(unique=UniqueKey(f"u{number}")) for number in range(8)]
        owners = [queue.send("t", options=options) for options in uniques]
        queue.open()
        for owner, options in zip(owners, uniques, strict=True):
            found = queue.send("t", options=options)
            assert (found.id, found.created, found.conflict) == (owner.id, False, "ready")
        many = queue.enqueue_many([Call("t", [], None, options) for options in uniques])
        assert [handle.id for handle in many] == [owner.id for owner in owners]
        assert (queue.counts()).ready == 8


def test_what_nobody_knows_any_more_is_forgotten(
    server: EmbeddedRedis, queue_name: str, client: redis.Redis
) -> None:
    """Then an enqueue asks one shard alone again."""
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.configure(keep="1s")
        queue.send("t", options=Options(id="a"))
        queue.open()
        assert (queue.table()).past
        queue.cancel("a")
        for moment, remembered in ((0, True), (1000, True), (4000, False)):
            for its in queue.queues():
                client.hset(its.keys.meta, "clock", moment)
            assert bool((queue.advance()).past) is remembered
