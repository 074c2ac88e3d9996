"""Who is told of work: one able consumer per arrival, and every browser."""

import pytest

from rqueue.errors import NoConsumer
from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture, ids


def test_a_consumer_begins_in_the_list_of_its_credit(q: QueueFixture) -> None:
    """Q-34, Q-35."""
    assert q.join(1).state == "interested"
    assert q.join(0).state == "not_interested"
    assert q.join(1, mode="browse").state == "browsers"
    assert q.join(0, mode="browse").state == "not_interested"
    assert len(q.look().scores("consumers")) == 4


def test_interest_moves_an_acquiring_consumer(q: QueueFixture) -> None:
    """Q-35: each pair of state and call."""
    consumer = q.join(1)
    assert consumer.interest(1) == "interested"  # was interested
    assert consumer.interest(0) == "not_interested"
    assert consumer.interest(0) == "not_interested"  # was not
    q.queue.pause()
    q.put("A")
    assert consumer.interest(1) == "interested"
    q.queue.resume()
    assert q.state(consumer) == "notified"
    assert consumer.interest(5) == "notified"
    assert consumer.interest(0) == "not_interested"
    assert consumer.interest(1) == "notified"
    assert ids(consumer.pull()) == ["A"]
    assert q.state(consumer) == "not_interested"


def test_interest_moves_a_browser_between_its_two_lists(q: QueueFixture) -> None:
    """Q-34: a browser is never interested, and never notified."""
    browser = q.join(0, mode="browse")
    q.put("A")
    assert browser.interest(10) == "browsers"
    assert browser.interest(0) == "not_interested"
    assert q.state(browser) == "not_interested"


def test_one_arrival_wakes_one(q: QueueFixture) -> None:
    """Q-37."""
    consumers = [q.join(1) for _ in range(3)]
    q.put("A")
    assert sorted(map(q.state, consumers)) == ["interested", "interested", "not_interested"]
    assert [len(q.told(c)) for c in consumers] == [1, 0, 0]
    (wake,) = consumers[0].wait(1)
    assert wake.job is not None and wake.job.id == "A"


def test_many_arrivals_wake_as_many_as_they_need(q: QueueFixture) -> None:
    """H-16: by their credit, not by their number."""
    consumers = [q.join(2) for _ in range(4)]
    q.queue.pause()
    q.put("1", "2", "3")
    q.queue.resume()
    assert list(map(q.state, consumers)) == ["notified"] * 2 + ["interested"] * 2


def test_a_notified_consumer_is_not_woken_again(q: QueueFixture) -> None:
    """Q-40: it pulls until nothing is left."""
    q.queue.pause()
    q.put("A")
    consumer = q.join(3)
    q.queue.resume()
    q.put(*"BCDEFGHIJ")
    assert q.told(consumer) == [b"w"]
    seen = []
    while jobs := consumer.pull():
        seen += ids(jobs)
        for job in jobs:
            consumer.ack(job)
    assert seen == list("ABCDEFGHIJ")
    assert q.state(consumer) == "interested"
    assert q.told(consumer) == []


def test_after_an_empty_pull_a_consumer_is_the_last_in_line(q: QueueFixture) -> None:
    """Q-35, Q-44."""
    first, second, third = (q.join(1) for _ in range(3))
    q.put("A")
    first.wait(1)
    first.ack("A")
    assert first.pull() == []
    q.put("B")
    assert q.state(second) == "not_interested"
    q.put("C")
    q.put("D")
    assert q.look().held == {first.name: ["D"], second.name: ["B"], third.name: ["C"]}


def test_equal_consumers_share_single_arrivals_equally(q: QueueFixture) -> None:
    """Q-44."""
    consumers = {c.name: c for c in (q.join(1) for _ in range(4))}
    counts = dict.fromkeys(consumers, 0)
    for i in range(80):
        name = q.put(f"j{i}").handed_to
        counts[name] += 1
        consumers[name].ack(f"j{i}")
        consumers[name].pull()
    assert set(counts.values()) == {20}


def test_consumers_that_come_and_go_share_what_arrives(q: QueueFixture) -> None:
    """A-16."""
    consumers = {c.name: c for c in (q.join(1) for _ in range(2))}

    def share(count: int) -> list[int]:
        got = dict.fromkeys(consumers, 0)
        for _ in range(count):
            handle = q.queue.send("t")
            got[handle.handed_to] += 1
            consumers[handle.handed_to].ack(handle.id)
            consumers[handle.handed_to].pull()
        return list(got.values())

    assert share(20) == [10, 10]
    third = q.join(1)
    consumers[third.name] = third
    assert share(30) == [10, 10, 10]
    consumers.pop(next(iter(consumers))).close()
    assert share(20) == [10, 10]


def test_a_consumer_that_loses_interest_passes_the_work_on(q: QueueFixture) -> None:
    """Q-39."""
    q.queue.pause()
    first, second = q.join(1), q.join(1)
    q.put("A")
    q.queue.resume()
    assert (q.state(first), q.state(second)) == ("notified", "interested")
    first.interest(0)
    assert (q.state(first), q.state(second)) == ("not_interested", "notified")
    assert ids(second.pull()) == ["A"]


def test_a_consumer_that_leaves_passes_the_work_on(q: QueueFixture) -> None:
    """Q-39, Q-58."""
    q.queue.pause()
    first, second = q.join(1), q.join(1)
    q.put("A")
    q.queue.resume()
    first.close()
    assert q.state(second) == "notified"
    assert ids(second.pull()) == ["A"]


def test_a_consumer_that_becomes_interested_in_a_backlog_is_told_to_pull(q: QueueFixture) -> None:
    """Q-38: it alone."""
    consumer, other = q.join(0), q.join(0)
    q.put("A")
    assert consumer.interest(1) == "notified"
    assert q.state(other) == "not_interested"
    assert ids(consumer.pull()) == ["A"]


def test_all_browsers_are_told_of_each_job(q: QueueFixture) -> None:
    """Q-34, Q-37."""
    browsers = [q.join(10, mode="browse") for _ in range(3)]
    takers = [q.join(1), q.join(1)]
    q.queue.pause()
    q.put("A", "B")
    assert [q.told(b) for b in browsers] == [[b"w"]] * 3
    assert [ids(b.pull()) for b in browsers] == [["A", "B"]] * 3
    q.queue.resume()
    assert ids(takers[0].pull()) == ["A"]


def test_a_browser_without_interest_misses_nothing(q: QueueFixture) -> None:
    """Q-34."""
    browser = q.join(0, mode="browse")
    q.put("A", "B")
    assert q.told(browser) == []
    browser.interest(10)
    assert ids(browser.pull()) == ["A", "B"]


def test_browsers_are_told_after_other_browsers_have_left(q: QueueFixture) -> None:
    """Q-34."""
    quiet, leaving = q.join(0, mode="browse"), q.join(5, mode="browse")
    leaving.close()
    quiet.interest(5)
    q.put("A")
    assert q.told(quiet) == [b"w"]


def test_an_immediate_job_needs_a_consumer_with_credit(q: QueueFixture) -> None:
    """Q-19, X-01: delivered, or refused and not stored."""
    with pytest.raises(NoConsumer):
        q.put("A", immediate=True)
    idle = q.join(0)
    with pytest.raises(NoConsumer):
        q.put("A", immediate=True)
    assert q.look().jobs == {}
    idle.interest(1)
    assert q.put("A", immediate=True).handed_to == idle.name
    with pytest.raises(NoConsumer):
        q.put("B", immediate=True)
    (wake,) = idle.wait(1)
    assert wake.job is not None and idle.ack(wake.job)


def test_higher_consumers_come_first_while_they_have_credit(q: QueueFixture) -> None:
    """Q-45, A-27."""
    low, high = q.join(10), q.join(2, priority=3)
    handles = [q.put(f"j{i}") for i in range(4)]
    assert [handle.handed_to for handle in handles[:1]] == [high.name]
    assert ids(low.pull()) == []
    assert ids(high.pull()) == ["j0", "j1"]
    assert ids(low.pull()) == ["j2", "j3"]


def test_consumers_of_equal_rank_take_turns_and_lower_ones_wait(q: QueueFixture) -> None:
    """A-27."""
    top = [q.join(1, priority=3), q.join(1, priority=3)]
    low = q.join(1, priority=1)
    taken = [q.put(f"j{i}").handed_to for i in range(2)]
    assert taken == [c.name for c in top]
    assert q.put("j2").handed_to == low.name


def test_a_lost_wake_up_is_made_good_by_whoever_looks(q: QueueFixture) -> None:
    """H-07, X-02: a notification has a deadline."""
    q.queue.pause()
    deaf, other = q.join(1), q.join(1)
    q.put("A")
    q.queue.resume()
    assert q.state(deaf) == "notified"
    q.queue.redis.delete(q.queue.keys.wake(deaf.name))
    move_time(q.queue, 6000)
    q.renew(other)
    assert q.state(other) == "notified"
    assert ids(other.pull()) == ["A"]


def test_unanswered_wake_ups_do_not_pile_up(q: QueueFixture) -> None:
    """X-02: a busy consumer is told again and again, and reads one word."""
    q.queue.pause()
    busy = q.join(1)
    q.put("A")
    q.queue.resume()
    for _ in range(5):
        move_time(q.queue, 6000)
        q.renew(busy)
    assert q.told(busy) == [b"w"]


def test_after_a_lost_reply_a_consumer_asks_what_it_holds(q: QueueFixture) -> None:
    """H-18."""
    consumer = q.join(2)
    q.put("A", "B", "C")
    q.queue.redis.delete(q.queue.keys.wake(consumer.name))  # A was delivered there
    got = consumer.pull(recall=True)
    assert ids(got) == ["A", "B"]
    assert [consumer.ack(job) for job in got] == [True, True]


def test_adding_and_removing_consumers_is_counted(q: QueueFixture) -> None:
    """Q-35."""
    consumers = [q.join(1) for _ in range(3)]
    assert q.queue.counts().interested == 3
    for left, consumer in zip((2, 1, 0), consumers, strict=True):
        consumer.close()
        consumer.close()  # a second time does nothing
        assert q.queue.counts().interested == left
