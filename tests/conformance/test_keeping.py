"""How long Redis keeps what is over, also where nothing happens any more."""

import threading

import pytest

from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.bench import Bench

KEEP_MS = 1000
TERM_S = KEEP_MS / 1000


def end(bench: Bench, *ids: str) -> None:
    """Jobs that end."""
    bench.put(*ids)
    consumer = bench.join()
    consumer.settle(ack=consumer.pull())
    consumer.close()


def lifetimes(bench: Bench) -> list[int]:
    """ms that each generation of records still has; 0 where it is not there."""
    keys = bench.queue.keys
    return [max(0, bench.queue.redis.pttl(key)) for key in (keys.ended, keys.ended_old)]


@pytest.mark.each_server
def test_records_of_a_queue_that_rests_are_forgotten(bench: Bench) -> None:
    """A-39: kept for the time that was said, and for twice as long at the most."""
    bench.queue.configure(keep=TERM_S)
    end(bench, "A", "B")
    (current, _) = lifetimes(bench)
    assert KEEP_MS < current <= 2 * KEEP_MS
    pause, looks = threading.Event(), 0
    while bench.look().records:
        assert looks < 400, "the records are still there"
        looks += 1
        pause.wait(0.02)
    assert looks > 20, "not at once"
    assert bench.put("A").created


def test_each_generation_has_its_lifetime_from_its_beginning(bench: Bench) -> None:
    bench.queue.configure(keep=600)
    for number in range(3):
        end(bench, f"early-{number}", f"late-{number}")
        move_time(bench.queue, 600_000)
    current, older = lifetimes(bench)
    assert current > 1_190_000 and older > 1_190_000, "real time did not move"
    assert set(bench.look().records) == {f"{w}-{n}" for w in ("early", "late") for n in (1, 2)}


def test_a_generation_that_is_emptied_and_begins_again_has_a_lifetime_too(bench: Bench) -> None:
    bench.queue.configure(keep=600)
    bench.put("dead")
    consumer = bench.join()
    consumer.pull()
    consumer.settle(reject=[("dead", {})])
    assert bench.requeue("dead") == 1
    assert bench.look().records == {}
    consumer.pull()
    consumer.settle(ack=["dead"])
    assert lifetimes(bench)[0] > 1_190_000


def test_a_shorter_term_holds_for_what_has_ended_already(bench: Bench) -> None:
    bench.queue.configure(keep=600)
    end(bench, "A")
    move_time(bench.queue, 600_000)
    end(bench, "B")
    bench.queue.configure(keep=1)
    current, older = lifetimes(bench)
    assert 0 < older <= KEEP_MS < current <= 2 * KEEP_MS


def test_results_that_somebody_waits_for_have_a_lifetime(bench: Bench) -> None:
    handle = bench.put("A")
    keys = bench.queue.keys
    execute(bench.queue.redis, commands.await_result(keys, handle.id, wait=True))
    consumer = bench.join()
    consumer.settle(ack=consumer.pull())
    assert 0 < bench.queue.redis.pttl(keys.result("A")) <= 60_000
    assert not bench.queue.redis.exists(keys.awaited)


def test_all_that_is_left_of_a_queue_that_rests(bench: Bench) -> None:
    """What has no lifetime: options and counters, and history, which its number of rows bounds."""
    end(bench, "A", "B")
    assert bench.put("later", delay_ms=60_000).cancel()
    keys = {key.decode() for key in bench.queue.redis.keys(bench.queue.keys.base + "*")}
    lasting = {key for key in keys if bench.queue.redis.pttl(key) < 0}
    assert lasting == {bench.queue.keys.meta, bench.queue.keys.history}
