# Generated from tests/client/_async/test_transactions.py (`make generate`): do not edit.
"""Transactions: several enqueues and settles of one queue as one step, or not at all."""

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.errors import (
    ConfigError,
    LifecycleError,
    NotEncodable,
    RegistrationLost,
    TransactionRolledBack,
)
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.tasks.unique import Unique
from tests.support import invariants
from tests.support.both import end_lease, move_time
from tests.support.proxy import Proxy
from tests.support.pulling import pull, pull_one
from tests.support.snapshot import Snapshot, take_snapshot


def look(queue: Queue) -> Snapshot:
    with redis.Redis.from_url(queue.settings.url or "") as client:
        return take_snapshot(client, queue.keys)


def ready(queue: Queue) -> list[str]:
    """The ids of all jobs that wait, in order."""
    with queue.consumer(mode="browse", jobs=500, renew=False) as browser:
        return [job.id for job in browser.pull()]


def test_nothing_is_sent_before_the_end(queue: Queue) -> None:
    """Q-73, A-12."""
    with queue.transaction() as tx:
        first = tx.enqueue("t", 1)
        second = tx.send("t", [2], None, Options(id="second", priority=9))
        tx.send("t", [3], None, Options(id="third", delay_ms=60_000))
        assert (queue.counts()).ready == 0
        assert "3 enqueues and 0 settles" in repr(tx)
    assert ready(queue) == ["second", first.id]
    assert first.state() is JobState.READY
    assert (queue.counts()).scheduled == 1
    assert first.created and second.created


def test_what_raises_in_it_rolls_it_back(queue: Queue, consumer: Consumer) -> None:
    queue.send("t", [], None, Options(id="a"))
    job = pull_one(consumer)
    with pytest.raises(ZeroDivisionError):
        with queue.transaction(consumer) as tx:
            tx.ack(job)
            tx.enqueue("t", 1 / 0)
    assert ready(queue) == []
    assert consumer.held == 1 and consumer.ack(job)
    with pytest.raises(LifecycleError):
        tx.enqueue("t")
    with pytest.raises(LifecycleError):
        tx.commit()


def test_an_ack_and_what_follows_it_are_one_step(queue: Queue, consumer: Consumer) -> None:
    queue.send("t", [], None, Options(id="a"))
    job = pull_one(consumer)
    with queue.transaction(consumer) as tx:
        follower = tx.enqueue("t", 2)
        tx.done(job, {"x": 1})
    assert consumer.held == 0 and consumer.refused == []
    assert queue.job("a").result(0) == {"x": 1}
    assert (pull_one(consumer)).id == follower.id
    assert invariants.of_state(look(queue)) == []
    assert [(row["id"], row["outcome"]) for row in (look(queue)).history] == [("a", "ack")]


def test_all_outcomes_in_one_step(queue: Queue, consumer: Consumer) -> None:
    names = ["ack", "done", "retry", "later", "tail", "reject", "release"]
    for name in [*names, "kept"]:
        queue.send("t", [], None, Options(id=name))
    pull(consumer, 8)
    consumer.interest(0)
    with queue.transaction(consumer) as tx:
        tx.release("release")
        tx.reject("reject", "no")
        tx.retry("retry", error={"kind": "exception"})
        tx.retry("later", 60)
        tx.retry("tail", place="tail", charge=False)
        tx.done("done", 7)
        tx.ack("ack")
        new = tx.enqueue("t")
    assert consumer.held == 1
    assert ready(queue) == ["retry", "release", new.id, "tail"]
    for id, state in (
        ("ack", JobState.DONE),
        ("done", JobState.DONE),
        ("reject", JobState.DEAD),
        ("later", JobState.SCHEDULED),
        ("kept", JobState.HELD),
    ):
        assert queue.job(id).state() is state
    assert invariants.of_state(look(queue)) == []


def test_a_job_that_others_have_refuses_all_of_it(queue: Queue, consumer: Consumer) -> None:
    """H-08."""
    for name in ("a", "b"):
        queue.send("t", [], None, Options(id=name))
    pull(consumer, 2)
    consumer.interest(0)
    queue.cancel("b")
    before = look(queue)
    with pytest.raises(TransactionRolledBack, match="does not hold b any more") as caught:
        with queue.transaction(consumer) as tx:
            tx.ack("a", "b")
            tx.enqueue("t")
    assert caught.value.stale == ("b",)
    assert invariants.unchanged(before, look(queue)) == []
    assert consumer.held == 1
    with queue.transaction(consumer) as tx:
        tx.ack("a")
        tx.enqueue("t")
    assert len(ready(queue)) == 1


def test_a_consumer_whose_lease_ended_changes_nothing(queue: Queue, consumer: Consumer) -> None:
    queue.send("t", [], None, Options(id="a"))
    job = pull_one(consumer)
    end_lease(queue)
    with pytest.raises(RegistrationLost):
        with queue.transaction(consumer) as tx:
            tx.ack(job)
            tx.enqueue("t")
    assert ready(queue) == ["a"]


def test_known_ids_are_stored_once(queue: Queue) -> None:
    """A-39."""
    queue.send("t", [1], None, Options(id="a"))
    with queue.transaction() as tx:
        known = tx.send("t", [2], None, Options(id="a"))
        new = tx.send("t", [3], None, Options(id="b"))
        twice = tx.send("t", [3], None, Options(id="b"))
    assert (known.created, new.created, twice.created) == (False, True, False)
    assert ready(queue) == ["a", "b"]


def test_what_it_does_not_take(queue: Queue, consumer: Consumer) -> None:
    with queue.transaction() as tx:
        for settle in (
            lambda: tx.ack("a"),
            lambda: tx.done("a", 1),
            lambda: tx.retry("a"),
            lambda: tx.release("a"),
            lambda: tx.reject("a", "no"),
        ):
            with pytest.raises(ConfigError, match="without a consumer"):
                settle()
        with pytest.raises(ConfigError, match="refused alone"):
            tx.send("t", [], None, Options(immediate=True))
        with pytest.raises(NotEncodable):
            tx.send("t", [b"x"])
    with pytest.raises(ConfigError, match="another queue"):
        queue.at("other").transaction(consumer)
    tx = queue.transaction(consumer)
    tx.ack(*[f"j{n}" for n in range(1000)])
    with pytest.raises(ConfigError, match="more than 1000"):
        tx.ack("more")
    for _ in range(1000):
        tx.enqueue("t")
    with pytest.raises(ConfigError, match="1000 jobs already"):
        tx.enqueue("t")
    tx.rollback()


def test_a_thousand_jobs_in_one_step(queue: Queue, consumer: Consumer) -> None:
    queue.send("t", [], None, Options(id="a"))
    pull_one(consumer)
    with queue.transaction(consumer) as tx:
        tx.ack("a")
        handles = [tx.enqueue("t", n) for n in range(1000)]
    assert (queue.counts()).ready == 1000
    assert ready(queue) == [handle.id for handle in handles[:500]]


def test_jobs_with_terms_take_policies_on(queue: Queue, consumer: Consumer) -> None:
    """A queue takes on what a job of a transaction needs, as with any enqueue."""
    queue.send("t", [], None, Options(id="a"))
    job = pull_one(consumer)
    with queue.transaction(consumer) as tx:
        tx.ack(job)
        tx.send("t", [], None, Options(id="g1", group="g"))
        tx.send("t", [], None, Options(id="g2", group="g"))
    job = pull_one(consumer)
    assert job.id == "g1"
    with queue.transaction(consumer) as tx:
        tx.ack(job)
        tx.send("t", [], None, Options(id="g3", group="g"))
    assert invariants.of_state(look(queue)) == []
    job = pull_one(consumer)
    assert job.id == "g2"


def test_a_job_of_it_expires(queue: Queue) -> None:
    with queue.transaction() as tx:
        tx.send("t", [], None, Options(id="a", ttl=5))
    move_time(queue, 5001)
    with queue.consumer(renew=False) as c:
        assert c.pull() == []


def test_signed_jobs(queue: Queue) -> None:
    settings = Settings(url=queue.settings.url, signing_keys={"k1": "a secret of some length"})
    with Queue(queue.name, settings=settings) as signing:
        with signing.transaction() as tx:
            tx.enqueue("t", 1)
        with signing.consumer(renew=False) as c:
            (job,) = c.pull()
            assert signing.envelope(job).args == [1]


def test_a_reply_that_is_lost_does_it_once(far: Queue, near: Queue, proxy: Proxy) -> None:
    """It is sent again: what was done then is known by its ids."""
    near.send("t", [], None, Options(id="a"))
    with far.consumer(jobs=10, renew=False) as consumer:
        (job,) = consumer.pull()
        with far.transaction() as tx:
            tx.send("t", [], None, Options(id="a"))  # the script is known now
        tx = far.transaction(consumer)
        tx.ack(job)
        new = tx.enqueue("t")
        proxy.swallow_reply()
        tx.commit()
        assert new.created and consumer.held == 0
    assert ready(near) == [new.id]
    assert invariants.of_state(look(near)) == []


def test_in_a_queue_of_selectors(queue: Queue) -> None:
    """What is enqueued goes to who selects it."""
    queue.configure(kind="selectors")
    consumer = queue.consumer(jobs=9, renew=False, select="gpu = 'yes'")
    with consumer:
        queue.send("t", [], None, Options(id="a", labels={"gpu": "yes"}))
        job = pull_one(consumer)
        with queue.transaction(consumer) as tx:
            tx.ack(job)
            tx.send("t", [], None, Options(id="b"))
            tx.send("t", [], None, Options(id="c", labels={"gpu": "yes"}))
        assert (pull_one(consumer)).id == "c"
    assert ready(queue) == ["b", "c"]
    assert invariants.of_state(look(queue)) == []


# -- other queues ----------------------------------------------------------------------------------


def test_jobs_of_other_queues_leave_with_the_same_step(queue: Queue, consumer: Consumer) -> None:
    """Q-73: once, in their order, by way of the outbox."""
    other = queue.at(f"{queue.name}-other")
    queue.send("t", [], None, Options(id="a"))
    job = pull_one(consumer)
    with queue.transaction(consumer) as tx:
        tx.ack(job)
        here = tx.enqueue("t", 1)
        first = tx.at(other).enqueue("t", 2)
        second = tx.at(other).send("t", [3], None, Options(id="second", priority=9))
        assert "3 enqueues and 1 settles" in repr(tx)
    assert (first.queue, second.queue) == (other.name, other.name)
    assert ready(other) == ["second", first.id]
    assert (pull_one(consumer)).id == here.id
    assert queue.forward() == 0
    assert invariants.of_state(look(queue)) == []


def test_a_job_that_merges_elsewhere_goes_on_as_the_other_one(queue: Queue) -> None:
    other = queue.at(f"{queue.name}-other")
    alike = Options(unique=Unique(key="order-7"))
    first = other.send("t", [1], None, alike)
    with queue.transaction() as tx:
        merged = tx.at(other).send("t", [2], None, alike)
    assert merged.id != first.id
    assert merged.state() == "ready"
    assert merged.id == first.id


def test_what_goes_elsewhere_is_not_lost_with_its_client(queue: Queue) -> None:
    """It is in the outbox with the step; any other client sends it, and none twice."""
    other = queue.at(f"{queue.name}-other")
    put = commands.Put("x", b'["t",[]]')
    call = commands.commit(queue.keys, others=[(other.name, put)])
    queue._run(call)  # and its client ends
    assert (queue.counts()).outgoing == 1
    assert ready(other) == []
    queue._run(call)  # it had sent it twice
    assert queue.forward() == 2
    assert ready(other) == ["x"]
    with other.consumer(renew=False) as c:
        assert c.ack((c.pull())[0])
    assert queue.forward() == 0
    assert (queue.counts()).outgoing == 0


def test_a_job_that_its_queue_refuses_keeps_no_other_back(queue: Queue) -> None:
    """Each of a refused batch is sent alone, and only what is refused then stays in the outbox."""
    other = queue.at(f"{queue.name}-other")
    other.configure(kind="ring")
    never = Options(group="g")  # which that kind excludes
    with queue.transaction() as tx:
        tx.at(other).send("t", [1], None, Options(id="first"))
        tx.at(other).send("t", [2], None, never)
        tx.at(other).send("t", [3], None, Options(id="third"))
    assert ready(other) == ["first", "third"]
    assert (queue.counts()).outgoing == 1


def test_what_raises_or_is_refused_sends_nothing_elsewhere(
    queue: Queue, consumer: Consumer
) -> None:
    other = queue.at(f"{queue.name}-other")
    with pytest.raises(ZeroDivisionError):
        with queue.transaction() as tx:
            tx.at(other).enqueue("t", 1 / 0)
    before = look(queue)
    with pytest.raises(TransactionRolledBack):
        with queue.transaction(consumer) as tx:
            tx.ack("never")
            tx.at(other).enqueue("t")
    assert invariants.unchanged(before, look(queue)) == []
    assert ready(other) == []
