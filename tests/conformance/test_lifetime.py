"""Queues that go by themselves when their last consumer has left."""

from time import monotonic
from typing import Any

import pytest

from rqueue.errors import ConfigError, ConsumerGone
from rqueue.protocol import commands
from rqueue.testing import housekeeping, move_time
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, every_place, ids

HOUR = 3_600_000


def ends(q: QueueFixture) -> bool:
    """Whether all that is there of the queue ends, but what ends anyway: at the same time."""
    redis, base = q.queue.redis, q.queue.keys.base
    keys = [key for key in redis.scan_iter(base + "*", count=10_000) if b":ended" not in key]
    lasting = [redis.execute_command("PTTL", key) for key in keys]
    assert all(ms > 0 for ms in lasting) or all(ms < 0 for ms in lasting)
    return lasting != [] and lasting[0] > 0


def goes(q: QueueFixture) -> None:
    """Redis ends keys when it is asked for them, or looks by itself."""
    until = monotonic() + PATIENCE
    while q.queue.redis.exists(q.queue.keys.meta):
        assert monotonic() < until


def test_QSQ_01_a_queue_goes_with_its_last_consumer(q: QueueFixture) -> None:
    """Q-60: jobs and all, where that is asked for; a browser is none."""
    q.queue.configure(delete_if="always", delete_after=3600)
    q.put("A", "B", "C", priority=9)
    q.put("D", delay_ms=HOUR)
    one, two = q.join(jobs=1), q.join(jobs=1)
    one.pull()
    browser = q.join(mode="browse")
    two.close()
    assert not ends(q)
    browser.close()
    one.close()
    assert ends(q)
    q.queue.configure(delete_after=0)
    q.join().close()
    goes(q)
    assert q.queue.counts().ready == 0
    q.put("A")
    assert q.look().meta["v"] == "1"


def test_only_where_it_is_empty(q: QueueFixture) -> None:
    """A-37: a delayed job is one."""
    q.queue.configure(delete_if="empty", delete_after=3600)
    q.put("A", delay_ms=HOUR)
    q.join().close()
    assert not ends(q)
    q.queue.cancel("A")
    q.join().close()
    assert ends(q)


def test_AMI_07_one_that_never_had_a_consumer_stays(q: QueueFixture) -> None:
    """A-37, and one that does not go by itself."""
    q.queue.configure(delete_if="empty")
    q.join(mode="browse").close()
    assert not ends(q)
    q.queue.configure(delete_if="never")
    q.join().close()
    assert not ends(q)


def test_who_gets_a_job_is_no_consumer_that_leaves(q: QueueFixture) -> None:
    """Q-25: the queue goes on as it was, be it that it goes or that it stays."""
    q.queue.configure(delete_if="always", delete_after=3600)
    q.put("A", "B", "C")
    assert ids([q.queue.get()]) == ["A"]
    assert not ends(q)
    q.join().close()
    assert ids([q.queue.get()]) == ["B"]
    assert ends(q)
    first, second = (q.queue.consumer(mode="no_ack", slots=0, renew=False) for _ in range(2))
    with first, second:
        assert not ends(q), "what they take is not to end under them"
    assert ends(q)
    with q.queue.consumer(slots=0, renew=False):
        q.put("D")  # it keeps the queue
    assert not ends(q)
    assert ids([q.queue.get()]) == ["C"]
    assert not ends(q)


@pytest.mark.parametrize("comes", ["job", "consumer", "configure", "promote"])
def test_what_comes_in_time_keeps_it(q: QueueFixture, comes: str) -> None:
    q.queue.configure(delete_if="always", delete_after=3600)
    q.put("A", "B")
    q.put("S", delay_ms=HOUR)
    q.join().close()
    assert ends(q)
    if comes == "job":
        q.put("C")
    elif comes == "consumer":
        q.join()
    elif comes == "promote":
        q.queue.promote("S")
    else:
        q.queue.configure(keep=60)
        q.queue.configure(delete_if="never")
    assert not ends(q)
    assert q.queue.counts().ready == 2 + (comes in ("job", "promote"))


def test_the_end_of_the_last_lease_is_the_last_one_s(q: QueueFixture) -> None:
    q.queue.configure(delete_if="always", delete_after=3600)
    q.put("A")
    consumer = q.join()
    consumer.pull()
    move_time(q.queue, 31_000)
    assert not ends(q) and consumer.name
    housekeeping(q.queue)
    assert ends(q)


def test_a_later_queue_fences_the_consumers_of_the_former(q: QueueFixture) -> None:
    """H-08: its terms begin at the time of day."""
    q.queue.configure(delete_if="always")
    zombie = q.join(name="worker-1")
    term = int(zombie._state.term)
    assert term > 1_600_000_000_000
    call = commands.unregister(q.queue.keys, "worker-1", str(term))
    execute(q.queue.redis, call)
    goes(q)
    q.put("A")
    successor = q.join(name="worker-1")
    assert ids(successor.pull()) == ["A"]
    for declared in (False, True):
        if declared:
            q.queue.configure(delete_if="always")
        late = commands.settle(q.queue.keys, "worker-1", str(term), None, ack=["A"])
        with pytest.raises(ConsumerGone):
            execute(q.queue.redis, late)
    successor.settle(ack=["A"])
    assert successor.refused == []


def test_an_alternate_queue_stays(q: QueueFixture) -> None:
    """Q-66."""
    source = q.queue.at(q.queue.name + "/source")
    q.queue.configure(delete_if="always", delete_after=3600)
    source.configure(dead_to=q.queue.name)
    q.join().close()
    assert not ends(q)
    with pytest.raises(ConfigError, match="delete_if"):
        q.queue.configure(delete_if="sometimes")  # type: ignore[arg-type]


@every_place
@pytest.mark.parametrize("end", ["cancel", "expire", "purge", "get", "ack"])
def test_an_empty_queue_goes_with_its_last_job_too(q: QueueFixture, end: str) -> None:
    """A-37: the last consumer left while that job waited."""
    q.queue.configure(delete_if="empty", delete_after=3600)
    q.put("a")
    q.own(1).close()
    assert not ends(q)
    if end == "cancel":
        q.queue.job("a").cancel()
    elif end == "expire":
        q.queue.expire("a")
    elif end == "purge":
        assert q.purge() == 1
    elif end == "get":
        assert q.queue.get() is not None
    else:
        consumer = q.own(1)
        consumer.ack(consumer.pull()[0])
        consumer.close()
    assert ends(q)


@every_place
def test_elements_of_ended_jobs_are_no_jobs(q: QueueFixture) -> None:
    """Q-09: they stand in their lists until a pull passes them."""
    q.queue.configure(delete_if="empty", delete_after=3600)
    q.put("a")
    q.queue.job("a").cancel()
    q.own(1).close()
    assert ends(q)


@every_place
@pytest.mark.parametrize(
    ("before", "after"), [({}, {"sticky": 16}), ({"dead_letters": False}, {"kind": "plain"})]
)
def test_nor_do_they_keep_a_queue_from_another_kind(
    q: QueueFixture, before: dict[str, Any], after: dict[str, Any]
) -> None:
    if before:
        q.queue.configure(**before)
    q.put("a", "b")
    q.queue.job("a").cancel()
    q.queue.job("b").cancel()
    q.queue.configure(**after)
    q.put("c")
    assert ids(q.own(9).pull()) == ["c"]
