"""Where two features meet: what each of them promises holds also beside the other."""

from collections.abc import Iterator

import pytest

from rqueue import Concurrency
from rqueue.client._sync.queue import Queue
from rqueue.testing import housekeeping, move_time
from tests.support.patience import PATIENCE
from tests.support.producers import KINDS, Producers, producing
from tests.support.queue_fixture import QueueFixture, ids, on_real_servers

MINUTE = 60_000

pytestmark = on_real_servers


@pytest.fixture
def other(q: QueueFixture) -> Iterator[QueueFixture]:
    """Another queue, which is there."""
    with Queue(q.queue.name + "/other", redis=q.queue.redis) as queue:
        queue.configure(max_deliveries=10)
        found = QueueFixture(queue)
        yield found
        found.close()


@pytest.fixture
def producers(q: QueueFixture) -> Iterator[Producers]:
    with producing(KINDS[0], q) as made:
        yield made


def test_a_job_behind_others_of_its_group_expires_there(q: QueueFixture) -> None:
    """Q-62, Q-65: the one behind it is next."""
    q.queue.configure(kind="groups")
    q.put("1", group="a")
    q.put("2", group="a", ttl=1.0)
    q.put("3", group="a")
    consumer = q.join(5)
    assert ids(consumer.pull()) == ["1"]
    move_time(q.queue, 2000)
    assert ids(consumer.settle(ack=["1"], pull=True)) == ["3"]


@pytest.mark.parametrize("parent", ["done", "cancelled"])
def test_a_job_whose_parent_has_ended_expires_as_any_other(q: QueueFixture, parent: str) -> None:
    """Q-62: of one that ends at once, since its parent failed, no time to live is kept; one that
    comes at once is noted where it waits."""
    q.put("parent")
    if parent == "done":
        consumer = q.join(1)
        consumer.settle(ack=consumer.pull())
        consumer.close()
    else:
        q.queue.cancel("parent")
    child = q.put("child", after=["parent"], ttl=5.0)
    assert child.state() == ("scheduled" if parent == "done" else "cancelled")
    assert q.look().scores("expiring") == {}
    taker = q.join(1)
    assert ids(taker.pull()) == (["child"] if parent == "done" else [])


def test_an_owner_leaves_while_its_group_waits_to_be_tried_again(q: QueueFixture) -> None:
    """Q-64, Q-65, A-21: another one gets the group, in its order, when the first job is due."""
    q.queue.configure(sticky=16)
    owner = q.join(1)
    q.put("1", "2", group="a")
    assert ids(owner.pull(recall=True)) == ["1"]
    owner.retry("1", delay=5)
    heir = q.join(1)
    owner.close()
    assert heir.pull() == []
    move_time(q.queue, 6000)
    assert ids(heir.pull()) == ["1"]
    assert ids(heir.settle(ack=["1"], pull=True)) == ["2"]


def test_a_group_whose_first_job_waits_is_promoted_with_it(q: QueueFixture) -> None:
    """A-09, Q-65."""
    q.queue.configure(kind="groups")
    q.put("1", "2", group="a")
    q.put("other", group="b")
    consumer = q.join(5)
    assert ids(consumer.pull()) == ["1", "other"]
    consumer.retry("1", delay=60)
    assert consumer.pull() == []
    assert q.queue.promote("1") == 1
    assert ids(consumer.pull()) == ["1"]
    assert ids(consumer.settle(ack=["1"], pull=True)) == ["2"]


def test_a_rebalance_leaves_a_group_with_one_consumer(q: QueueFixture) -> None:
    """A-26: the owner that holds a job of it has the turn until that is settled."""
    q.queue.configure(sticky=16, rebalance=True)
    one = q.join(1)
    q.put("1", "2", group="a")
    assert ids(one.pull(recall=True)) == ["1"]
    two = q.join(1)
    assert two.pull() == []
    got = ids(one.settle(ack=["1"], pull=True)) + ids(two.pull())
    assert got == ["2"]


def test_values_of_a_key_meet_in_a_pause(q: QueueFixture) -> None:
    """A-31, A-32: a value that falls due in the pause and one that comes there leave one."""
    q.queue.configure(kind="last_value")
    q.put("k1", key="k")
    q.put("k2", key="k", delay_ms=1000)
    q.queue.pause()
    move_time(q.queue, 2000)
    consumer = q.join(5)
    assert consumer.pull() == []
    q.put("k3", key="k")
    q.queue.resume()
    assert len(consumer.pull()) == 1
    assert q.queue.counts().ready == 0


def test_a_browser_goes_on_behind_what_a_newer_value_displaced(q: QueueFixture) -> None:
    """Q-15: it is shown each value that waits, once."""
    q.queue.configure(kind="last_value")
    for id in ("k1", "m1", "n1"):
        q.put(id, key=id[0])
    browser = q.join(1, mode="browse")
    assert ids(browser.pull()) == ["k1"]
    q.put("m2", key="m")
    q.put("k2", key="k")
    seen = []
    while page := browser.pull():
        seen += ids(page)
    assert seen == ["n1", "m2", "k2"]


def test_expired_jobs_wait_for_room_where_they_go(q: QueueFixture, other: QueueFixture) -> None:
    """Q-66, Q-67: each comes there once, none is lost."""
    other.queue.configure(max_jobs=1)
    other.put("there")
    q.queue.configure(expired_to=other.queue.name)
    q.put("1", "2", ttl=1.0)
    move_time(q.queue, 2000)
    got = []
    for _ in range(6):
        housekeeping(q.queue)
        q.queue.forward()
        if job := other.queue.get():
            got.append(job.id)
        move_time(q.queue, MINUTE)
    assert sorted(got) == ["1", "2", "there"]


def test_dead_letters_displace_in_a_ring(q: QueueFixture, other: QueueFixture) -> None:
    """Q-66, X-08."""
    other.queue.configure(ring=1)
    q.queue.configure(dead_to=other.queue.name)
    q.put("1", "2")
    consumer = q.join(2)
    for job in consumer.pull():
        consumer.reject(job, "no")
    q.queue.forward()
    assert other.listed() == ["2"]


@pytest.mark.parametrize("way", ["purge", "move", "no limit"])
def test_a_producer_that_waits_has_room_by_any_way(
    q: QueueFixture, producers: Producers, way: str
) -> None:
    """Q-67: jobs end, or go elsewhere, or the limit does; also in a pause."""
    q.queue.configure(max_jobs=1, overflow="block")
    target = q.queue.at(q.queue.name + "/target")
    target.configure(max_deliveries=2)
    q.put("1")
    q.queue.pause()
    blocked = producers.enqueue("2", max_wait=PATIENCE)
    producers.wait_blocked()
    if way == "purge":
        q.purge()
    elif way == "move":
        assert q.queue.move_all(target.name) == 1
    else:
        q.queue.configure(max_jobs=0)
    assert blocked.result(PATIENCE) == "2"


def test_a_stand_by_without_credit_takes_over_and_waits(q: QueueFixture) -> None:
    """Q-68: it is live, and nobody passes it; with credit it takes the first job."""
    q.queue.configure(live_consumers=1)
    live, next_, last = q.join(1), q.join(0), q.join(1)
    q.put("1", "2")
    live.close()
    assert last.pull() == []
    next_.interest(1)
    assert ids(next_.pull()) == ["1"]
    next_.close()
    assert ids(last.pull()) == ["1"]


def test_a_job_of_a_limit_that_waits_to_be_tried_again_has_no_permit(q: QueueFixture) -> None:
    """Another one runs meanwhile; what is due waits for it."""
    q.put("1", "2", "3", limit=Concurrency(1, name="x"))
    consumer = q.join(5)
    assert ids(consumer.pull()) == ["1"]
    consumer.retry("1", delay=5)
    assert ids(consumer.pull()) == ["2"]
    move_time(q.queue, 6000)
    assert consumer.pull() == []
    assert ids(consumer.settle(ack=["2"], pull=True)) == ["1"]
    q.queue.cancel("1")
    assert ids(consumer.pull()) == ["3"]
