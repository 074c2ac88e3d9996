"""Qpid's shared groups, `groups` in rqueue: a group is its consumer's while a job of it is held."""

from rqueue.protocol.policies.sticky import bucket_of
from tests.support.queue_fixture import QueueFixture, ids, one_kind


def put(q: QueueFixture, *names: str) -> None:
    """Jobs named "<number><group>"."""
    for name in names:
        q.put(name, group=name[1:])


def test_QGR_01_a_group_belongs_to_the_consumer_that_holds_its_job(q: QueueFixture) -> None:
    """Q-65: others pass over it."""
    put(q, "1one", "2two", "3one", "4two")
    first, second = q.join(1), q.join(1)
    assert ids(first.pull()) == ["1one"]
    assert ids(second.pull()) == ["2two"]
    assert ids(second.settle(ack=["2two"], pull=True)) == ["4two"]
    assert ids(first.settle(ack=["1one"], pull=True)) == ["3one"]
    first.ack("3one")
    second.ack("4two")
    counts = q.queue.counts()
    assert (counts.ready, counts.blocked, counts.held) == (0, 0, 0)


def test_QGR_02_a_consumer_that_leaves_frees_its_group(q: QueueFixture) -> None:
    """a) Q-65, Q-58: its job is settled; the other one goes back in the queue."""
    put(q, "1one", "2one", "3two", "4one")
    first, second = q.join(1), q.join(1)
    assert ids(first.pull()) == ["1one"]
    assert ids(second.pull()) == ["3two"]
    assert second.settle(ack=["3two"], pull=True) == []
    first.ack("1one")
    first.close()
    assert ids(second.pull()) == ["2one"]
    assert ids(second.settle(ack=["2one"], pull=True)) == ["4one"]
    assert second.settle(ack=["4one"], pull=True) == []


def test_QGR_02_a_consumer_that_leaves_with_its_job_frees_its_group(q: QueueFixture) -> None:
    """b) Q-65, Q-58: the job comes again, and before the others of the group."""
    put(q, "1one", "2one", "3two", "4one")
    first, second = q.join(1), q.join(1)
    assert ids(first.pull()) == ["1one"]
    assert ids(second.pull()) == ["3two"]
    first.close()
    seen = []
    last = "3two"
    while jobs := second.settle(ack=[last], pull=True):
        (last,) = ids(jobs)
        seen.append(last)
    assert seen == ["1one", "2one", "4one"]


def test_QGR_04_a_group_is_nobody_s_once_none_of_it_is_held(q: QueueFixture) -> None:
    """Q-65."""
    put(q, "1one", "2two", "3three", "4one")
    first, second = q.join(1), q.join(1)
    assert ids(first.pull()) == ["1one"]
    assert ids(second.pull()) == ["2two"]
    assert ids(first.settle(ack=["1one"], pull=True)) == ["3three"]
    assert ids(second.settle(ack=["2two"], pull=True)) == ["4one"]


@one_kind
def test_QGR_06_groups_that_collide_go_to_one_consumer_and_others_to_any(q: QueueFixture) -> None:
    """Q-64: no owner that is busy stops what is another one's, or nobody's."""
    q.queue.configure(sticky=2)
    one = next(name for name in "abcdef" if bucket_of(name, 2) == 0)
    other, third = [name for name in "abcdefghijkl" if bucket_of(name, 2) == 1][:2]
    for name in (other, third, one):
        for i in "12":
            q.put(f"{i}{name}", group=name)
    q.put("x", "y")
    busy, free = q.join(1), q.join(1)
    assert ids(busy.pull()) == [f"1{other}"]
    seen = []
    while jobs := free.pull():
        seen += ids(jobs)
        free.ack(seen[-1])
    assert seen == [f"1{one}", "x", "y", f"2{one}"] or seen == [f"1{one}", f"2{one}", "x", "y"]
    seen = [f"1{other}"]
    while jobs := busy.settle(ack=seen[-1:], pull=True):
        seen += ids(jobs)
    assert seen == [f"1{other}", f"2{other}", f"1{third}", f"2{third}"]


def test_QGR_08_a_browser_takes_no_heed_of_groups(q: QueueFixture) -> None:
    """Q-65: it is shown what waits behind the job that another consumer holds."""
    put(q, "1one", "2one", "3one", "4two")
    owner = q.join(1)
    assert ids(owner.pull()) == ["1one"]
    assert sorted(q.listed()) == ["2one", "3one", "4two"]
    owner.release("1one")
    assert sorted(q.listed()) == ["1one", "2one", "3one", "4two"]
