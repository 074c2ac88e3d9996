"""Credit and flow control (after Qpid's Pre0_10CreditManagerTest, WindowCreditManagerTest,
ConsumerFlowControlTest, PrefetchTest and FlowTest). A value is longer than its body by less than
64 bytes: the limits here leave room for that."""

from datetime import timedelta

import pytest

from rqueue.errors import ConfigError, LifecycleError
from rqueue.protocol.credit import UNLIMITED, GrantCredit, SharedCredit, WindowCredit
from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture, ids


def test_QFL_01_credit_in_jobs_is_used_up_refused_and_restored() -> None:
    """Q-48, Q-49."""
    credit = WindowCredit(2)
    assert [credit.use(37), credit.use(37), credit.use(37)] == [True, True, False]
    assert not credit.has_credit
    credit.restore(1, 37)
    assert credit.has_credit and credit.use(37)


def test_QFL_02_a_large_job_passes_when_nothing_is_held(q: QueueFixture) -> None:
    """Q-49, X-11."""
    q.put("small", padding=3)
    q.put("large", padding=300)
    consumer = q.join(10, bytes=200)
    assert ids(consumer.pull()) == ["small"]
    assert consumer.pull() == []
    consumer.ack("small")
    assert ids(consumer.pull()) == ["large"]


def test_QFL_04_the_byte_limit_goes_below_what_is_held(q: QueueFixture) -> None:
    """Q-49."""
    q.put("1", "2", "3", "4", padding=100)
    consumer = q.join(10, bytes=450)
    assert ids(consumer.pull()) == ["1", "2", "3"]
    consumer.interest(10, 110)
    for id_ in ("1", "2"):
        consumer.ack(id_)
        assert consumer.pull() == []
    consumer.ack("3")
    assert ids(consumer.pull()) == ["4"]


def test_QFL_06_more_is_never_restored_than_was_taken() -> None:
    """Q-50: the credit stays what it is."""
    credit = WindowCredit(2)
    credit.restore(1, 0)
    assert credit.jobs == 2


def test_QFL_07_a_cleared_window_is_not_opened_by_a_settle(own_q: QueueFixture) -> None:
    """QPID-3592."""
    credit = WindowCredit(1)
    own_q.put("A", "B", "C")
    consumer = own_q.consumer(credit=credit).register()
    assert ids(consumer.pull()) == ["A"]
    consumer.stop()
    consumer.ack("A")
    assert (credit.jobs, consumer.pull(), consumer.state) == (0, [], "not_interested")
    consumer.grant(1, UNLIMITED)
    assert ids(consumer.pull()) == ["B"]
    assert consumer.pull() == []


def test_QFL_09_both_limits_hold(own_q: QueueFixture) -> None:
    """Q-50."""
    own_q.put("A", padding=60)
    own_q.put("B", padding=400)
    own_q.put("C", padding=60)
    consumer = own_q.consumer(credit=WindowCredit(2, 400)).register()
    assert ids(consumer.pull()) == ["A"]
    own_q.queue.job("B").cancel()
    assert ids(consumer.pull()) == ["C"]
    own_q.put("D")
    assert consumer.pull() == []


def test_QFL_10_a_grant_does_not_come_back_and_is_not_lost(own_q: QueueFixture) -> None:
    """a) Q-51."""
    own_q.put("A", "B", "C")
    consumer = own_q.consumer(credit=GrantCredit(2)).register()
    assert ids(consumer.pull()) == ["A", "B"]
    consumer.settle(ack=["A", "B"])
    assert consumer.pull() == []
    consumer.grant(1)
    assert ids(consumer.pull()) == ["C"]


def test_QFL_10_who_gets_nothing_keeps_its_credit(own_q: QueueFixture) -> None:
    """b) Q-51: credit is taken by the step that delivers."""
    credits = GrantCredit(1), GrantCredit(1)
    consumers = [own_q.consumer(credit=credit).register() for credit in credits]
    for n in range(50):
        own_q.put(f"j{n}")
        got = [job for consumer in consumers for job in consumer.pull()]
        got += [
            wake.job for consumer in consumers for wake in consumer.wait(0) if wake.job is not None
        ]
        assert ids(got) == [f"j{n}"]
        assert sorted(credit.jobs for credit in credits) == [0, 1]
        taker = consumers[0 if credits[0].jobs == 0 else 1]
        taker.ack(got[0])
        taker.grant(1)


def test_QFL_11_bytes_of_two_come_back_for_a_third(q: QueueFixture) -> None:
    """Q-49, Q-52."""
    q.put("1", "2", padding=128)
    q.put("3", padding=300)
    consumer = q.join(10, bytes=370)
    assert ids(consumer.pull()) == ["1", "2"]
    consumer.ack("1")
    assert consumer.pull() == []
    consumer.ack("2")
    assert ids(consumer.pull()) == ["3"]


def test_QFL_13_who_is_short_of_bytes_goes_on_when_another_takes_the_job(
    q: QueueFixture,
) -> None:
    """Q-52, QPID-1187."""
    q.put("1", padding=128)
    q.put("2", padding=256)
    q.put("3", padding=128)
    one = q.join(10, bytes=350)
    assert ids(one.pull()) == ["1"]
    assert one.pull() == []
    two = q.join(10, bytes=350)
    assert ids(two.pull()) == ["2"]
    assert two.pull() == []
    assert q.unread(one)
    assert ids(one.pull()) == ["3"]


@pytest.mark.parametrize("how", ["expired", "cancelled"])
def test_QFL_15_who_is_short_of_bytes_goes_on_when_the_job_is_gone(
    q: QueueFixture, how: str
) -> None:
    """Q-52."""
    q.put("held", padding=100)
    q.put("large", padding=250, ttl=3.0)
    q.put("small")
    consumer = q.join(10, bytes=300)
    assert ids(consumer.pull()) == ["held"]
    assert q.unread(consumer) == []
    if how == "expired":
        move_time(q.queue, timedelta(seconds=4))
        q.renew(consumer)
    else:
        q.queue.job("large").cancel()
    assert q.unread(consumer)
    assert ids(consumer.pull()) == ["small"]


def test_QFL_16_a_window_is_resized_up_and_down(q: QueueFixture) -> None:
    """Q-49, Q-53."""
    q.put(*"ABCDEF")
    consumer = q.join(3)
    assert ids(consumer.pull()) == ["A", "B", "C"]
    consumer.interest(4)
    assert ids(consumer.pull()) == ["D"]
    consumer.ack("A")
    assert ids(consumer.pull()) == ["E"]
    consumer.interest(2)
    consumer.settle(ack=["B", "C"])
    assert consumer.pull() == []
    consumer.ack("D")
    assert ids(consumer.pull()) == ["F"]
    consumer.close()
    assert q.queue.counts().ready == 2


def test_QFL_18_what_is_prefetched_others_do_not_get_until_it_is_closed(q: QueueFixture) -> None:
    """Q-53, Q-58."""
    q.put(*"012345")
    one, observer = q.join(3), q.join(1)
    assert ids(one.pull()) == ["0", "1", "2"]
    assert ids(one.settle(ack=["0"], pull=True)) == ["3"]
    assert ids(observer.pull()) == ["4"]
    one.close()
    assert ids(observer.settle(ack=["4"], pull=True)) == ["1"]


def test_QFL_19_a_window_of_one_holds_nothing_back(q: QueueFixture) -> None:
    """Q-53."""
    q.put("1", "2")
    one, observer = q.join(1), q.join(1)
    assert ids(one.pull()) == ["1"]
    one.ack("1")
    assert ids(observer.pull()) == ["2"]


def test_QFL_22_a_drain_of_nothing_and_of_one(own_q: QueueFixture) -> None:
    """Q-54."""
    credit = GrantCredit()
    consumer = own_q.consumer(credit=credit).register()
    consumer.grant(1)
    assert (consumer.flush(), consumer.ended_by, credit.jobs) == ([], "empty", 0)
    own_q.put("A")
    assert consumer.pull() == []
    consumer.grant(2, UNLIMITED)
    assert ids(consumer.flush()) == ["A"]
    assert (consumer.ended_by, credit.jobs, consumer.state) == ("empty", 0, "not_interested")
    own_q.put("B")
    assert (consumer.pull(), own_q.unread(consumer)) == ([], [])


def test_QFL_24_a_stopped_consumer_gets_nothing_more(q: QueueFixture) -> None:
    """Q-54."""
    q.put("1", "2")
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["1"]
    assert consumer.stop() == []
    consumer.ack("1")
    assert (q.state(consumer), q.unread(consumer)) == ("not_interested", [])


def test_QFL_25_the_queue_hears_of_interest_when_it_changes(q: QueueFixture) -> None:
    """Q-46."""
    consumer = q.join(0)
    states = [consumer.interest(jobs) for jobs in (1, 0, 1, 1)]
    assert states == ["interested", "not_interested", "interested", "interested"]
    consumer.close()
    assert not q.look().consumers


def test_QFL_27_two_consumers_share_one_window(own_q: QueueFixture) -> None:
    """Q-49, Q-53."""
    shared = SharedCredit(2)
    other = own_q.queue.at(f"{own_q.queue.name}-2")
    own_q.put(*"12345")
    for n in range(5):
        other.send("t", [n])
    one = own_q.queue.consumer(credit=shared, renew=False).register()
    two = other.consumer(credit=shared, renew=False).register()
    with one, two:
        held = [*one.pull(), *two.pull()]
        assert len(held) == 2
        one.settle(ack=[held[0]])
        assert len([*one.pull(), *two.pull(), *one.pull()]) == 1


def test_QFL_28_a_flush_says_why_it_ended(own_q: QueueFixture) -> None:
    """a) Q-28, Q-54."""
    own_q.put(*"12345")
    consumer = own_q.consumer(credit=GrantCredit(3)).register()
    assert (ids(consumer.flush()), consumer.ended_by) == (["1", "2", "3"], "credit")
    consumer.grant(7, UNLIMITED)
    assert (ids(consumer.flush()), consumer.ended_by) == (["4", "5"], "empty")
    own_q.queue.pause()
    own_q.put("6")
    consumer.grant(7, UNLIMITED)
    assert (consumer.flush(), consumer.ended_by) == ([], "paused")
    own_q.queue.resume()
    consumer.grant(7, UNLIMITED)
    assert (ids(consumer.flush()), consumer.ended_by) == (["6"], "empty")


def test_QFL_28_a_browser_s_flush(own_q: QueueFixture) -> None:
    """b) Q-28."""
    own_q.put(*"12345")
    browser = own_q.consumer(mode="browse", credit=GrantCredit(3)).register()
    assert (ids(browser.flush()), browser.ended_by) == (["1", "2", "3"], "credit")
    browser.grant(7, UNLIMITED)
    assert (ids(browser.flush()), browser.ended_by) == (["4", "5"], "empty")


def test_QFL_28_a_window_has_no_grants(own_q: QueueFixture) -> None:
    """c) Q-48: what is no credit is refused, and so is a receive that nothing could come of."""
    with pytest.raises(ConfigError, match="jobs"):
        GrantCredit(-2)
    own_q.put("1", "2")
    with own_q.queue.consumer(renew=False) as consumer:
        consumer.receive(0)
        with pytest.raises(LifecycleError, match="all that its window allows"):
            consumer.receive(0)
