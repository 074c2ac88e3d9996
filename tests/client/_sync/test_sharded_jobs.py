# Generated from tests/client/_async/test_sharded_jobs.py (`make generate`): do not edit.
"""Jobs of a queue that is spread over shards, by their ids."""

from functools import partial

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    ConfigError,
    ConnectionLost,
    QueueInUse,
    QueueSharded,
    ResultNotReady,
    UnknownJob,
)
from rqueue.model.job import JobState
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE


def test_a_job_is_found_by_its_id(server: EmbeddedRedis, queue_name: str, queue: Queue) -> None:
    """By name, as in any queue, wherever its key has put it."""
    with ShardedQueue(queue_name, server.url, shards=3) as sharded:
        ids = [f"job-{number}" for number in range(9)]
        for number, id_ in enumerate(ids):
            sharded.send("t", [number], options=Options(id=id_, key=f"k{number}"))
        for id_ in ids:
            handle = queue.job(id_)
            assert handle.state() is JobState.READY
            assert handle.queue == (sharded.job(id_)).queue
            with pytest.raises(ResultNotReady):
                queue.job(id_).result(0)
        for its in sharded.queues():
            with its.consumer(jobs=100, renew=False) as consumer:
                jobs = consumer.pull()
                consumer.settle(done=[(job, its.envelope(job).args[0]) for job in jobs])
        assert [queue.job(id_).result(PATIENCE) for id_ in ids] == list(range(9))
        assert [state for state in queue.job(ids[4]).states(PATIENCE)] == [JobState.DONE]
        assert [seen.state for seen in queue.job(ids[5]).watch(PATIENCE)] == [JobState.DONE]


def test_a_job_is_cancelled_by_its_id(server: EmbeddedRedis, queue_name: str, queue: Queue) -> None:
    with ShardedQueue(queue_name, server.url, shards=3) as sharded:
        for number in range(6):
            sharded.send("t", options=Options(id=f"job-{number}", key=f"k{number}"))
        assert queue.cancel("job-0") and queue.job("job-1").cancel()
        assert not queue.cancel("job-0") and not queue.cancel("nobody")
        assert queue.job("job-1").state() is JobState.CANCELLED
        assert (sharded.counts()).ready == 4


def test_a_job_that_nobody_knows(server: EmbeddedRedis, queue_name: str, queue: Queue) -> None:
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        sharded.table()
        assert queue.job("nobody").state() is JobState.UNKNOWN
        with pytest.raises(UnknownJob):
            queue.job("nobody").result(PATIENCE)
        with pytest.raises(UnknownJob):
            assert [state for state in queue.job("nobody").states(PATIENCE)]


def test_a_job_of_a_shard_that_has_opened_since(
    server: EmbeddedRedis, queue_name: str, queue: Queue
) -> None:
    """The client knows an old table."""
    with ShardedQueue(queue_name, server.url, shards=1) as sharded:
        sharded.send("t", options=Options(id="old"))
        assert queue.job("old").state() is JobState.READY
        sharded.open(order=False)
        for number in range(8):
            sharded.send("t", options=Options(id=f"new-{number}"))
        places = {(sharded.job(f"new-{number}")).queue for number in range(8)}
        assert len(places) == 2
        for number in range(8):
            assert queue.job(f"new-{number}").state() is JobState.READY


def test_a_shard_that_is_away_is_no_proof_that_a_job_is_unknown(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str, queue: Queue
) -> None:
    with ShardedQueue(queue_name, server.url, shards=1) as sharded:
        sharded.table()
        sharded.open(place=private_server.url, order=False)
        ids = [f"job-{number}" for number in range(12)]
        handles = [sharded.send("t", options=Options(id=id_)) for id_ in ids]
        near = [handle.id for handle in handles if handle.queue == f"{queue_name}~0"]
        gone = [handle.id for handle in handles if handle.queue == f"{queue_name}~1"]
        private_server.stop()
        for id_ in near:
            assert queue.job(id_).state() is JobState.READY
        with pytest.raises(ConnectionLost):
            queue.job(gone[0]).state()
        with pytest.raises(ConnectionLost):
            queue.job(gone[0]).result(0)


def test_what_is_done_with_one_queue_is_refused(
    server: EmbeddedRedis, queue_name: str, queue: Queue
) -> None:
    """Nothing is done with the name alone, as if that had shards."""
    other = f"{queue_name}-other"
    queue.at(other).configure()
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        sharded.send("t", options=Options(id="a"))
        for call in (
            queue.pause,
            queue.resume,
            queue.cancel_all,
            partial(queue.promote, "a"),
            partial(queue.set_priority, "a", 9),
            partial(queue.expire, "a"),
            partial(queue.reject, "a"),
            partial(queue.unique.owner, "x"),
            queue.counts,
            partial(queue.move, other, "a"),
            partial(queue.move_all, other),
            partial(queue.at(other).move_all, queue_name),
        ):
            with pytest.raises(QueueSharded, match=f"ShardedQueue\\('{queue_name}'\\)"):
                call()
        with pytest.raises(QueueSharded):
            for _ in queue.alerts(timeout=0):
                raise AssertionError("it has none")
        assert (sharded.counts()).ready == 1


def test_a_queue_with_shards_is_not_deleted_from_under_them(
    server: EmbeddedRedis, queue_name: str, queue: Queue
) -> None:
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        sharded.send("t")
        with pytest.raises(QueueInUse, match=f"2 shards: 'rqueue delete {queue_name}'"):
            queue.delete(jobs=True)
        assert (sharded.table()).version == 1
        for its in sharded.queues():
            its.delete(jobs=True)
        assert queue.delete() == 0
    with ShardedQueue(queue_name, server.url) as sharded:
        with pytest.raises(ConfigError, match="has no shards"):
            sharded.table()
