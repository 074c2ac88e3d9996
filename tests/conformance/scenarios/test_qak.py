"""Acknowledge, reject, recover, kinds of consumers (Qpid's Ack-, Recover-, Basic-, BrowserTest)."""

from datetime import UTC, datetime, timedelta

import pytest

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, LifecycleError, NotRegistered
from rqueue.protocol.credit import GrantCredit
from rqueue.testing import move_time
from tests.support.holder import Holder
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, ids

TEN = [f"j{n}" for n in range(1, 11)]


def test_QAK_01_unacked_jobs_are_remembered_in_order(own_q: QueueFixture) -> None:
    """Q-55."""
    own_q.put(*TEN)
    consumer = own_q.join()
    consumer.pull()
    assert own_q.look().held[consumer.name] == TEN
    assert consumer._given == TEN


def test_QAK_02_a_consumer_that_does_not_ack_retains_nothing(own_q: QueueFixture) -> None:
    """a) Q-24."""
    own_q.put(*TEN)
    consumer = own_q.consumer(mode="no_ack", jobs=100).register()
    assert ids(consumer.pull()) == TEN
    counts = own_q.queue.counts()
    assert (counts.held, counts.ready, counts.meta["acked"]) == (0, 0, "10")
    assert own_q.queue.job("j1").state() == "done"
    assert consumer.ack("j1") is False


def test_QAK_02_a_job_that_is_delivered_directly_is_removed_before_it_is_returned(
    own_q: QueueFixture,
) -> None:
    """b) Q-24: one after the other, and with a wake-up."""
    consumer = own_q.consumer(mode="no_ack", jobs=2).register()
    own_q.put("A")
    received = consumer.receive(PATIENCE)
    assert received is not None and received.id == "A"
    assert own_q.queue.counts().held == 0
    other = own_q.consumer(mode="no_ack", jobs=2).register()
    consumer.stop()
    own_q.put("B")
    assert [wake.job.id for wake in other.wait(PATIENCE) if wake.job] == ["B"]
    assert own_q.queue.counts().held == 0


def test_QAK_02_what_was_fetched_and_not_returned_is_not_lost(own_q: QueueFixture) -> None:
    """c) Q-24: removed are the jobs that were returned, one by one, and no others."""
    own_q.put(*TEN)
    consumer = own_q.consumer(mode="no_ack", jobs=10).register()
    received = [consumer.receive(0), consumer.receive(0)]
    assert ids(received) == TEN[:2]  # type: ignore[arg-type]
    assert own_q.queue.counts().held == 8
    consumer.close()
    assert own_q.queue.counts().ready == 8


def test_QAK_02_a_job_that_was_cancelled_meanwhile_is_not_returned(own_q: QueueFixture) -> None:
    """d) Q-24: who removes it has it."""
    own_q.put("A", "B", "C")
    consumer = own_q.consumer(mode="no_ack", jobs=10).register()
    first = consumer.receive(0)
    assert first is not None and first.id == "A"
    assert own_q.queue.job("B").cancel()
    second = consumer.receive(0)
    assert second is not None and second.id == "C"
    assert consumer.receive(0) is None


@pytest.mark.parametrize(
    ("what", "left"),
    [("no_ack", []), ("acquire", ["A"])],
)
def test_QAK_02_a_killed_process(
    server: EmbeddedRedis, own_q: QueueFixture, what: str, left: list[str]
) -> None:
    """e) Q-24: at most once without acks, at least once with them."""
    own_q.put("A", "B")
    with Holder(server.url, own_q.queue.name, mode=what) as holder:
        assert holder.do("receive", PATIENCE) == "A"
        holder.kill()
    move_time(own_q.queue, timedelta(minutes=1))
    own_q.renew()
    with own_q.queue.consumer(jobs=10, renew=False) as consumer:
        assert ids(consumer.pull()) == [*left, "B"]


def test_QAK_03_single_multiple_and_all(own_q: QueueFixture) -> None:
    """a) Q-55."""
    own_q.put(*TEN)
    consumer = own_q.join()
    jobs = consumer.pull()
    assert consumer.ack(jobs[4])
    assert own_q.look().held[consumer.name] == TEN[:4] + TEN[5:]
    assert consumer.ack_multiple(jobs[5]) == 5
    assert own_q.look().held[consumer.name] == TEN[6:]
    assert consumer.ack_multiple() == 4
    assert own_q.queue.counts().held == 0
    assert consumer.ack_multiple() == 0


def test_QAK_03_an_unknown_job_acks_no_other(own_q: QueueFixture) -> None:
    """b) Q-55: in Qpid it acks all."""
    own_q.put("A", "B")
    consumer = own_q.join()
    consumer.pull()
    assert (consumer.ack_multiple("x"), consumer.refused) == (0, ["x"])
    assert own_q.look().held[consumer.name] == ["A", "B"]


def test_QAK_03_what_was_not_returned_is_not_acked(own_q: QueueFixture) -> None:
    """c) Q-55: jobs that came and wait in the consumer were not worked on."""
    own_q.put("A", "B", "C")
    consumer = own_q.join()
    assert ids([consumer.receive(0), consumer.receive(0)]) == ["A", "B"]  # type: ignore[list-item]
    assert consumer.ack_multiple() == 2
    assert ids([consumer.receive(0)]) == ["C"]  # type: ignore[list-item]


def test_QAK_03_more_than_one_call_names(own_q: QueueFixture) -> None:
    """d) Q-55: in steps of 1,000."""
    many = [f"m{n}" for n in range(1200)]
    own_q.put(*many)
    consumer = own_q.join(2000)
    jobs = [job for _ in range(3) for job in consumer.pull()]
    assert consumer.ack_multiple(jobs[1099]) == 1100
    assert own_q.queue.counts().held == 100
    assert consumer.recover(requeue=True) == 100


def test_QAK_05_get_and_get_on_empty(own_q: QueueFixture) -> None:
    """Q-25."""
    own_q.put("A")
    with own_q.queue.consumer(renew=False) as consumer:
        job = consumer.receive(0)
        assert job is not None and own_q.queue.job("A").state() == "held"
        consumer.ack(job)
        assert own_q.queue.job("A").state() == "done"
    own_q.put("B", "C")
    got = own_q.queue.get()
    assert got is not None and got.id == "B"
    assert own_q.queue.envelope(got).task == "t"
    counts = own_q.queue.counts()
    assert (counts.ready, counts.held) == (1, 0)
    assert ids([own_q.queue.get(5)]) == ["C"]  # type: ignore[list-item]
    assert own_q.queue.get() is None
    assert not own_q.look().consumers


def test_QAK_07_a_browse_ends_at_the_tail_by_itself(own_q: QueueFixture) -> None:
    """a) Q-29, Q-24."""
    browser = own_q.consumer(mode="browse", auto_close=True).register()
    assert (browser.receive(5), browser.state) == (None, "")
    own_q.put(*TEN[:5])
    browser = own_q.consumer(mode="browse", jobs=2, auto_close=True).register()
    seen = []
    while job := browser.receive():
        seen.append(job.id)
    assert (seen, browser.state) == (TEN[:5], "")
    with pytest.raises(NotRegistered):
        browser.receive()
    assert ids(own_q.join().pull()) == TEN[:5]


def test_QAK_07_lack_of_credit_is_not_the_tail(own_q: QueueFixture) -> None:
    """b) Q-29, X-22."""
    own_q.put(*TEN[:5])
    browser = own_q.consumer(mode="browse", credit=GrantCredit(2), auto_close=True).register()
    assert ids(browser.pull()) == TEN[:2]
    assert (browser.receive(5), browser.state) == (None, "not_interested")
    browser.grant(10)
    assert ids(browser.pull()) == TEN[2:5]
    assert (browser.pull(), browser.state) == ([], "")


def test_QAK_07_a_run_of_cancelled_jobs_is_not_the_tail(own_q: QueueFixture) -> None:
    """c) Q-29: a page that shows none of them is not the last one."""
    many = [f"m{n}" for n in range(50)]
    own_q.put(*many)
    for id_ in many[5:45]:
        own_q.queue.job(id_).cancel()
    browser = own_q.consumer(mode="browse", jobs=1, auto_close=True).register()
    seen = []
    while job := browser.receive(0):
        seen.append(job.id)
    assert seen == many[:5] + many[45:]


def test_QAK_07_a_browser_begins_at_the_head_the_tail_or_a_time(own_q: QueueFixture) -> None:
    """d) Q-27."""
    own_q.put("A", "B", priority=2)
    own_q.put("due", delay_ms=5000)
    begun = datetime.now(UTC)
    move_time(own_q.queue, timedelta(minutes=10))
    own_q.queue.promote("due")
    own_q.put("C", priority=7)
    head, tail, late, ago, at = (
        own_q.consumer(mode="browse", jobs=10, start=start).register()
        for start in (
            "head",
            "tail",
            begun + timedelta(minutes=5),
            timedelta(minutes=5),
            (begun + timedelta(minutes=5)).timestamp(),
        )
    )
    assert ids(head.pull()) == ["C", "due", "A", "B"]
    assert ids(tail.pull()) == []
    assert ids(late.pull()) == ids(ago.pull()) == ids(at.pull()) == ["C"]
    own_q.put("D", priority=2)
    own_q.put("E")
    for browser in (head, tail, late, ago, at):
        assert ids(browser.pull()) == ["E", "D"]


@pytest.mark.parametrize("start", ["middle", -1, True, datetime(2026, 1, 1)])
def test_QAK_07_what_is_no_start(own_q: QueueFixture, start: object) -> None:
    """e) Q-27."""
    with pytest.raises(ConfigError, match="start"):
        own_q.queue.consumer(mode="browse", start=start)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="browse"):
        own_q.queue.consumer(start="tail")


def test_QAK_07_the_tail_of_a_queue_with_groups(own_q: QueueFixture) -> None:
    """f) Q-27, Q-65."""
    own_q.queue.configure(kind="groups")
    own_q.put("A", "B", "C", group="g")
    own_q.put("D")
    tail = own_q.consumer(mode="browse", jobs=10, start="tail").register()
    assert ids(tail.pull()) == []
    own_q.put("E", "F", group="h")
    own_q.put("G")
    assert sorted(ids([job for _ in range(3) for job in tail.pull()])) == ["E", "F", "G"]


def test_QAK_07_the_tail_of_a_queue_with_classes(own_q: QueueFixture) -> None:
    """g) Q-27, Q-22."""
    own_q.queue.configure(kind="selectors")
    own_q.put("A", "B", labels={"x": 1})
    own_q.put("C", labels={"x": 2})
    own_q.put("D")
    tail = own_q.consumer(mode="browse", jobs=10, start="tail").register()
    assert ids(tail.pull()) == []
    own_q.put("E", labels={"x": 2})
    own_q.put("F", labels={"x": 1})
    own_q.put("G")
    assert ids([job for _ in range(3) for job in tail.pull()]) == ["E", "F", "G"]


def test_QAK_09_a_browser_is_not_rewound_by_a_release(own_q: QueueFixture) -> None:
    """Q-04; and its cursor stands while others consume."""
    own_q.put("1", "2", "3", "4", "5")
    consumer = own_q.join(2)
    consumer.pull()
    browser = own_q.consumer(mode="browse", jobs=2).register()
    assert ids(browser.pull()) == ["3", "4"]
    taker = own_q.join(2)
    assert ids(taker.pull()) == ["3", "4"]
    consumer.settle(release=["1", "2"])
    own_q.put("6")
    assert [ids(browser.pull()) for _ in range(2)] == [["5", "6"], []]
    taker.settle(release=["3", "4"])
    assert browser.pull() == []
    second = own_q.consumer(mode="browse", jobs=10).register()
    assert ids(second.pull()) == ["1", "2", "3", "4", "5", "6"]


def test_QAK_12_recover_gives_again_in_order_and_then_goes_on(own_q: QueueFixture) -> None:
    """a) Q-57."""
    own_q.put("0", "1", "2", "3")
    consumer = own_q.join(2)
    first = consumer.receive(0)
    assert first is not None and consumer.ack(first)
    given = [consumer.receive(0), consumer.receive(0)]
    assert [job.redelivered for job in given if job] == [False, False]
    assert consumer.recover() == 2
    again = [consumer.receive(0), consumer.receive(0)]
    assert [(job.id, job.redelivered, job.deliveries) for job in again if job] == [
        ("1", True, 0),
        ("2", True, 0),
    ]
    assert consumer.ack_multiple() == 2
    assert ids([consumer.receive(0)]) == ["3"]  # type: ignore[list-item]


def test_QAK_12_recover_with_requeue_gives_them_to_anybody(own_q: QueueFixture) -> None:
    """b) Q-57."""
    own_q.put("1", "2", "3")
    consumer, other = own_q.join(2), own_q.join(3)
    assert ids(consumer.pull()) == ["1", "2"]
    assert consumer.recover(requeue=True) == 2
    assert [(job.id, job.redelivered) for job in other.pull()] == [
        ("1", True),
        ("2", True),
        ("3", False),
    ]


def test_QAK_12_what_was_cancelled_meanwhile_does_not_come_again(own_q: QueueFixture) -> None:
    """c) Q-57: recover asks the queue."""
    own_q.put("1", "2")
    consumer = own_q.join(2)
    consumer.pull()
    own_q.queue.job("1").cancel()
    assert consumer.recover() == 1
    assert ids([consumer.receive(0)]) == ["2"]  # type: ignore[list-item]


def test_QAK_14_recover_is_the_consumer_s_own(own_q: QueueFixture) -> None:
    """Q-57."""
    own_q.put("1", "2")
    one, two = own_q.join(1), own_q.join(1)
    assert ids([*one.pull(), *two.pull()]) == ["1", "2"]
    two.ack("2")
    assert (two.recover(), one.recover()) == (0, 1)
    assert ids([one.receive(0)]) == ["1"]  # type: ignore[list-item]


def test_QAK_15_redelivered_is_set_after_a_recover(own_q: QueueFixture) -> None:
    """Q-57."""
    own_q.put("1")
    consumer = own_q.join(1)
    calls = []
    while job := consumer.receive(0):
        calls.append(job.redelivered)
        if len(calls) == 1:
            consumer.recover()
        else:
            consumer.ack(job)
    assert calls == [False, True]


def test_QAK_20_who_closes_gives_everything_back_in_order(own_q: QueueFixture) -> None:
    """a) Q-59, Q-01."""
    own_q.put("1", "2", "3", "4", "5", "6")
    first = own_q.join(5)
    first.pull()
    assert first.cancel() == []
    assert first.state == ""
    assert [(job.id, job.redelivered) for job in own_q.join().pull()] == [
        *((n, True) for n in "12345"),
        ("6", False),
    ]


def test_QAK_20_a_cancelled_consumer_may_settle_what_it_holds(own_q: QueueFixture) -> None:
    """b) Q-58."""
    own_q.put("1", "2", "3", "4")
    first = own_q.join(3)
    assert ids([first.receive(0)]) == ["1"]  # type: ignore[list-item]
    assert ids(first.cancel(release=False)) == ["2", "3"]
    other = own_q.join()
    assert ids(other.pull()) == ["4"]
    assert first.receive(5) is None
    with pytest.raises(LifecycleError, match="was cancelled"):
        first.interest(5)
    assert first.ack("1") and first.ack("3")
    assert first.state == "not_interested"
    assert first.release("2")
    assert first.state == ""
    assert list(own_q.look().consumers) == [other.name]
    assert ids(other.pull()) == ["2"]


def test_QAK_20_a_cancelled_consumer_that_holds_nothing_leaves(own_q: QueueFixture) -> None:
    """c) Q-58."""
    first = own_q.join(3)
    assert first.cancel(release=False) == []
    assert (first.state, own_q.look().consumers) == ("", {})


def test_QAK_10_browsers_read_all_and_take_nothing(own_q: QueueFixture) -> None:
    """Q-26: the jobs stay, and each reader sees each of them once."""
    own_q.put(*TEN[:5])
    first = own_q.join(mode="browse")
    assert (ids(first.pull()), first.pull()) == (TEN[:5], [])
    second = own_q.join(mode="browse")
    assert ids(second.pull()) == TEN[:5]
    assert own_q.queue.counts().ready == 5
    own_q.put("j6")
    assert (ids(first.pull()), ids(second.pull())) == (["j6"], ["j6"])
    assert own_q.queue.counts().ready == 6
