"""Qpid's consumers: which list each is in, who is notified, who pulls."""

from collections import Counter
from collections.abc import Callable
from itertools import groupby

import pytest

from rqueue.client._sync.queue import Call
from rqueue.errors import NoConsumer
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, every_kind, ids, one_kind
from tests.support.runners import Runner
from tests.workers.pools import Pool, eventually


def test_QCM_01_a_consumer_begins_in_the_list_of_its_credit(q: QueueFixture) -> None:
    """Q-34, Q-35."""
    assert q.join(1).state == "interested"
    assert q.join(0).state == "not_interested"
    assert q.join(1, mode="browse").state == "browsers"
    assert q.join(0, mode="browse").state == "not_interested"
    assert len(q.look().scores("consumers")) == 4


def test_QCM_02_interest_moves_an_acquiring_consumer(q: QueueFixture) -> None:
    """a) Q-35: each pair of state and call."""
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


def test_QCM_02_interest_moves_a_browser_between_its_two_lists(q: QueueFixture) -> None:
    """b) Q-34: a browser is never interested, and never notified."""
    browser = q.join(0, mode="browse")
    q.put("A")
    assert browser.interest(10) == "browsers"
    assert browser.interest(0) == "not_interested"
    assert q.state(browser) == "not_interested"


@every_kind
def test_QCM_03_one_arrival_wakes_one(q: QueueFixture, kind: str) -> None:
    """Q-37."""
    consumers = [q.join(1) for _ in range(3)]
    q.put("A")
    assert sorted(map(q.state, consumers)) == ["interested", "interested", "not_interested"]
    assert [len(q.unread(c)) for c in consumers] == [1, 0, 0]
    (wake,) = consumers[0].wait(PATIENCE)
    assert wake.job is not None and wake.job.id == "A"


@every_kind
def test_QCM_05_a_notified_consumer_is_not_woken_again(q: QueueFixture, kind: str) -> None:
    """Q-40: it pulls until nothing is left."""
    q.queue.pause()
    q.put("A")
    consumer = q.join(3)
    q.queue.resume()
    q.put(*"BCDEFGHIJ")
    assert q.unread(consumer) == [b"w"]
    seen = []
    while jobs := consumer.pull():
        seen += ids(jobs)
        for job in jobs:
            consumer.ack(job)
    assert seen == list("ABCDEFGHIJ")
    assert q.state(consumer) == "interested"
    assert q.unread(consumer) == []


@every_kind
def test_QCM_07_after_an_empty_pull_a_consumer_is_the_last_in_line(
    q: QueueFixture, kind: str
) -> None:
    """Q-35, Q-44."""
    first, second, third = (q.join(1) for _ in range(3))
    q.put("A")
    first.wait(PATIENCE)
    first.ack("A")
    assert first.pull() == []
    q.put("B")
    assert q.state(second) == "not_interested"
    q.put("C")
    q.put("D")
    assert q.look().held == {first.name: ["D"], second.name: ["B"], third.name: ["C"]}


@every_kind
def test_QCM_09_a_consumer_that_loses_interest_passes_the_work_on(
    q: QueueFixture, kind: str
) -> None:
    """Q-39."""
    q.queue.pause()
    first, second = q.join(1), q.join(1)
    q.put("A")
    q.queue.resume()
    assert (q.state(first), q.state(second)) == ("notified", "interested")
    first.interest(0)
    assert (q.state(first), q.state(second)) == ("not_interested", "notified")
    assert ids(second.pull()) == ["A"]


def test_QCM_11_a_consumer_that_becomes_interested_in_a_backlog_is_to_pull(q: QueueFixture) -> None:
    """a) Q-38: it alone."""
    consumer, other = q.join(0), q.join(0)
    q.put("A")
    assert consumer.interest(1) == "notified"
    assert q.state(other) == "not_interested"
    assert ids(consumer.pull()) == ["A"]


def test_QCM_11_one_that_selects_other_jobs_is_not_notified(q: QueueFixture) -> None:
    """b) Q-38, Q-22."""
    q.queue.configure(kind="selectors")
    consumer, other = q.join(0, select="x = 1"), q.join(1, select="x = 2")
    q.put("A", labels={"x": 1})
    assert consumer.interest(1) == "notified"
    assert q.state(other) == "interested"
    assert ids(consumer.pull()) == ["A"]


def test_QCM_12_all_browsers_are_notified_of_each_job(q: QueueFixture) -> None:
    """a) Q-34, Q-37."""
    browsers = [q.join(10, mode="browse") for _ in range(3)]
    takers = [q.join(1), q.join(1)]
    q.queue.pause()
    q.put("A", "B")
    assert [q.unread(b) for b in browsers] == [[b"w"]] * 3
    assert [ids(b.pull()) for b in browsers] == [["A", "B"]] * 3
    q.queue.resume()
    assert ids(takers[0].pull()) == ["A"]


def test_QCM_12_a_browser_is_notified_of_what_it_selects(q: QueueFixture) -> None:
    """b) Q-34, Q-22."""
    q.queue.configure(kind="selectors")
    browsers = [q.join(10, mode="browse", select=f"x = {x}") for x in (1, 1, 2)]
    takers = [q.join(1), q.join(1)]
    q.queue.pause()
    q.put("A", labels={"x": 1})
    assert [ids(b.pull()) for b in browsers] == [["A"], ["A"], []]
    q.queue.resume()
    assert sorted(map(q.state, takers)) == ["interested", "notified"]


def test_QCM_13_a_browser_without_interest_misses_nothing(q: QueueFixture) -> None:
    """Q-34."""
    browser = q.join(0, mode="browse")
    q.put("A", "B")
    assert q.unread(browser) == []
    browser.interest(10)
    assert ids(browser.pull()) == ["A", "B"]


@every_kind
def test_QCM_14_a_consumer_that_leaves_passes_the_work_on(q: QueueFixture, kind: str) -> None:
    """Q-39, Q-58."""
    q.queue.pause()
    first, second = q.join(1), q.join(1)
    q.put("A")
    q.queue.resume()
    first.close()
    assert q.state(second) == "notified"
    assert ids(second.pull()) == ["A"]


@every_kind
def test_QCM_16_equal_consumers_share_single_arrivals_equally(q: QueueFixture, kind: str) -> None:
    """a) Q-44."""
    consumers = {c.name: c for c in (q.join(1) for _ in range(4))}
    counts = dict.fromkeys(consumers, 0)
    for i in range(40):
        name = q.put(f"j{i}").handed_to
        counts[name] += 1
        consumers[name].ack(f"j{i}")
        consumers[name].pull()
    assert set(counts.values()) == {10}


@one_kind
def test_QCM_16_equal_processes_share_single_arrivals(
    q: QueueFixture, make_pool: Callable[..., Pool]
) -> None:
    """b) Q-44: four processes; each job is enqueued when the one before it has ended."""
    pool = make_pool(app=["tests.support.begun_app"], processes=4, async_slots=0)
    eventually(lambda: q.queue.counts().interested == 4)
    for _ in range(200):
        q.queue.send("t").result(PATIENCE)
    eventually(lambda: len(q.look().history) == 200)
    took = [row["worker"] for row in q.look().history]
    assert pool.drained() == 0
    shares = Counter(took)
    assert len(shares) == 4 and min(shares.values()) >= 30, shares
    for start in range(0, 200, 40):
        assert len(set(took[start : start + 40])) == 4, took
    q.queue.redis.delete(f"begun:{q.queue.name}")


def test_QCM_17_an_immediate_job_needs_a_consumer_with_credit(q: QueueFixture) -> None:
    """a) Q-19, X-01: delivered, or refused and not stored."""
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
    (wake,) = idle.wait(PATIENCE)
    assert wake.job is not None and idle.ack(wake.job)


@one_kind
def test_QCM_17_an_immediate_job_is_delivered_once_or_refused(
    q: QueueFixture, runner: Runner
) -> None:
    """b) Q-19: while another process pulls as fast as it can."""
    runner.start()
    accepted: list[str] = []
    refused = 0
    while len(accepted) < 120:
        id = f"{len(accepted):03}-{refused}"
        try:
            q.put(id, immediate=True)
            accepted.append(id)
        except NoConsumer:
            refused += 1
    assert runner.begun(len(accepted)) == accepted
    assert q.queue.counts().ready == 0


@one_kind
def test_QCM_20_one_process_serves_its_queues_in_turn(
    q: QueueFixture, make_pool: Callable[..., Pool]
) -> None:
    """Q-47, Q-33: while all three have jobs, it begins few of one before it turns to the next."""
    names = [q.queue.name + end for end in ("", "-b", "-c")]
    for name in names:
        q.queue.at(name).enqueue_many([Call("note", [q.queue.name, name])] * 100)
    pool = make_pool(queues=names, async_slots=0, prefetch=10)
    eventually(lambda: q.queue.redis.llen(q.queue.name) == 300)
    assert pool.drained() == 0
    order = [name.decode() for name in q.queue.redis.lrange(q.queue.name, 0, -1)]
    both_wait = order[: min(300 - order[::-1].index(name) for name in names)]
    runs = [len(list(run)) for _, run in groupby(both_wait)]
    assert max(runs) <= 40, runs
    for name in names:
        assert order.index(name) < 40
        q.queue.redis.delete(name)
