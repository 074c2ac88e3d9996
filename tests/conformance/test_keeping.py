"""How long Redis keeps what is over, also where nothing happens any more."""

import threading

import pytest

from rqueue.protocol.result_wait import await_result
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, on_real_servers

KEEP_MS = 1000
TERM_S = KEEP_MS / 1000


def end(q: QueueFixture, *ids: str) -> None:
    """Jobs that end."""
    q.put(*ids)
    consumer = q.join()
    consumer.settle(ack=consumer.pull())
    consumer.close()


def lifetimes(q: QueueFixture) -> list[int]:
    """ms that each generation of records still has; 0 where it is not there."""
    keys = q.queue.keys
    return [max(0, q.queue.redis.pttl(key)) for key in (keys.ended, keys.ended_old)]


@pytest.mark.each_server
@on_real_servers
def test_records_of_a_queue_that_rests_are_forgotten(q: QueueFixture) -> None:
    """A-39: kept for the time that was said, and for twice as long at the most."""
    q.queue.configure(keep=TERM_S)
    end(q, "A", "B")
    (current, _) = lifetimes(q)
    assert KEEP_MS < current <= 2 * KEEP_MS
    pause, looks = threading.Event(), 0
    while q.look().records:
        assert looks < 400, "the records are still there"
        looks += 1
        pause.wait(0.02)
    assert looks > 20, "not at once"
    assert q.put("A").created


def test_each_generation_has_its_lifetime_from_its_beginning(q: QueueFixture) -> None:
    q.queue.configure(keep=600)
    for number in range(3):
        end(q, f"early-{number}", f"late-{number}")
        move_time(q.queue, 600_000)
    current, older = lifetimes(q)
    assert current > 1_190_000 and older > 1_190_000, "real time did not move"
    assert set(q.look().records) == {f"{w}-{n}" for w in ("early", "late") for n in (1, 2)}


def test_a_generation_that_is_emptied_and_begins_again_has_a_lifetime_too(q: QueueFixture) -> None:
    q.queue.configure(keep=600)
    q.put("dead")
    consumer = q.join()
    consumer.pull()
    consumer.settle(reject=[("dead", {})])
    assert q.requeue("dead") == 1
    assert q.look().records == {}
    consumer.pull()
    consumer.settle(ack=["dead"])
    assert lifetimes(q)[0] > 1_190_000


def test_a_shorter_term_holds_for_what_has_ended_already(q: QueueFixture) -> None:
    q.queue.configure(keep=600)
    end(q, "A")
    move_time(q.queue, 600_000)
    end(q, "B")
    q.queue.configure(keep=1)
    current, older = lifetimes(q)
    assert 0 < older <= KEEP_MS < current <= 2 * KEEP_MS


def test_results_that_somebody_waits_for_have_a_lifetime(q: QueueFixture) -> None:
    handle = q.put("A")
    keys = q.queue.keys
    execute(q.queue.redis, await_result(keys, handle.id, wait=True))
    consumer = q.join()
    consumer.settle(ack=consumer.pull())
    assert 0 < q.queue.redis.pttl(keys.result("A")) <= 60_000
    assert not q.queue.redis.exists(keys.awaited)


def test_all_that_is_left_of_a_queue_that_rests(q: QueueFixture) -> None:
    """What has no lifetime: options and counters, and history, which its number of rows bounds."""
    end(q, "A", "B")
    assert q.put("later", delay_ms=60_000).cancel()
    keys = {key.decode() for key in q.queue.redis.scan_iter(q.queue.keys.base + "*")}
    lasting = {key for key in keys if q.queue.redis.pttl(key) < 0}
    assert lasting == {q.queue.keys.meta, q.queue.keys.history}


@pytest.mark.parametrize("term", ["-1", "0"])
def test_a_term_that_nobody_can_have_set_takes_no_record_away(q: QueueFixture, term: str) -> None:
    """Of jobs that ended, and were cancelled: else such an id would be taken again, and a wait
    for its result would end as that for a job that never was."""
    q.put("ended", "cancelled")
    q.queue.redis.hset(q.queue.keys.meta, "keep_ms", term)
    c = q.join(1)
    c.settle(ack=c.pull())
    assert q.queue.cancel("cancelled")
    assert set(q.look().records) == {"ended", "cancelled"}
    assert 0 < q.queue.redis.pttl(q.queue.keys.ended) <= 20 * 60_000
    assert not q.put("ended").created
