"""Artemis's windows."""

from tests.support.queue_fixture import QueueFixture, every_kind, ids


@every_kind
def test_AWI_01_consumers_without_a_window_keep_nothing(q: QueueFixture, kind: str) -> None:
    """Q-21, A-33: each has looked once; the one that asks gets it."""
    consumers = [q.join(0) for _ in range(5)]
    for consumer in consumers:
        consumer.interest(1)
        assert consumer.pull() == []
        consumer.interest(0)
    assert q.put("A").handed_to == ""
    third = consumers[2]
    third.interest(1)
    assert ids(third.pull()) == ["A"]


@every_kind
def test_AWI_03_an_idle_consumer_with_a_window_of_one_keeps_one(q: QueueFixture, kind: str) -> None:
    """A-33."""
    idle, other = q.join(1), q.join(1)
    for i in range(30):
        q.put(f"{i:02}")
    seen = []
    jobs = other.pull(recall=True)
    while jobs:
        seen += ids(jobs)
        jobs = other.settle(ack=jobs, pull=True)
    assert len(seen) == 29
    assert len(q.look().held[idle.name]) == 1


@every_kind
def test_AWI_04_an_idle_consumer_without_a_window_keeps_none(q: QueueFixture, kind: str) -> None:
    """A-33."""
    idle, other = q.join(0), q.join(0)
    names = [f"{i:02}" for i in range(30)]
    q.put(*names)
    seen = []
    for _ in names:
        other.interest(1)
        jobs = other.pull()
        seen += ids(jobs)
        other.interest(0)
        other.settle(ack=jobs)
    assert seen == names
    assert idle.name not in q.look().held
