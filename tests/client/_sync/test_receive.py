# Generated from tests/client/_async/test_receive.py (`make generate`): do not edit.
"""The next job, waited for: `receive` and iteration, with lost connections, leases and credit."""

from time import monotonic

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConnectionLost, NotRegistered, RegistrationLost
from rqueue.protocol.credit import GrantCredit
from rqueue.tasks.options import Options
from tests.support.both import Together, end_lease, outside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy


def fill(queue: Queue, count: int) -> list[str]:
    return [(queue.send("t", [i])).id for i in range(count)]


def test_jobs_come_one_by_one_in_order(queue: Queue, consumer: Consumer) -> None:
    sent = fill(queue, 3)
    for id_ in sent:
        job = consumer.receive(PATIENCE)
        assert job is not None and job.id == id_
        assert consumer.ack(job)
    assert consumer.receive(0) is None


def test_nothing_comes_within_the_time(consumer: Consumer) -> None:
    begun = monotonic()
    assert consumer.receive(0.05) is None
    assert consumer.receive(0) is None
    assert 0.05 <= monotonic() - begun < 20


def test_a_handed_over_job_is_seen_without_waiting(queue: Queue, consumer: Consumer) -> None:
    assert consumer.receive(0) is None
    (sent,) = fill(queue, 1)
    job = consumer.receive(0)
    assert job is not None and job.id == sent


def test_a_job_ends_the_wait(queue: Queue, server: EmbeddedRedis) -> None:
    with queue.consumer(jobs=2, renew=False) as consumer, Together() as together:
        with monitoring(server.url) as monitor:
            receiving = together.start(consumer.receive, 20)
            outside(monitor.wait_for, "BLPOP", queue.keys.wake(consumer.name))
            (sent,) = fill(queue, 1)
            job = receiving.result(PATIENCE)
            assert job is not None and job.id == sent


def test_a_due_job_ends_the_wait(queue: Queue, consumer: Consumer) -> None:
    assert consumer.receive(0) is None
    sent = queue.send("t", options=Options(delay_ms=50))
    job = consumer.receive(PATIENCE)
    assert job is not None and job.id == sent.id


def test_iteration_goes_on_until_the_credit_is_given_up(queue: Queue, consumer: Consumer) -> None:
    sent, seen = fill(queue, 5), []
    for job in consumer:
        seen.append(job.id)
        consumer.ack(job)
        if len(seen) == 2:
            seen += [job.id for job in consumer.stop()]
    assert seen == sent
    assert consumer.receive() is None


def test_iteration_ends_when_it_is_closed(queue: Queue) -> None:
    fill(queue, 2)
    consumer = queue.consumer(renew=False).register()
    for job in consumer:
        consumer.ack(job)
        consumer.close()
    with pytest.raises(NotRegistered):
        consumer.receive(1)


def test_a_grant_that_is_used_up_is_the_end(queue: Queue) -> None:
    sent = fill(queue, 3)
    with queue.consumer(credit=GrantCredit(2), renew=False) as consumer:
        assert [job.id for job in consumer if consumer.ack(job)] == sent[:2]
        consumer.grant(5)
        job = consumer.receive(PATIENCE)
        assert job is not None and job.id == sent[2]


def test_a_job_that_is_cancelled_before_it_was_given_out_is_not(queue: Queue) -> None:
    sent = fill(queue, 3)
    with queue.consumer(jobs=3, renew=False) as consumer:
        assert consumer.receive(PATIENCE)
        queue.cancel(sent[1])
        consumer.wait(PATIENCE)
        job = consumer.receive(PATIENCE)
        assert job is not None and job.id == sent[2]


def test_what_was_not_given_out_comes_with_the_next_pull(queue: Queue, consumer: Consumer) -> None:
    sent = fill(queue, 3)
    assert consumer.receive(PATIENCE)
    assert [job.id for job in consumer.pull()] == sent[1:]


def test_a_lost_connection_is_made_good(far: Queue, near: Queue, proxy: Proxy) -> None:
    """C-15."""
    with far.consumer(jobs=9, renew=False) as consumer:
        seen = []
        for loss in (proxy.swallow_reply, lambda: proxy.cut_reply(10), proxy.cut) * 3:
            assert consumer.receive(0) is None
            sent = fill(near, 3)
            loss()
            for id_ in sent:
                job = consumer.receive(PATIENCE)
                assert job is not None and job.id == id_
                seen.append(job)
            while consumer.held:
                try:
                    consumer.settle(ack=[job.id for job in seen])
                except ConnectionLost:
                    continue
            seen.clear()
    assert (near.counts()).held == (near.counts()).ready == 0


def test_an_outage_is_said_and_survived(far: Queue, near: Queue, proxy: Proxy) -> None:
    with far.consumer(jobs=9, renew=False) as consumer:
        assert consumer.receive(0) is None
        proxy.refuse()
        with pytest.raises(ConnectionLost):
            consumer.receive(5)
        proxy.accept()
        (sent,) = fill(near, 1)
        job = consumer.receive(PATIENCE)
        assert job is not None and job.id == sent


# -- a consumer that is late -----------------------------------------------------------------------


def test_a_consumer_whose_lease_ended_comes_back(queue: Queue) -> None:
    sent = fill(queue, 3)
    with queue.consumer(jobs=3, renew=False) as consumer:
        name, job = consumer.name, consumer.receive(PATIENCE)
        assert job is not None
        end_lease(queue)
        with pytest.raises(RegistrationLost, match="its lease ended"):
            consumer.ack(job)
        again = consumer.receive(PATIENCE)
        assert again is not None and again.id == sent[0]
        assert (consumer.rejoined, consumer.name != name, consumer.held) == (1, True, 3)
        assert consumer.ack(again)


def test_one_that_waits_hears_that_its_lease_ended(
    queue: Queue, server: EmbeddedRedis, caplog: pytest.LogCaptureFixture
) -> None:
    # long enough that it does not end by itself before the wait begins, on a busy machine
    with queue.consumer(lease=3) as consumer, Together() as together:
        with monitoring(server.url) as monitor:
            receiving = together.start(consumer.receive, 20)
            outside(monitor.wait_for, "BLPOP", queue.keys.wake(consumer.name))
            end_lease(queue)
            outside(monitor.wait_for, "BLPOP", queue.keys.base)
            (sent,) = fill(queue, 1)
            job = receiving.result(PATIENCE)
            assert job is not None and job.id == sent
            assert consumer.rejoined >= 1
    assert "is no longer registered" in caplog.text


def test_a_wait_says_that_the_lease_ended(queue: Queue, server: EmbeddedRedis) -> None:
    # long enough that it does not end by itself before the wait begins, on a busy machine
    with queue.consumer(lease=3) as consumer, Together() as together:
        with monitoring(server.url) as monitor:
            waiting = together.start(consumer.wait, 20)
            outside(monitor.wait_for, "BLPOP", queue.keys.wake(consumer.name))
            end_lease(queue)
            with pytest.raises(RegistrationLost, match="lease ended"):
                waiting.result(PATIENCE)
            consumer.rejoin()
            assert consumer.pull() == []


def test_more_says_that_work_waits(queue: Queue) -> None:
    """`state` is the list it is in, `more` whether it is to pull."""
    with queue.consumer(jobs=1, renew=False) as consumer:
        assert not consumer.more
        fill(queue, 2)
        (job,) = consumer.pull()
        assert (consumer.more, consumer.state) == (False, "not_interested")
        consumer.ack(job)
        consumer.interest(1)
        assert (consumer.more, consumer.state) == (True, "notified")
