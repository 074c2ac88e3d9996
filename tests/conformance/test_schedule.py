"""Jobs that are due later: never early, in due order, at the head of their level, one timer."""

import random

import pytest

from rqueue.errors import ConfigError
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.bench import Bench, ids

MINUTE = 60_000


def put_at(bench: Bench, given: list[tuple[str, float]]) -> None:
    """Enqueue (id, minutes from now), counted from one instant; 0: a plain job."""
    start = bench.queue.counts().now
    for id, minutes in given:
        options = {"at_ms": start + round(minutes * MINUTE)} if minutes else {}
        bench.put(id, **options)


def pass_minutes(bench: Bench, minutes: float) -> None:
    move_time(bench.queue, minutes * MINUTE)


def promote(bench: Bench) -> int:
    """What is due becomes ready, and nobody takes it."""
    return execute(bench.queue.redis, commands.promote(bench.queue.keys))


def test_a_job_is_not_delivered_before_it_is_due(bench: Bench) -> None:
    """A-04, C-24."""
    bench.put("A", delay_ms=10 * MINUTE)
    consumer = bench.join()
    assert consumer.pull() == []
    assert 9 * MINUTE < consumer.timer_ms <= 10 * MINUTE
    pass_minutes(bench, 9.9)
    assert consumer.pull() == []
    pass_minutes(bench, 0.2)
    (job,) = consumer.pull()
    assert job.id == "A" and job.due_ms > job.enqueued_ms
    assert consumer.pull() == []


def test_jobs_come_when_each_is_due(bench: Bench) -> None:
    """A-06."""
    put_at(bench, [(f"m{i}", 10 + i) for i in range(5)])
    consumer = bench.join()
    pass_minutes(bench, 10 - 0.5)
    for i in range(5):
        assert consumer.pull() == []
        pass_minutes(bench, 1)
        assert ids(consumer.pull()) == [f"m{i}"]


def test_scheduled_and_ordinary_jobs_mix(bench: Bench) -> None:
    """A-02."""
    put_at(bench, [("m1", 10), ("m2", 0), ("m3", 11), ("m4", 0), ("m5", 12)])
    consumer = bench.join()
    assert ids(consumer.pull()) == ["m2", "m4"]
    pass_minutes(bench, 13)
    assert ids(consumer.pull()) == ["m1", "m3", "m5"]


def test_equal_due_times_keep_the_order_of_enqueue(bench: Bench) -> None:
    """A-06."""
    at_ms = bench.queue.counts().now + MINUTE
    bench.put(*"0123456789", at_ms=at_ms)
    pass_minutes(bench, 2)
    assert ids(bench.join().pull()) == list("0123456789")


def test_random_times_come_out_sorted(bench: Bench) -> None:
    """A-05."""
    start = bench.queue.counts().now
    for i in range(200):
        bench.put(f"j{i}", at_ms=start + MINUTE + random.randrange(1000))
    pass_minutes(bench, 2)
    dues = [job.due_ms for job in bench.join(300).pull()]
    assert len(dues) == 200 and dues == sorted(dues)


@pytest.mark.parametrize("consumer_first", [True, False])
def test_past_and_future_times_around_ordinary_jobs(bench: Bench, consumer_first: bool) -> None:
    """A-02, X-07: what is due already is an ordinary job."""
    if consumer_first:
        consumer = bench.join()
    given = [
        ("1", 7),
        *((id, 0) for id in "234"),
        ("5", 5),
        ("6", 4),
        ("7", 3),
        ("8", 6),
        ("9", -3),
    ]
    put_at(bench, given)
    if not consumer_first:
        consumer = bench.join()
    assert ids(consumer.pull(recall=True)) == ["2", "3", "4", "9"]
    pass_minutes(bench, 8)
    assert ids(consumer.pull()) == ["7", "6", "5", "8", "1"]


def test_due_jobs_are_next_in_their_level_and_no_higher(bench: Bench) -> None:
    """X-06."""
    bench.put("later", delay_ms=MINUTE)
    bench.put("waits")
    bench.put("high", priority=9)
    pass_minutes(bench, 2)
    assert ids(bench.join().pull()) == ["high", "later", "waits"]


def test_a_promoted_job_that_comes_back_keeps_its_place(bench: Bench) -> None:
    """X-06, Q-03."""
    put_at(bench, [("a", 1), ("b", 2), ("c", 0)])
    pass_minutes(bench, 3)
    consumer = bench.join()
    assert ids(consumer.pull()) == ["a", "b", "c"]
    consumer.settle(release=["c", "b", "a"])
    assert ids(consumer.pull()) == ["a", "b", "c"]


def test_a_promoted_job_is_due_where_it_stands(bench: Bench) -> None:
    """X-06: it keeps its position, browsers and people see it where it will be taken."""
    put_at(bench, [("a", 2), ("b", 1), ("c", 0), ("d", 1), ("e", 1)])
    pass_minutes(bench, 3)
    assert promote(bench) == 4
    assert bench.queue.cancel("d")
    shown: list[str] = []
    cursor = ""
    for _ in range(4):
        page = execute(bench.queue.redis, commands.browse(bench.queue.keys, cursor, 1))
        shown += ids(page.jobs)
        cursor = page.cursor
    assert shown == ["b", "e", "a", "c"]
    # the cancelled one is among them until the head has passed it
    keys = bench.queue.keys
    places = [execute(bench.queue.redis, commands.show(keys, id)).place for id in shown]
    assert places == [0, 2, 3, 4]
    got = bench.join().pull()
    assert [(job.id, job.position) for job in got] == [("b", 2), ("e", 5), ("a", 1), ("c", 3)]


def test_at_one_instant_higher_levels_come_first(bench: Bench) -> None:
    """X-06, H-06: however many are due, and promoted a slice at a time."""
    at_ms = bench.queue.counts().now + MINUTE
    bench.queue.enqueue_puts([Put(f"j{i}", b"[]", 4, at_ms=at_ms) for i in range(300)])
    bench.put("high", priority=9, at_ms=at_ms)
    pass_minutes(bench, 2)
    assert ids(bench.join(2).pull()) == ["high", "j0"]


def test_due_jobs_stay_in_order_when_the_clock_is_set_back(bench: Bench) -> None:
    """A-06: as when another server takes over whose clock is late."""
    put_at(bench, [(f"late{i}", 10 + i) for i in range(3)])
    pass_minutes(bench, 20)
    assert promote(bench) == 3
    pass_minutes(bench, -20)
    put_at(bench, [("early", 5), ("between", 11.5)])
    pass_minutes(bench, 20)
    assert promote(bench) == 2
    assert ids(bench.join().pull()) == ["early", "late0", "late1", "between", "late2"]


def test_a_due_job_that_is_requeued_or_sent_to_the_tail_is_an_ordinary_one(bench: Bench) -> None:
    """X-05, X-06."""
    put_at(bench, [("a", 1), ("b", 1), ("c", 1)])
    pass_minutes(bench, 2)
    bench.put("d")
    consumer = bench.join()
    consumer.pull()
    consumer.reject("a", "no")
    consumer.retry("b", delay=0, place="tail")
    consumer.settle(release=["c", "d"])
    bench.requeue("a")
    again = consumer.pull()
    assert ids(again) == ["c", "d", "b", "a"]
    assert [job.due_ms > 0 for job in again] == [True, False, False, False]


def test_a_retry_with_a_delay_waits_for_it(bench: Bench) -> None:
    """A-21: and comes again once."""
    bench.put(*"01234")
    consumer = bench.join()
    for job in consumer.pull():
        consumer.retry(job, delay=30)
    assert consumer.pull() == []
    pass_minutes(bench, 0.45)
    assert consumer.pull() == []
    pass_minutes(bench, 0.1)
    again = consumer.pull()
    assert ids(again) == list("01234")
    assert {job.attempts for job in again} == {1}


def test_a_delayed_retry_goes_to_the_head_or_to_the_tail(bench: Bench) -> None:
    """X-05."""
    bench.put("A", "B", "C")
    consumer = bench.join(2)
    consumer.pull()
    consumer.retry("A", delay=30, place="tail")
    consumer.retry("B", delay=30)
    pass_minutes(bench, 1)
    bench.put("D")
    consumer.interest(10)
    assert ids(consumer.pull()) == ["B", "C", "D", "A"]


def test_a_scheduled_job_is_delivered_on_demand(bench: Bench) -> None:
    """A-09."""
    bench.put("A", delay_ms=11 * 24 * 60 * MINUTE)
    consumer = bench.join(1)
    assert consumer.pull() == []
    assert bench.queue.promote("A") == 1
    assert bench.state(consumer) == "notified"
    assert ids(consumer.pull()) == ["A"]
    assert bench.queue.promote("A") == 0


@pytest.mark.parametrize("order", ["CBADE", "ABCDE", "EDCBA", "BEADC"])
def test_jobs_delivered_on_demand_keep_their_due_order(bench: Bench, order: str) -> None:
    """A-09: named in any order; at equal times in the order of their enqueue."""
    for id, minutes in (("C", 3), ("D", 3), ("A", 1), ("B", 2), ("E", 9)):
        bench.put(id, delay_ms=minutes * MINUTE)
    bench.put("plain")
    assert bench.queue.promote(*order, *order) == 5
    assert ids(bench.join().pull()) == [*"ABCDE", "plain"]


def test_jobs_delivered_on_demand_keep_their_due_order_while_it_is_paused(bench: Bench) -> None:
    """A-09."""
    for id, minutes in (("C", 3), ("A", 1), ("B", 2)):
        bench.put(id, delay_ms=minutes * MINUTE)
    bench.queue.pause()
    assert bench.queue.promote(*"CBA") == 3
    bench.queue.resume()
    assert ids(bench.join().pull()) == [*"ABC"]


def test_jobs_on_demand_come_behind_those_that_were_due(bench: Bench) -> None:
    """A-09, X-06."""
    bench.put("due", delay_ms=MINUTE)
    bench.put("B", "A", delay_ms=9 * MINUTE)
    move_time(bench.queue, 2 * MINUTE)
    assert bench.queue.promote("A", "B", "due") == 3
    assert ids(bench.join().pull()) == ["due", "B", "A"]


def test_requeued_and_unparked_jobs_keep_their_order(bench: Bench) -> None:
    """A-09's kin: to the tail as they are named; back to the places that were kept."""
    consumer = bench.join()
    bench.put(*"ABCD")
    consumer.flush()
    for id in "DBCA":
        consumer.retry(id, delay=60, place="park")
    assert execute(bench.queue.redis, commands.unpark(bench.queue.keys, "0", ["t"]))[1] == 4
    consumer.interest(100)
    assert ids(consumer.pull()) == [*"ABCD"]
    for id in "ABCD":
        consumer.reject(id, "no")
    assert bench.requeue(*"CAB") == 3
    assert ids(consumer.pull()) == [*"CAB"]


def test_a_scheduled_job_is_cancelled(bench: Bench) -> None:
    """A-11."""
    bench.put("A", "B", delay_ms=MINUTE)
    assert bench.queue.cancel("A")
    assert bench.queue.counts().scheduled == 1
    pass_minutes(bench, 2)
    assert ids(bench.join().pull()) == ["B"]


def test_scheduled_jobs_are_counted_and_listed(bench: Bench) -> None:
    """A-11, A-08."""
    bench.put("later", delay_ms=5 * MINUTE)
    bench.put("now")
    counts = bench.queue.counts()
    assert (counts.scheduled, counts.ready) == (1, 1)
    assert bench.queue.job("later").state() is JobState.SCHEDULED
    page = execute(bench.queue.redis, commands.browse_set(bench.queue.keys, "scheduled"))
    assert [entry.job.id for entry in page.entries] == ["later"]
    assert page.entries[0].score == page.entries[0].job.due_ms == counts.next_due_ms
    pass_minutes(bench, 6)
    assert len(bench.join().pull()) == 2
    assert bench.queue.counts().scheduled == 0


def test_a_job_that_is_never_due_holds_nothing_up(bench: Bench) -> None:
    """C-24."""
    bench.put("never", delay_ms=2**31 - 1)
    consumer = bench.join()
    assert consumer.pull() == []
    assert bench.put("now").handed_to == consumer.name
    consumer.wait(1)
    assert consumer.pull() == []


def test_a_job_due_earlier_wakes_the_one_who_watches(bench: Bench) -> None:
    """A-03, C-24: and nobody else."""
    consumers = [bench.join(1), bench.join(1)]
    bench.put("late", delay_ms=50 * MINUTE)
    (watcher,) = (consumer for consumer in consumers if bench.told(consumer))
    watcher.pull()
    assert watcher.timer_ms > 49 * MINUTE
    bench.put("later", delay_ms=55 * MINUTE)
    assert bench.told(watcher) == []
    bench.put("early", at_ms=(at_ms := bench.queue.counts().now + 5 * MINUTE))
    assert bench.told(watcher) == [b"w"]
    watcher.pull()
    bench.put("as early", at_ms=at_ms)
    assert bench.told(watcher) == []
    bench.put("earlier", at_ms=at_ms - 1)
    assert bench.told(watcher) == [b"w"]
    watcher.pull()
    assert watcher.timer_ms <= 5 * MINUTE
    assert sum(c["state"] == "interested" for c in bench.look().consumers.values()) == 2


def test_one_consumer_watches_for_all(bench: Bench) -> None:
    """A-03: the others are told nothing of the schedule."""
    consumers = [bench.join(1) for _ in range(3)]
    bench.put("A", delay_ms=MINUTE)
    for consumer in consumers:
        consumer.pull()
    assert sum(consumer.timer_ms >= 0 for consumer in consumers) == 1


def test_the_watch_is_handed_on(bench: Bench) -> None:
    """A-03: by who takes a job, who leaves, and who draws back."""
    consumers = [bench.join(1) for _ in range(4)]
    bench.put("A", delay_ms=MINUTE)
    for consumer in consumers:
        consumer.pull()

    def watcher() -> str:
        for consumer in consumers:
            if bench.told(consumer):
                consumer.pull(recall=True)
        snapshot = bench.look()
        assert snapshot.meta["timer"] in snapshot.scores("interested")
        return snapshot.meta["timer"]

    by_name = {consumer.name: consumer for consumer in consumers}
    by_name[watcher()].interest(0)
    leaving = watcher()
    by_name[leaving].close()
    consumers.remove(by_name[leaving])
    left = watcher()
    while (taker := bench.put(f"now{len(bench.look().jobs)}").handed_to) != left:
        assert taker
    assert bench.look().scores("interested") == {}


def test_a_settle_without_a_pull_keeps_the_watch(bench: Bench) -> None:
    """A-03."""
    consumer = bench.join(5)
    bench.put("now")
    consumer.wait(1)
    bench.put("later", delay_ms=MINUTE)
    consumer.pull()
    assert consumer.timer_ms > 0
    consumer.ack("now")
    assert consumer.timer_ms > 0


def test_after_a_pause_somebody_watches_again(bench: Bench) -> None:
    """A-03, A-32: who watched looked during the pause, and was told nothing."""
    consumer = bench.join(1)
    bench.put("A", delay_ms=MINUTE)
    consumer.pull()
    bench.queue.pause()
    pass_minutes(bench, 2)
    assert (consumer.pull(), consumer.timer_ms) == ([], -1)
    bench.queue.resume()
    assert bench.state(consumer) == "notified"
    assert ids(consumer.pull()) == ["A"]


def test_due_times_are_whole_numbers() -> None:
    """A-01."""
    assert Options(at_ms=2**53 - 1).at_ms == 2**53 - 1
    for wrong in (0, 1_700_000_000, 1.5, "123", -1, 2**53 + 1, True):
        with pytest.raises(ConfigError):
            Options(at_ms=wrong)  # type: ignore[arg-type]


def test_a_job_for_now_and_one_for_later_wake_no_more_than_they_need(bench: Bench) -> None:
    """Q-37, H-16: one for the job, and one more at the most to take the watch over."""
    consumers = [bench.join(1) for _ in range(6)]
    bench.put("later", delay_ms=50 * MINUTE)
    for consumer in consumers:
        consumer.pull()
    watcher = bench.look().meta["timer"]
    for consumer in consumers:
        if consumer.name != watcher:
            consumer.pull()  # now the one who watches is the first in line
    bench.queue.enqueue_puts([Put("now", b"[]"), Put("soon", b"[]", delay_ms=MINUTE)])
    assert sum(map(len, map(bench.told, consumers))) <= 2
