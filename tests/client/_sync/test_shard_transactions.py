# Generated from tests/client/_async/test_shard_transactions.py (`make generate`): do not edit.
"""Transactions of a queue that is spread: one step of the shard of a key."""

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, QueueSharded, TransactionRolledBack
from rqueue.model.job import JobState
from rqueue.tasks.options import Options


def ready(queue: ShardedQueue) -> dict[str, list[str]]:
    """The ids of the jobs that wait, by their shards."""
    found = {}
    for its in queue.queues():
        with its.consumer(mode="browse", jobs=100, renew=False) as browser:
            found[its.name] = [job.id for job in browser.pull()]
    return found


def test_jobs_of_one_key_are_one_step(server: EmbeddedRedis, queue_name: str) -> None:
    with ShardedQueue(queue_name, server.url, shards=3) as queue:
        shard = (queue.table()).name((queue.table()).shard_of("k"))
        with queue.transaction("k") as tx:
            one = tx.enqueue("t", 1)
            two = tx.send("t", [2], None, Options(id="two", key="k"))
            assert (queue.counts()).ready == 0
        assert (ready(queue))[shard] == [one.id, two.id]
        assert {one.queue, two.queue} == {shard} and one.created and two.created
        assert two.state() is JobState.READY
        with pytest.raises(ZeroDivisionError):
            with queue.transaction("k") as tx:
                tx.enqueue("t", 1 / 0)
        with queue.transaction("k") as tx:
            again = tx.send("t", options=Options(id="two"))
            tx.enqueue("t")
        assert not again.created and (queue.counts()).ready == 3
        with queue.transaction("k") as tx:
            with pytest.raises(ConfigError, match="have the key 'k'"):
                tx.send("t", options=Options(key="other"))


def test_an_ack_and_what_follows_it_are_one_step(server: EmbeddedRedis, queue_name: str) -> None:
    with ShardedQueue(queue_name, server.url, shards=2) as queue:
        queue.send("t", options=Options(key="k", id="first"))
        with consumer_of(queue, "k") as consumer:
            (job,) = consumer.pull()
            with queue.transaction("k", consumer) as tx:
                tx.ack(job)
                follower = tx.enqueue("t")
            assert consumer.held == 0
            (job,) = consumer.pull()
            assert job.id == follower.id
            consumer.release(job)
            with pytest.raises(TransactionRolledBack):
                with queue.transaction("k", consumer) as tx:
                    tx.ack(job)
                    tx.enqueue("t")
            with queue.transaction("k", consumer) as tx:
                pass
        assert (queue.counts()).ready == 1


def consumer_of(queue: ShardedQueue, key: str) -> Consumer:
    """A consumer of the shard of a key."""
    table = queue.table()
    (its,) = [one for one in queue.queues() if one.name == table.name(table.shard_of(key))]
    return its.consumer(jobs=100, renew=False)


def test_a_shard_opens_meanwhile(server: EmbeddedRedis, queue_name: str) -> None:
    """Who is refused learns, and goes where the key is now; a consumer cannot."""
    with (
        ShardedQueue(queue_name, server.url, shards=1) as queue,
        ShardedQueue(queue_name, server.url) as other,
    ):
        keys = [f"k{number}" for number in range(8)]
        for key in keys:
            queue.send("t", options=Options(key=key, id=f"old-{key}"))
        with consumer_of(queue, "k0") as consumer:
            jobs = {job.id: job for job in consumer.pull()}
            assert other.open() == 1
            table = other.table()
            moved = [key for key in keys if table.shard_of(key).number]
            stay = [key for key in keys if key not in moved]
            with queue.transaction(stay[0], consumer) as tx:
                tx.ack(jobs[f"old-{stay[0]}"])
                assert tx.enqueue("t").queue == queue_name
            with pytest.raises(ConfigError, match=f"belongs to '{queue_name}~1'"):
                with queue.transaction(moved[0], consumer) as tx:
                    tx.ack(jobs[f"old-{moved[0]}"])
                    tx.enqueue("t")
            assert consumer.held == 7
            with queue.transaction(moved[0]) as tx:
                new = tx.enqueue("t")
                known = tx.send("t", options=Options(id=f"old-{moved[0]}"))
            assert (new.queue, new.created) == (f"{queue_name}~1", True)
            assert (known.queue, known.created) == (f"{queue_name}~0", False)
        waits = (ready(queue))[f"{queue_name}~1"]
        assert waits == [new.id]


def test_what_goes_elsewhere_leaves_with_the_step(server: EmbeddedRedis, queue_name: str) -> None:
    with (
        ShardedQueue(queue_name, server.url, shards=2) as queue,
        Queue(f"{queue_name}-mail", server.url) as mail,
    ):
        with queue.transaction("k") as tx:
            tx.enqueue("t")
            tx.at(mail).enqueue("t", 2)
        assert ((queue.counts()).ready, (mail.counts()).ready) == (1, 1)


def test_a_transaction_of_the_name_alone_is_refused(
    server: EmbeddedRedis, queue_name: str, queue: Queue
) -> None:
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        sharded.table()
        with pytest.raises(QueueSharded, match="ShardedQueue"):
            with queue.transaction() as tx:
                tx.enqueue("t")
        with pytest.raises(ConfigError, match="key"):
            sharded.transaction("")
