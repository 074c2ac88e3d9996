# Generated from tests/client/_async/test_spread_steps.py (`make generate`): do not edit.
"""The steps of one call of `enqueue_many` into shards: those of several servers go on at once."""

from collections.abc import Iterator

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.shard_steps import STEP_MOST, even
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConnectionLost, QueueFull, RedisUnavailable
from rqueue.model.shard_table import ShardTable
from rqueue.protocol.commands.enqueue import BATCH, Accepted
from rqueue.protocol.job_packer import Batch, Call
from rqueue.tasks.options import Options
from rqueue.transport.thread_connections import Flight
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy


@pytest.fixture
def ways(private_server: EmbeddedRedis) -> Iterator[tuple[Proxy, Proxy]]:
    """Two ways to another server: two servers to a client."""
    target = private_server.url.removeprefix("unix://")
    with Proxy(target) as one, Proxy(target) as other:
        yield one, other


def of_shard(table: ShardTable, number: int, count: int) -> list[Call]:
    """Jobs whose keys are in this shard, each of another key."""
    keys = (f"k{n}" for n in range(10_000))
    found = [key for key in keys if table.shard_of(key).number == number][:count]
    return [Call("t", [number], None, Options(key=key)) for key in found]


def test_a_server_that_is_away_keeps_no_other_from_its_jobs(
    server: EmbeddedRedis, queue_name: str, ways: tuple[Proxy, Proxy]
) -> None:
    far, _ = ways
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.table()
        queue.open(place=far.url, order=False)
        table = queue.table()
        calls = [*of_shard(table, 1, 3), *of_shard(table, 0, 3)]
        near, away = queue.queues()
        queue.enqueue_many(calls)
        far.refuse()
        with pytest.raises(ConnectionLost):
            queue.enqueue_many(calls)
        far.accept()
        assert ((near.counts()).ready, (away.counts()).ready) == (6, 3)


def test_a_shard_that_is_full_keeps_no_other_from_its_jobs(
    server: EmbeddedRedis, queue_name: str, ways: tuple[Proxy, Proxy]
) -> None:
    far, _ = ways
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.table()
        queue.open(place=far.url, order=False)
        near, away = queue.queues()
        away.configure(max_jobs=2, overflow="reject")
        table = queue.table()
        calls = [*of_shard(table, 1, 3), *of_shard(table, 0, 3)]
        with pytest.raises(QueueFull):
            queue.enqueue_many(calls)
        assert ((near.counts()).ready, (away.counts()).ready) == (3, 0)


def test_the_answers_of_two_servers_are_lost_at_once(
    server: EmbeddedRedis,
    private_server: EmbeddedRedis,
    queue_name: str,
    ways: tuple[Proxy, Proxy],
) -> None:
    """Both have what they were sent, nobody knows it, and both are away for a while: what is sent
    again is known to be the same."""
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.table()
        for way in ways:
            queue.open(place=way.url, order=False)
        table, shards = queue.table(), queue._shards
        calls = [call for number in (1, 2) for call in of_shard(table, number, 3)]
        queue.enqueue_many(calls)
        (batch,) = queue._queue._packer.batches(calls, spread=True)
        for way in ways:
            way.hold()
        begun = shards.begin(batch, None)
        with (
            Queue(f"{queue_name}~1", private_server.url) as one,
            Queue(f"{queue_name}~2", private_server.url) as other,
        ):
            while (one.counts()).ready + (other.counts()).ready < 12:
                pass
            for way in ways:
                way.refuse()
            with pytest.raises(RedisUnavailable) as raised:
                shards.finish(begun)
            assert raised.value.outcome_unknown
            spread = begun.batch
            assert sorted(spread.failed) == sorted(spread.left) == [*range(6)]
            spread.doubt(spread.failed)
            for way in ways:
                way.release()
                way.accept()
            shards.store_left(spread)
            assert [spread.handles[n].id for n in range(6)] == [put.id for put, _ in batch.jobs]
            assert ((one.counts()).ready, (other.counts()).ready) == (6, 6)


def test_a_putter_waits_for_two_servers_at_once(
    server: EmbeddedRedis, queue_name: str, ways: tuple[Proxy, Proxy]
) -> None:
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.table()
        for way in ways:
            queue.open(place=way.url, order=False)
        with queue.putter(batch=90) as putter:
            putter.put("t", -1)
            assert putter.flush(PATIENCE)
            for way in ways:
                way.hold()
            jobs = [
                putter.put_call(
                    Call("t", [number], None, Options(key=f"k{number}") if number % 2 else None)
                )
                for number in range(90)
            ]
            assert not putter.flush(0.3) and putter.pending
            for way in ways:
                way.refuse()
            assert not putter.flush(0.3) and putter.pending
            for way in ways:
                way.release()
                way.accept()
            assert putter.flush(PATIENCE)
            assert (putter.failed, putter.pending) == (0, 0)
        assert all(job.created for job in jobs)
        assert (queue.counts()).ready == 91
        assert len({job.id for job in jobs}) == 90 and len({job.queue for job in jobs}) == 3


def test_a_batch_that_is_larger_than_a_round(server: EmbeddedRedis, queue_name: str) -> None:
    """Handles stand in the order of the calls, whatever shard their jobs are in."""
    with ShardedQueue(queue_name, server.url, shards=3) as queue:
        table = queue.table()
        options = [Options(id=f"j{n}", key=f"k{n % 7}" if n % 3 else None) for n in range(2000)]
        handles = queue.enqueue_many([Call("t", [], None, its) for its in options])
        assert [handle.id for handle in handles] == [its.id for its in options]
        for handle, its in zip(handles, options, strict=True):
            assert handle.queue == table.name(table.shard_of(its.key or handle.id))
        assert (queue.counts()).ready == 2000
        again = queue.enqueue_many([Call("t", [], None, its) for its in options])
        assert [handle.id for handle in again] == [its.id for its in options]
        assert not any(handle.created for handle in again)


def test_who_learns_that_a_queue_is_spread_sends_it_no_more(
    server: EmbeddedRedis, queue_name: str
) -> None:
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        sharded.table()
        with Queue(queue_name, server.url) as queue:
            begun: list[int] = []

            def calls() -> Iterator[Call]:
                for number in range(1000):
                    if queue._shards is not None:
                        begun.append(number)
                    yield Call("t", [number], None, Options(id=f"j{number}"))

            handles = queue.enqueue_many(calls())
            assert [handle.id for handle in handles] == [f"j{number}" for number in range(1000)]
            assert begun[0] == 500
            assert {handle.queue for handle in handles} == {f"{queue_name}~0", f"{queue_name}~1"}
        assert (sharded.counts()).ready == 1000


def test_what_follows_what_it_learned_by_goes_in_steps_as_large_as_any(
    server: EmbeddedRedis, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in those of the batches that were packed for one queue, each cut into two."""
    sizes: list[int] = []
    begin = Queue.begin_here

    def noted(self: Queue, batch: Batch) -> Flight[Accepted]:
        sizes.append(len(batch.jobs))
        return begin(self, batch)

    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        sharded.table()
        with Queue(queue_name, server.url) as queue:
            monkeypatch.setattr(Queue, "begin_here", noted)
            calls = [Call("t", [n], None, Options(id=f"j{n}", key=f"k{n}")) for n in range(2500)]
            handles = queue.enqueue_many(calls)
        assert [handle.id for handle in handles] == [f"j{n}" for n in range(2500)]
        assert (sharded.counts()).ready == 2500
    assert sizes[0] == BATCH  # by which it learned; then this one and the next, cut into two
    assert sum(sizes[1:5]) == 2 * BATCH and sum(sizes[5:]) == 2000
    assert len(sizes[5:]) == 8


def test_steps_of_a_shard_are_of_one_size() -> None:
    for count in (1, STEP_MOST, STEP_MOST + 1, 1000, 2001):
        steps = even(list(range(count)))
        sizes = [len(step) for step in steps]
        assert [place for step in steps for place in step] == list(range(count))
        assert max(sizes) <= STEP_MOST and len(sizes) == -(-count // STEP_MOST)
        assert max(sizes) - min(sizes) < len(sizes)
