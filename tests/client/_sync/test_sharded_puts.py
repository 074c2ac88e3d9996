# Generated from tests/client/_async/test_sharded_puts.py (`make generate`): do not edit.
"""Background puts into a queue that is spread over shards."""

from collections.abc import Iterator
from itertools import chain

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import QueueFull, RQueueError
from rqueue.model.job import JobState
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol.commands.enqueue import Put
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy

KEYS = 6


def keyed(number: int, **more: object) -> Options:
    return Options(key=f"k{number % KEYS}", **more)  # type: ignore[arg-type]


@pytest.fixture
def far(private_server: EmbeddedRedis) -> Iterator[Proxy]:
    """The way to another server."""
    with Proxy(private_server.url.removeprefix("unix://")) as proxy:
        yield proxy


def arguments(queue: ShardedQueue) -> list[list[int]]:
    """Of each shard the arguments of its jobs, in the order in which they wait."""
    found = []
    for its in queue.queues():
        with its.consumer(mode="browse", jobs=1000, renew=False) as browser:
            found.append([its.envelope(job).args[0] for job in browser.pull()])
    return found


def in_order(shards: list[list[int]]) -> bool:
    """Whether the jobs of each key are in order in each shard."""
    kept = [[n for n in shard if n % KEYS == key] for shard in shards for key in range(KEYS)]
    return all(some == sorted(some) for some in kept)


def test_puts_go_where_they_belong(server: EmbeddedRedis, queue_name: str, queue: Queue) -> None:
    """Who puts by name need not know that the queue is spread."""
    with ShardedQueue(queue_name, server.url, shards=3) as sharded:
        table = sharded.table()
        heard: list[str] = []
        with queue.putter(batch=40) as putter:
            putter.add_listener(lambda handle: heard.append(handle.id))
            jobs = [
                putter.put_call(Call("t", [number], None, keyed(number))) for number in range(120)
            ]
            plain = [putter.put("t", number) for number in range(120, 150)]
            assert putter.flush(PATIENCE)
        assert heard == [job.id for job in [*jobs, *plain]]
        for number, job in enumerate(jobs):
            shard = table.shard_of(f"k{number % KEYS}")
            assert (job.queue, job.created) == (table.name(shard), True)
            assert job.state() is JobState.READY
        assert {job.queue for job in plain} == {table.name(shard) for shard in table.open}
        found = arguments(sharded)
        assert sorted(chain.from_iterable(found)) == list(range(150))
        assert in_order([[number for number in shard if number < 120] for shard in found])


def test_puts_keep_the_order_of_their_keys_while_a_shard_opens(
    server: EmbeddedRedis, queue_name: str
) -> None:
    with (
        ShardedQueue(queue_name, server.url, shards=1) as sharded,
        Queue(queue_name, server.url) as queue,
        queue.putter(batch=7) as putter,
    ):
        sharded.table()
        for number in range(60):
            putter.put_call(Call("t", [number], None, keyed(number)))
            if number == 25:
                putter.flush(PATIENCE)
                assert sharded.open() == 1  # the putter knows the table before
        assert putter.flush(PATIENCE)
        assert putter.failed == 0
        found = arguments(sharded)
        assert sorted(chain.from_iterable(found)) == list(range(60))
        first, second = sharded.queues()
        assert (second.counts()).ready > 0
        assert in_order(found)
        with first.consumer(jobs=100) as consumer:
            consumer.settle(ack=[job.id for job in consumer.pull()])
        assert not (sharded.advance()).moving


def test_what_is_put_again_is_one_job(server: EmbeddedRedis, queue_name: str, queue: Queue) -> None:
    """Also where its key has moved meanwhile."""
    with ShardedQueue(queue_name, server.url, shards=1) as sharded:
        before = [Options(id=f"id-{n}") for n in range(8)]
        before += [Options(unique=UniqueKey(f"u{n}")) for n in range(8)]
        first = [sharded.send("t", [0], options=options) for options in before]
        sharded.open()
        with sharded.putter() as putter:
            again = [
                putter.put_call(Call("t", [0], None, options)) for options in [*before, *before]
            ]
        assert [job.id for job in again] == [job.id for job in [*first, *first]]
        assert not any(job.created for job in again)
        assert {job.conflict for job in again[8:16]} == {"ready"}
        assert (sharded.counts()).ready == 16


def test_a_shard_that_is_away_is_waited_for(
    server: EmbeddedRedis, queue_name: str, far: Proxy
) -> None:
    """What it may have got before its answer was lost is not stored twice."""
    with ShardedQueue(queue_name, server.url, shards=1) as sharded:
        sharded.table()
        sharded.open(place=far.url, order=False)
        with sharded.putter(batch=20) as putter:
            putter.put("t", -1)
            assert putter.flush(PATIENCE)
            far.cut_reply(0)
            jobs = [
                putter.put_call(
                    Call("t", [number], None, keyed(number) if number % 2 else Options())
                )
                for number in range(100)
            ]
            assert putter.flush(PATIENCE)
            far.refuse()
            jobs += [putter.put("t", number) for number in range(100, 140)]
            assert not putter.flush(0.2) and putter.pending
            far.accept()
            assert putter.flush(PATIENCE)
            assert (putter.failed, putter.pending) == (0, 0)
        found = arguments(sharded)
        assert sorted(chain.from_iterable(found)) == list(range(-1, 140))
        assert all(job.created for job in jobs)
        assert len({job.queue for job in jobs}) == 2


def test_what_one_shard_refuses_is_heard_and_the_others_have_theirs(
    server: EmbeddedRedis, queue_name: str
) -> None:
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        small, other = sharded.queues()
        small.configure(max_jobs=5, overflow="reject")
        refused: list[Put] = []
        said: list[Exception] = []

        def on_error(error: Exception, puts: list[Put]) -> None:
            said.append(error)
            refused.extend(puts)

        with sharded.putter(on_error=on_error) as putter:
            jobs = [
                putter.put_call(Call("t", [number], None, keyed(number))) for number in range(60)
            ]
            putter.flush(PATIENCE)
            assert putter.failed == len(refused) > 0
        assert all(isinstance(error, QueueFull) for error in said)
        assert {job.id for job in jobs if job.error is not None} == {put.id for put in refused}
        counts = (small.counts()).ready, (other.counts()).ready
        assert counts[0] <= 5 and sum(counts) == 60 - len(refused)
        small.configure(max_jobs=100)
        with Queue(queue_name, server.url) as queue:
            answer = queue.enqueue_puts(refused)
            assert (answer.accepted, answer.known) == (len(refused), ())
            again = queue.enqueue_puts(refused[:3])
            assert (again.accepted, again.known) == (0, (0, 1, 2))
        assert (sharded.counts()).ready == 60


def test_a_job_that_says_two_places_is_refused_alone(
    server: EmbeddedRedis, queue_name: str
) -> None:
    with ShardedQueue(queue_name, server.url, shards=2) as sharded:
        both = Options(group="g", unique=UniqueKey("u"))
        with sharded.putter() as putter:
            wrong = putter.put_call(Call("t", [], None, both))
            right = putter.put("t")
            assert putter.flush(PATIENCE)
            with pytest.raises(RQueueError, match="say with a key"):
                wrong.wait_stored(PATIENCE)
            assert right.wait_stored(PATIENCE)
