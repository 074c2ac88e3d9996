"""Kinds of queues in real pools: one live worker and a stand-by, dead letters that go elsewhere."""

from collections.abc import Callable

import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.tasks.options import Options
from rqueue_workers.exit_codes import Exit
from tests.workers.pools import Pool, eventually

MakePool = Callable[..., Pool]
APP = "tests.workers.groups_app"


@pytest.mark.timeout(240)
def test_one_worker_is_live_and_another_takes_over_when_it_is_killed(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """Q-68, A-28: in order, one after the other, although two processes have room."""
    queue.configure(live_consumers=1)
    events = f"{queue_name}-events"
    queue.enqueue_many(
        Call("in_turn", [events, "g", number, "killed" if number == 4 else ""])
        for number in range(10)
    )
    pool = make_pool(app=[APP], processes=2)
    eventually(lambda: queue.counts().meta.get("acked") == "10", lambda: pool.log)
    said = [event.decode() for event in client.lrange(events, 0, -1)]
    expected = [f"{word} g {number}" for number in range(10) for word in ("begin", "end")]
    assert said[:9] == [*expected[:8], "begin g 4"]
    # what was done and not yet acked begins again, in its place
    assert said[9:] in [expected[2 * first :] for first in range(5)]
    assert pool.drained() == Exit.OK
    assert not client.exists(queue.keys.live, queue.keys.standbys)


@pytest.mark.timeout(240)
def test_dead_letters_of_a_pool_go_to_their_queue(
    queue: Queue, make_pool: MakePool, queue_name: str
) -> None:
    """A-22: those that a worker reports, and those whose worker was killed, which the supervisor
    sends with its next renewal."""
    target = queue.at(f"{queue_name}-dead")
    target.configure(keep=60)
    queue.configure(dead_to=target.name, max_crashes=1)
    queue.enqueue_many(
        Call(
            "in_turn",
            [f"{queue_name}-events", "g", number, how],
            options=Options(id=f"{how}-{number}", max_deliveries=1),
        )
        for number, how in enumerate(["fails", "killed", "fails", "killed"])
    )
    pool = make_pool(app=[APP], processes=2)
    eventually(lambda: target.counts().ready == 4, lambda: f"{queue.counts()}\n{pool.log}")
    eventually(lambda: queue.counts().outgoing == 0, lambda: pool.log)
    assert queue.counts().meta["moved"] == "4" and queue.counts().dead == 0
    assert pool.drained() == Exit.OK


def test_a_pool_that_a_queue_takes_no_further_consumer_of_says_so_in_one_line(
    queue: Queue, make_pool: MakePool
) -> None:
    queue.configure(max_consumers=1)
    with queue.consumer(renew=False):
        pool = make_pool(app=[APP], processes=1)
        assert pool.ended() == Exit.REDIS
    assert "the queue takes 1 consumers (max_consumers), and has them" in pool.log
    assert "Traceback" not in pool.log
