"""The largest calls that are allowed work, and what is larger is done in slices."""

import pytest

from rqueue.client._sync.queue import Call
from rqueue.errors import ScriptError
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, every_place, ids

pytestmark = pytest.mark.each_server


def names(count: int) -> list[str]:
    return [f"{i:04}" for i in range(count)]


def fill(q: QueueFixture, count: int, **terms: int) -> list[str]:
    all_ = names(count)
    puts = [Put(id, b'["t"]', **terms) for id in all_]
    for start in range(0, count, 1000):
        q.queue.enqueue_puts(puts[start : start + 1000])
    return all_


@every_place
def test_a_thousand_jobs_are_enqueued_in_one_step(q: QueueFixture) -> None:
    """H-06."""
    fill(q, 1000)
    fill(q, 1000)  # all are known
    assert q.queue.counts().ready == 1000
    with pytest.raises(ScriptError):
        q.queue.enqueue_puts([Put(f"x{i}", b"") for i in range(1001)])
    q.queue.enqueue_puts([Put(f"y{i}", b"[]", delay_ms=60_000) for i in range(1000)])
    assert q.queue.counts().scheduled == 1000


def test_a_wide_window_is_filled_in_slices(q: QueueFixture) -> None:
    """A-18, A-14, Q-40: notified until nothing is left."""
    all_ = fill(q, 1200)
    consumer = q.join(5000)
    got: list[str] = []
    while jobs := consumer.pull():
        got += ids(jobs)
    assert got == all_
    assert consumer.state == "interested"


@every_place
@pytest.mark.parametrize("outcome", ["ack", "done", "retry", "delay", "tail", "reject", "release"])
def test_a_thousand_jobs_are_settled_in_one_step(q: QueueFixture, outcome: str) -> None:
    """H-06."""
    all_ = fill(q, 1000)
    consumer = q.own(1000)
    consumer.pull()
    consumer.pull()
    mixed = all_[1::2] + all_[::2]  # not in the order in which they were acquired
    delay = 1000 if outcome == "delay" else 0
    place = "tail" if outcome == "tail" else "old"
    again = [Retried(id, delay, place, True, b"{}") for id in mixed]
    consumer.settle(
        ack=mixed if outcome == "ack" else (),
        done=[(id, 1) for id in mixed] if outcome == "done" else (),
        retry=again if outcome in ("retry", "delay", "tail") else (),
        reject=[(id, {}) for id in mixed] if outcome == "reject" else (),
        release=mixed if outcome == "release" else (),
    )
    assert consumer.refused == []
    assert q.look().held == {}
    if outcome in ("retry", "release", "delay"):
        move_time(q.queue, 2000)
        later: list[str] = []
        while len(later) < 1000:
            later += ids(consumer.pull())
        assert later == all_
    wrong = invariants.of_state(q.look(), all_)
    assert not wrong


@pytest.mark.parametrize("way", ["unregister", "reclaim", "lease"])
def test_many_held_jobs_are_released_in_slices(q: QueueFixture, way: str) -> None:
    """H-06: between slices everything holds, nobody can settle, and each job counts once."""
    all_ = fill(q, 700)
    leaving, waiting = q.join(700, slots=3), q.join(0)
    while leaving.pull():
        pass
    waiting.interest(1)
    keys, client = q.queue.keys, q.queue.redis
    if way == "lease":
        move_time(q.queue, 60_000)
        waiting = q.join(1)
    rounds = 0
    while q.look().held.get(leaving.name):
        if way == "unregister":
            execute(client, commands.unregister(keys, leaving.name, leaving.term))
        elif way == "reclaim":
            ran = list(map(commands.Ran, all_[:3]))
            execute(client, commands.reclaim(keys, leaving.name, b"{}", ran))
        else:
            q.renew(waiting)
        rounds += 1
        snapshot = q.look()
        wrong = invariants.conservation(snapshot, all_) + invariants.order(snapshot)
        assert not wrong
    assert rounds == 4
    assert q.state(waiting) == "notified"
    taker = q.join(700)
    got = taker.pull() + taker.pull()
    assert ids(got) == all_
    # at the end of a lease nothing is known of what ran: the oldest alone is suspected
    charged = {"unregister": 0, "reclaim": 3, "lease": 0}[way]
    noted = {"unregister": 0, "reclaim": 3, "lease": 1}[way]
    assert {id_.decode() for id_ in client.hkeys(keys.errors)} == set(all_[:noted])
    assert [job.attempts for job in got] == [1] * charged + [0] * (700 - charged)


def test_many_cancelled_jobs_at_the_head_are_passed_in_several_calls(q: QueueFixture) -> None:
    """Q-30, Q-09: the consumer stays notified until it is past them."""
    all_ = fill(q, 61)
    for id in all_[:60]:
        q.queue.cancel(id)
    consumer = q.join(1)
    assert consumer.state == "notified"
    calls = 1
    while not (jobs := consumer.pull()) and consumer.state == "notified":
        calls += 1
    assert ids(jobs) == ["0060"]
    assert calls < 10
    assert q.queue.counts().meta["marked"] == "0"


def test_a_large_schedule_becomes_ready_in_slices_and_in_order(q: QueueFixture) -> None:
    """A-05, H-06."""
    all_ = fill(q, 900, delay_ms=1000)
    move_time(q.queue, 2000)
    consumer = q.join(2000)
    got: list[str] = []
    while jobs := consumer.pull():
        got += ids(jobs)
    assert got == all_


def test_more_held_jobs_than_a_recall_names_are_not_lost(q: QueueFixture) -> None:
    """H-18."""
    all_ = fill(q, 700)
    consumer = q.join(700)
    consumer.pull()
    consumer.pull()
    named = ids(consumer.pull(recall=True))
    assert named == all_[: len(named)]
    consumer.close()
    assert ids(q.join(1).pull()) == ["0000"]


@every_place
def test_big_batches_through_the_public_api(q: QueueFixture) -> None:
    """C-20."""
    handles = q.queue.enqueue_many(Call("t", [i]) for i in range(2500))
    assert sum(handle.created for handle in handles) == 2500
    assert q.queue.counts().ready == 2500


def test_a_window_beyond_all_bounds(q: QueueFixture) -> None:
    """Q-50."""
    fill(q, 10)
    consumer = q.join(10**9, bytes=10**12)
    assert len(consumer.pull()) == 10
    pulled = execute(
        q.queue.redis,
        commands.pull(q.queue.keys, consumer.name, consumer.term, Window(2**53, 2**53)),
    )
    assert pulled.state == "interested"
