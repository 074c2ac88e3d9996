"""Who is told of work: one able consumer per arrival, and every browser."""

import pytest

from rqueue.errors import NoConsumer
from rqueue.testing import move_time
from tests.support.bench import Bench, ids


def test_a_consumer_begins_in_the_list_of_its_credit(bench: Bench) -> None:
    """Q-34, Q-35."""
    assert bench.join(1).state == "interested"
    assert bench.join(0).state == "not_interested"
    assert bench.join(1, mode="browse").state == "browsers"
    assert bench.join(0, mode="browse").state == "not_interested"
    assert len(bench.look().scores("consumers")) == 4


def test_interest_moves_an_acquiring_consumer(bench: Bench) -> None:
    """Q-35: each pair of state and call."""
    consumer = bench.join(1)
    assert consumer.interest(1) == "interested"  # was interested
    assert consumer.interest(0) == "not_interested"
    assert consumer.interest(0) == "not_interested"  # was not
    bench.queue.pause()
    bench.put("A")
    assert consumer.interest(1) == "interested"
    bench.queue.resume()
    assert bench.state(consumer) == "notified"
    assert consumer.interest(5) == "notified"
    assert consumer.interest(0) == "not_interested"
    assert consumer.interest(1) == "notified"
    assert ids(consumer.pull()) == ["A"]
    assert bench.state(consumer) == "not_interested"


def test_interest_moves_a_browser_between_its_two_lists(bench: Bench) -> None:
    """Q-34: a browser is never interested, and never notified."""
    browser = bench.join(0, mode="browse")
    bench.put("A")
    assert browser.interest(10) == "browsers"
    assert browser.interest(0) == "not_interested"
    assert bench.state(browser) == "not_interested"


def test_one_arrival_wakes_one(bench: Bench) -> None:
    """Q-37."""
    consumers = [bench.join(1) for _ in range(3)]
    bench.put("A")
    assert sorted(map(bench.state, consumers)) == ["interested", "interested", "not_interested"]
    assert [len(bench.told(c)) for c in consumers] == [1, 0, 0]
    (wake,) = consumers[0].wait(1)
    assert wake.job is not None and wake.job.id == "A"


def test_many_arrivals_wake_as_many_as_they_need(bench: Bench) -> None:
    """H-16: by their credit, not by their number."""
    consumers = [bench.join(2) for _ in range(4)]
    bench.queue.pause()
    bench.put("1", "2", "3")
    bench.queue.resume()
    assert list(map(bench.state, consumers)) == ["notified"] * 2 + ["interested"] * 2


def test_a_notified_consumer_is_not_woken_again(bench: Bench) -> None:
    """Q-40: it pulls until nothing is left."""
    bench.queue.pause()
    bench.put("A")
    consumer = bench.join(3)
    bench.queue.resume()
    bench.put(*"BCDEFGHIJ")
    assert bench.told(consumer) == [b"w"]
    seen = []
    while jobs := consumer.pull():
        seen += ids(jobs)
        for job in jobs:
            consumer.ack(job)
    assert seen == list("ABCDEFGHIJ")
    assert bench.state(consumer) == "interested"
    assert bench.told(consumer) == []


def test_after_an_empty_pull_a_consumer_is_the_last_in_line(bench: Bench) -> None:
    """Q-35, Q-44."""
    first, second, third = (bench.join(1) for _ in range(3))
    bench.put("A")
    first.wait(1)
    first.ack("A")
    assert first.pull() == []
    bench.put("B")
    assert bench.state(second) == "not_interested"
    bench.put("C")
    bench.put("D")
    assert bench.look().held == {first.name: ["D"], second.name: ["B"], third.name: ["C"]}


def test_equal_consumers_share_single_arrivals_equally(bench: Bench) -> None:
    """Q-44."""
    consumers = {c.name: c for c in (bench.join(1) for _ in range(4))}
    counts = dict.fromkeys(consumers, 0)
    for i in range(80):
        name = bench.put(f"j{i}").handed_to
        counts[name] += 1
        consumers[name].ack(f"j{i}")
        consumers[name].pull()
    assert set(counts.values()) == {20}


def test_consumers_that_come_and_go_share_what_arrives(bench: Bench) -> None:
    """A-16."""
    consumers = {c.name: c for c in (bench.join(1) for _ in range(2))}

    def share(count: int) -> list[int]:
        got = dict.fromkeys(consumers, 0)
        for _ in range(count):
            handle = bench.queue.send("t")
            got[handle.handed_to] += 1
            consumers[handle.handed_to].ack(handle.id)
            consumers[handle.handed_to].pull()
        return list(got.values())

    assert share(20) == [10, 10]
    third = bench.join(1)
    consumers[third.name] = third
    assert share(30) == [10, 10, 10]
    consumers.pop(next(iter(consumers))).close()
    assert share(20) == [10, 10]


def test_who_loses_interest_hands_the_work_on(bench: Bench) -> None:
    """Q-39."""
    bench.queue.pause()
    first, second = bench.join(1), bench.join(1)
    bench.put("A")
    bench.queue.resume()
    assert (bench.state(first), bench.state(second)) == ("notified", "interested")
    first.interest(0)
    assert (bench.state(first), bench.state(second)) == ("not_interested", "notified")
    assert ids(second.pull()) == ["A"]


def test_who_leaves_hands_the_work_on(bench: Bench) -> None:
    """Q-39, Q-58."""
    bench.queue.pause()
    first, second = bench.join(1), bench.join(1)
    bench.put("A")
    bench.queue.resume()
    first.close()
    assert bench.state(second) == "notified"
    assert ids(second.pull()) == ["A"]


def test_a_consumer_that_becomes_interested_in_a_backlog_is_told_to_pull(bench: Bench) -> None:
    """Q-38: it alone."""
    consumer, other = bench.join(0), bench.join(0)
    bench.put("A")
    assert consumer.interest(1) == "notified"
    assert bench.state(other) == "not_interested"
    assert ids(consumer.pull()) == ["A"]


def test_all_browsers_are_told_of_each_job(bench: Bench) -> None:
    """Q-34, Q-37."""
    browsers = [bench.join(10, mode="browse") for _ in range(3)]
    takers = [bench.join(1), bench.join(1)]
    bench.queue.pause()
    bench.put("A", "B")
    assert [bench.told(b) for b in browsers] == [[b"w"]] * 3
    assert [ids(b.pull()) for b in browsers] == [["A", "B"]] * 3
    bench.queue.resume()
    assert ids(takers[0].pull()) == ["A"]


def test_a_browser_without_interest_misses_nothing(bench: Bench) -> None:
    """Q-34."""
    browser = bench.join(0, mode="browse")
    bench.put("A", "B")
    assert bench.told(browser) == []
    browser.interest(10)
    assert ids(browser.pull()) == ["A", "B"]


def test_browsers_are_told_after_other_browsers_have_left(bench: Bench) -> None:
    """Q-34."""
    quiet, leaving = bench.join(0, mode="browse"), bench.join(5, mode="browse")
    leaving.close()
    quiet.interest(5)
    bench.put("A")
    assert bench.told(quiet) == [b"w"]


def test_an_immediate_job_needs_a_consumer_with_credit(bench: Bench) -> None:
    """Q-19, X-01: handed over, or refused and not stored."""
    with pytest.raises(NoConsumer):
        bench.put("A", immediate=True)
    idle = bench.join(0)
    with pytest.raises(NoConsumer):
        bench.put("A", immediate=True)
    assert bench.look().jobs == {}
    idle.interest(1)
    assert bench.put("A", immediate=True).handed_to == idle.name
    with pytest.raises(NoConsumer):
        bench.put("B", immediate=True)
    (wake,) = idle.wait(1)
    assert wake.job is not None and idle.ack(wake.job)


def test_higher_consumers_come_first_while_they_have_credit(bench: Bench) -> None:
    """Q-45, A-27."""
    low, high = bench.join(10), bench.join(2, priority=3)
    handles = [bench.put(f"j{i}") for i in range(4)]
    assert [handle.handed_to for handle in handles[:1]] == [high.name]
    assert ids(low.pull()) == []
    assert ids(high.pull()) == ["j0", "j1"]
    assert ids(low.pull()) == ["j2", "j3"]


def test_consumers_of_equal_rank_take_turns_and_lower_ones_wait(bench: Bench) -> None:
    """A-27."""
    top = [bench.join(1, priority=3), bench.join(1, priority=3)]
    low = bench.join(1, priority=1)
    taken = [bench.put(f"j{i}").handed_to for i in range(2)]
    assert taken == [c.name for c in top]
    assert bench.put("j2").handed_to == low.name


def test_a_lost_wake_up_is_made_good_by_whoever_looks(bench: Bench) -> None:
    """H-07, X-02: a notification has a deadline."""
    bench.queue.pause()
    deaf, other = bench.join(1), bench.join(1)
    bench.put("A")
    bench.queue.resume()
    assert bench.state(deaf) == "notified"
    bench.queue.redis.delete(bench.queue.keys.wake(deaf.name))
    move_time(bench.queue, 6000)
    bench.renew(other)
    assert bench.state(other) == "notified"
    assert ids(other.pull()) == ["A"]


def test_unanswered_wake_ups_do_not_pile_up(bench: Bench) -> None:
    """X-02: a busy consumer is told again and again, and reads one word."""
    bench.queue.pause()
    busy = bench.join(1)
    bench.put("A")
    bench.queue.resume()
    for _ in range(5):
        move_time(bench.queue, 6000)
        bench.renew(busy)
    assert bench.told(busy) == [b"w"]


def test_after_a_lost_reply_a_consumer_asks_what_it_holds(bench: Bench) -> None:
    """H-18."""
    consumer = bench.join(2)
    bench.put("A", "B", "C")
    bench.queue.redis.delete(bench.queue.keys.wake(consumer.name))  # A was handed over there
    got = consumer.pull(recall=True)
    assert ids(got) == ["A", "B"]
    assert [consumer.ack(job) for job in got] == [True, True]


def test_adding_and_removing_consumers_is_counted(bench: Bench) -> None:
    """Q-35."""
    consumers = [bench.join(1) for _ in range(3)]
    assert bench.queue.counts().interested == 3
    for left, consumer in zip((2, 1, 0), consumers, strict=True):
        consumer.close()
        consumer.close()  # a second time does nothing
        assert bench.queue.counts().interested == left
