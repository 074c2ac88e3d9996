"""The order in which jobs begin, run by own consumers as by a real pool of one slot."""

import random
from collections.abc import Iterator

import pytest

from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture
from tests.support.runners import Runner

HOUR = 3_600_000


@pytest.fixture
def q(
    request: pytest.FixtureRequest, server: EmbeddedRedis, queue_name: str, runner: Runner
) -> Iterator[QueueFixture]:
    """The runner's queue; a consumer beside the runner, where there is one, is of its kind."""
    kind = request.node.callspec.params["runner"]
    with Queue(queue_name, server.url) as queue:
        q = QueueFixture(queue, "worker" if kind == "pool" else kind, server.url)
        yield q
        q.close()


def test_jobs_that_wait_begin_in_order(q: QueueFixture, runner: Runner) -> None:
    """Q-01, C-03."""
    names = [f"{i:03}" for i in range(100)]
    q.put(*names)
    runner.start()
    assert runner.begun(100) == names


def test_jobs_that_come_while_it_waits_begin_in_order(q: QueueFixture, runner: Runner) -> None:
    """X-25: singles are delivered directly, batches are pulled."""
    runner.start()
    sent: list[str] = []
    sizes = random.Random(3)
    while len(sent) < 400:
        size = sizes.choice([1, 1, 1, 1, 2, 7])
        if size == 1:
            sent.append(q.put(f"{len(sent):04}").id)
        else:
            sent += [job.id for job in q.queue.enqueue_many([Call("t")] * size)]
    assert runner.begun(len(sent)) == sent


def test_higher_levels_begin_first(q: QueueFixture, runner: Runner) -> None:
    """Q-10, A-15."""
    q.queue.pause()
    runner.start()
    names = [f"{i % 10}-{i:02}" for i in range(40)]
    for name in names:
        q.put(name, priority=int(name[0]))
    q.queue.resume()
    assert runner.begun(40) == sorted(names, key=lambda name: (-int(name[0]), name))


def test_due_jobs_begin_in_due_order_before_those_that_wait(
    q: QueueFixture, runner: Runner
) -> None:
    """X-06."""
    q.put("plain")
    for name, hours in (("c", 3), ("a", 1), ("d", 3), ("b", 2)):
        q.put(name, delay_ms=hours * HOUR)
    move_time(q.queue, 4 * HOUR)
    runner.start()
    assert runner.begun(5) == ["a", "b", "c", "d", "plain"]


def test_promoted_jobs_begin_in_due_order(q: QueueFixture, runner: Runner) -> None:
    """A-09."""
    for name, hours in (("c", 3), ("a", 1), ("d", 3), ("b", 2)):
        q.put(name, delay_ms=hours * HOUR)
    runner.start()
    assert q.queue.promote(*"dcba") == 4
    assert runner.begun(4) == ["a", "b", "c", "d"]


def test_released_jobs_begin_before_those_that_came_later(q: QueueFixture, runner: Runner) -> None:
    """Q-03, Q-59."""
    q.put(*"abc")
    leaving = q.join(3)
    assert len(leaving.pull()) == 3
    q.put(*"de")
    leaving.close()
    runner.start()
    assert runner.begun(5) == list("abcde")


def test_cancelled_jobs_do_not_begin(q: QueueFixture, runner: Runner) -> None:
    """A-38."""
    names = [f"{i:02}" for i in range(30)]
    q.put(*names)
    assert all(q.queue.cancel(name) for name in names[::3])
    runner.start()
    left = [name for name in names if int(name) % 3]
    assert runner.begun(20) == left
    q.put("last")
    assert runner.begun(21) == [*left, "last"]


def test_dead_letters_that_live_again_begin_at_the_tail(q: QueueFixture, runner: Runner) -> None:
    q.put(*"ab")
    with q.queue.consumer(jobs=2, renew=False) as consumer:
        for job in consumer.flush():
            consumer.reject(job, "no")
    q.put("c")
    q.requeue("b", "a")
    runner.start()
    assert runner.begun(3) == ["c", "b", "a"]
