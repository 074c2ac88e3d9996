# Generated from tests/client/_async/test_consumer.py (`make generate`): do not edit.
"""The consumer from Python: credit that the queue honours, the end of credit, lost connections."""

from time import monotonic

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    ConfigError,
    ConnectionLost,
    ConsumerGone,
    ConsumerRefused,
    LifecycleError,
    NotRegistered,
    RegistrationLost,
)
from rqueue.model.job import Delivery
from rqueue.protocol import commands
from rqueue.protocol.commands import Window
from rqueue.protocol.credit import GrantCredit, SharedCredit, WindowCredit
from tests.support.both import Together, end_lease, move_time, outside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import pull, pull_one


def fill(queue: Queue, count: int) -> list[str]:
    return [(queue.send("t", [i])).id for i in range(count)]


def ids(jobs: list[Delivery]) -> list[str]:
    return [job.id for job in jobs]


# -- life ------------------------------------------------------------------------------------------


def test_life_cycle(queue: Queue) -> None:
    consumer = queue.consumer(renew=False)
    for act in (consumer.pull, consumer.settle, consumer.wait, consumer.stop, consumer.flush):
        with pytest.raises(NotRegistered, match=r"use it in a 'with' block .* or call register"):
            act()
    consumer.close()  # never joined: nothing to do
    with consumer:
        with pytest.raises(LifecycleError):
            consumer.register()
        assert consumer.state == "interested"
        assert queue.name in repr(consumer)
    assert "closed" in repr(consumer)
    consumer.close()
    with pytest.raises(NotRegistered):
        consumer.pull()


def test_who_is_refused_keeps_no_connection(queue: Queue) -> None:
    queue.configure(max_consumers=1)
    with queue.consumer(renew=False):
        refused = queue.consumer(renew=False)
        with pytest.raises(ConsumerRefused):
            refused.__enter__()
        assert not refused._connection.connected
    with refused:  # there is room now
        assert refused.state == "interested"


def test_closing_releases_in_place(queue: Queue) -> None:
    sent = fill(queue, 4)
    with queue.consumer(jobs=3, renew=False) as first:
        jobs = first.pull()
        first.ack(jobs[1])
    with queue.consumer(jobs=9, renew=False) as second:
        again = second.pull()
        assert ids(again) == [sent[0], sent[2], sent[3]]
        assert [(job.deliveries, job.attempts) for job in again] == [(1, 0), (1, 0), (0, 0)]


# -- credit ----------------------------------------------------------------------------------------


def test_a_window_comes_back_when_jobs_are_settled(queue: Queue) -> None:
    sent = fill(queue, 6)
    with queue.consumer(credit=WindowCredit(2), renew=False) as consumer:
        jobs = consumer.pull()
        assert (ids(jobs), consumer.state, consumer.pull()) == (
            sent[:2],
            "not_interested",
            [],
        )
        assert ids(consumer.settle(ack=jobs[:1], pull=True)) == sent[2:3]
        assert consumer.grant(2) == "notified"
        assert ids(consumer.pull()) == sent[3:5]
        assert consumer.held == 4
        with pytest.raises(ConfigError):
            consumer.interest(1)


def test_a_grant_is_used_up(queue: Queue) -> None:
    sent = fill(queue, 6)
    credit = GrantCredit(3)
    with queue.consumer(credit=credit, renew=False) as consumer:
        jobs = consumer.pull()
        assert (ids(jobs), credit.jobs) == (sent[:3], 0)
        assert consumer.settle(ack=jobs, pull=True) == []
        assert (consumer.state, consumer.held) == ("not_interested", 0)
        assert consumer.grant(2) == "notified"
        assert ids(consumer.pull()) == sent[3:5]


def test_a_grant_holds_for_jobs_that_are_handed_over(queue: Queue) -> None:
    credit = GrantCredit(3)
    with queue.consumer(credit=credit, renew=False) as consumer:
        assert consumer.pull() == []
        first = queue.send("t")
        assert first.handed_to == consumer.name
        (job,) = pull(consumer, 1)
        assert credit.jobs == 2
        consumer.pull()
        consumer.ack(job)  # the queue must not take this for room
        assert consumer.state == "interested"
        sent = fill(queue, 5)
        assert ids(pull(consumer, 2)) == sent[:2]
        assert (consumer.pull(), consumer.held, credit.jobs) == ([], 2, 0)
        assert consumer.state == "not_interested"


def test_a_grant_that_is_held_in_full_opens_again(queue: Queue) -> None:
    """More is held than is still granted: the client says so before and after the settle."""
    credit = GrantCredit(4)
    sent = fill(queue, 3)
    with queue.consumer(credit=credit, renew=False) as consumer:
        jobs = consumer.pull()
        assert (consumer.state, credit.jobs) == ("interested", 1)
        consumer.settle(ack=jobs)
        assert consumer.state == "interested"
        assert (queue.send("t")).handed_to == consumer.name
        assert (queue.send("t")).handed_to == ""
        assert len(sent) == 3


def test_bytes_are_credit_too(queue: Queue) -> None:
    for _ in range(3):
        queue.send("t", ["x" * 1000])
    with queue.consumer(credit=WindowCredit(10, 2500), renew=False) as consumer:
        jobs = consumer.pull()
        assert (len(jobs), consumer.state) == (2, "not_interested")
        assert 2000 < consumer.held_bytes < 2500
        assert len(consumer.settle(ack=jobs[:1], pull=True)) == 1
    with queue.consumer(credit=WindowCredit(10, 10), renew=False) as consumer:
        assert len(consumer.pull()) == 1  # larger than all its bytes: it passes alone


def test_consumers_of_two_queues_share_one_window(queue: Queue) -> None:
    other = queue.at(queue.name + "-b")
    fill(queue, 20)
    shared = SharedCredit(6)
    first = queue.consumer(credit=shared, renew=False)
    second = other.consumer(credit=shared, renew=False)
    with first, second:
        mine = first.pull()
        assert (len(mine), second.pull(), shared.jobs_used) == (5, [], 5)
        fill(other, 20)
        theirs = pull(second, 1)
        assert second.pull() == []
        assert shared.jobs_used == 6
        mine = first.settle(ack=mine, pull=True)
        theirs = second.settle(ack=theirs, pull=True)
        assert (len(mine), len(theirs)) == (3, 3)
        first.stop()
        assert len(second.settle(ack=theirs, pull=True)) == 3
    assert shared.jobs_used == 0


def test_sharing_consumer_that_waits_leaves_the_rest_to_others(queue: Queue) -> None:
    other = queue.at(queue.name + "-b")
    shared = SharedCredit(6)
    first = queue.consumer(credit=shared, renew=False)
    second = other.consumer(credit=shared, renew=False)
    with first, second:
        assert first.pull() == []
        assert first.window.jobs == 1
        fill(other, 9)
        assert len(pull(second, 5)) == 5
        fill(queue, 1)
        assert len(pull(first, 1)) == 1
        assert shared.jobs_used == 6


def test_one_whose_registration_was_lost_leaves_its_credit_to_others(
    queue: Queue,
) -> None:
    other = queue.at(queue.name + "-b")
    fill(queue, 20)
    fill(other, 20)
    shared = SharedCredit(6)
    first = queue.consumer(credit=shared, renew=False)
    second = other.consumer(credit=shared, renew=False)
    with first, second:
        assert (len(first.pull()), len(second.pull())) == (5, 1)
        end_lease(queue)
        with pytest.raises(ConsumerGone):
            first.pull()
        assert len(second.pull()) == 4  # the first one has room for a job when it is back
        first.rejoin()
        assert len(first.pull()) == 1
        assert shared.jobs_used == 6


def test_credit_follows_a_recall(queue: Queue) -> None:
    sent = fill(queue, 4)
    credit = WindowCredit(3)
    with queue.consumer(credit=credit, renew=False) as consumer:
        jobs = consumer.pull()
        queue._run(commands.cancel(queue.keys, sent[1]))
        # what it counted as settled was not: the reply, or the call, was lost
        consumer._settled(jobs[:1], (), (), (), (), b"", 0)
        assert credit.jobs_used == 2
        recalled = consumer.pull(recall=True)
        assert sent[0] in ids(recalled)
        assert credit.jobs_used == consumer.held == len(recalled)


def test_credit_is_free_again_when_the_registration_is_lost(queue: Queue) -> None:
    fill(queue, 2)
    credit = WindowCredit(2)
    consumer = queue.consumer(credit=credit, lease=1, renew=False).register()
    assert len(consumer.pull()) == 2
    move_time(queue, 5000)
    with queue.consumer(jobs=5, renew=False) as other:
        queue._run(commands.renew(queue.keys, 1000, []))
        assert len(other.pull()) == 2
        with pytest.raises(RegistrationLost, match="lease"):
            consumer.pull()
        assert (credit.jobs, consumer.held) == (2, 0)
    consumer.rejoin()
    assert len(consumer.pull()) == 2
    consumer.close()


# -- the end of credit (Q-54) ----------------------------------------------------------------------


def test_stop_keeps_what_is_held_and_tells_what_was_handed_over(queue: Queue) -> None:
    with queue.consumer(jobs=3, renew=False) as consumer:
        consumer.pull()
        first = queue.send("t")
        second = queue.send("t")
        assert (first.handed_to, second.handed_to) == (consumer.name, "")
        assert ids(consumer.stop()) == [first.id]
        assert (consumer.state, consumer.held, consumer.stop()) == ("not_interested", 1, [])
        assert (queue.send("t")).handed_to == ""
        assert consumer.pull() == []
        assert consumer.ack(first.id)
        assert consumer.interest(1) == "notified"
        assert ids(consumer.pull()) == [second.id]


def test_flush_takes_what_credit_allows_and_ends_it(queue: Queue) -> None:
    sent = fill(queue, 5)
    with queue.consumer(jobs=3, renew=False) as consumer:
        assert ids(consumer.flush()) == sent[:3]
        assert (consumer.state, consumer.window.jobs) == ("not_interested", 0)
    with queue.consumer(credit=GrantCredit(9), renew=False) as consumer:
        assert ids(consumer.flush()) == sent
        consumer.settle(ack=sent)
        assert (consumer.state, consumer.pull()) == ("not_interested", [])


def test_drain_goes_on_until_nothing_is_left(queue: Queue) -> None:
    sent = fill(queue, 7)
    with queue.consumer(jobs=2, renew=False) as consumer:
        seen = []
        for jobs in consumer.drain():
            seen += ids(jobs)
            consumer.settle(ack=jobs)
        assert (seen, consumer.state) == (sent, "not_interested")
        assert (queue.send("t")).handed_to == ""


def test_drain_passes_over_many_cancelled_jobs(queue: Queue) -> None:
    sent = fill(queue, 60)
    for id_ in sent[:59]:
        queue.cancel(id_)
    with queue.consumer(jobs=1, renew=False) as consumer:
        assert [ids(jobs) for jobs in consumer.drain()] == [[sent[59]]]


def test_a_browser_flushes_pages(queue: Queue) -> None:
    sent = fill(queue, 5)
    with queue.consumer(jobs=2, mode="browse", renew=False) as browser:
        assert ids(browser.pull()) == sent[:2]
        assert ids(browser.flush()) == sent[2:]
        assert browser.stop() == []
    assert (queue.counts()).ready == 5


# -- connections -----------------------------------------------------------------------------------


def test_a_reply_that_is_lost_loses_no_job(far: Queue, near: Queue, proxy: Proxy) -> None:
    with far.consumer(jobs=3, renew=False) as consumer:
        consumer.settle(pull=True)
        consumer.stop()  # the scripts are known, and nothing is delivered
        consumer._state.window = Window(3)
        sent = fill(near, 5)
        proxy.cut_reply(10)
        with pytest.raises(ConnectionLost):
            consumer.pull()
        assert (near.counts()).held == 3  # it has them, and does not know
        assert ids(consumer.pull(recall=True)) == sent[:3]
        proxy.swallow_reply()
        with pytest.raises(ConnectionLost):
            consumer.settle(ack=sent[:3], pull=True)
        assert ids(consumer.pull(recall=True)) == sent[3:]
        consumer.settle(ack=sent)
        assert consumer.refused == sent[:3]  # the first settle had counted
    assert (near.counts()).meta["acked"] == "5"


def test_a_wait_says_that_wake_ups_may_be_lost(far: Queue, near: Queue, proxy: Proxy) -> None:
    with far.consumer(jobs=3, renew=False) as consumer, Together() as together:
        with monitoring(near.settings.url or "") as monitor:
            waiting = together.start(consumer.wait, 20)
            outside(monitor.wait_for, "BLPOP")
            proxy.cut()
            assert waiting.result(PATIENCE) == []
        sent = fill(near, 1)
        assert [wake.kind for wake in consumer.wait(20)] == ["reconnected"]
        with pytest.raises(ConnectionLost):
            consumer.pull(recall=True)  # its other connection was cut too, unnoticed so far
        assert ids(consumer.pull(recall=True)) == sent


def test_a_wait_while_redis_is_away(far: Queue, proxy: Proxy, near: Queue) -> None:
    with far.consumer(jobs=1, renew=False) as consumer:
        proxy.refuse()
        with pytest.raises(ConnectionLost):
            consumer.wait(20)
        with pytest.raises(ConnectionLost):
            consumer.pull()
        proxy.accept()
        assert [wake.kind for wake in consumer.wait(20)] == ["reconnected"]
        sent = fill(near, 1)
        assert ids(pull(consumer, 1)) == sent


def test_a_lease_is_renewed_beside_the_work(queue: Queue, server: EmbeddedRedis) -> None:
    with monitoring(server.url) as monitor:
        with queue.consumer(lease=1.2) as consumer:
            outside(monitor.wait_for, "EVALSHA", "1200", consumer.name, times=2)


def test_a_renewal_that_is_refused_is_tried_again(queue: Queue, server: EmbeddedRedis) -> None:
    """A damaged queue: the renewer lives on, and a wait does not spin."""
    aside = f"{queue.keys.base}aside"
    with queue.consumer(lease=3) as consumer:
        queue.redis.rename(queue.keys.consumers, aside)
        queue.redis.set(queue.keys.consumers, "not ours")
        with monitoring(server.url) as monitor:
            outside(monitor.wait_for, "EVALSHA", "3000", consumer.name, times=3)
        queue.redis.rename(aside, queue.keys.consumers)
        begun = monotonic()
        assert consumer.wait(0.05) == []
        assert monotonic() - begun >= 0.05
        assert consumer.pull() == []


def test_a_cancelled_job_is_revoked(queue: Queue, consumer: Consumer) -> None:
    handle = queue.send("t")
    job = pull_one(consumer)
    handle.cancel()
    (wake,) = consumer.wait(10)
    assert (wake.kind, wake.id, consumer.held) == ("revoked", job.id, 0)
    assert not consumer.ack(job)
    assert consumer.refused == [job.id]


def test_closing_over_a_cut_connection(far: Queue, near: Queue, proxy: Proxy) -> None:
    sent = fill(near, 1)
    with far.consumer(jobs=1, renew=False) as consumer:
        assert ids(consumer.pull()) == sent
        proxy.cut()
    assert (near.counts()).ready == 1
