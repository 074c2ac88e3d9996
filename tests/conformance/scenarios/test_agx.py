"""Artemis's groups and priorities of consumers."""

from collections import Counter

from tests.support.queue_fixture import QueueFixture, every_kind, ids


def test_AGX_06_the_next_of_a_group_waits_and_others_go_on(q: QueueFixture) -> None:
    """X-14: the holder of the first one is busy."""
    owner, free = q.join(1), q.join(1)
    assert q.put("a1", group="a").handed_to == owner.name
    owner.wait(1)
    assert q.put("a2", group="a").handed_to == ""
    assert free.pull() == []
    assert q.put("b1", group="b").handed_to == free.name
    assert q.queue.counts().blocked == 1
    assert ids(owner.settle(ack=["a1"], pull=True)) == ["a2"]


@every_kind
def test_AGX_14_the_consumer_of_the_highest_priority_gets_all(q: QueueFixture, kind: str) -> None:
    """A-27: while it has credit."""
    consumers = [q.join(200, priority=priority) for priority in (3, 2, 1)]
    for i in range(100):
        q.put(f"{i:02}")
    taken: list[list[str]] = [[], [], []]
    for _ in range(3):
        for mine, consumer in zip(taken, consumers, strict=True):
            mine += ids(consumer.pull())
    assert taken == [[f"{i:02}" for i in range(100)], [], []]


@every_kind
def test_AGX_15_consumers_of_equal_priority_take_turns_and_lower_ones_wait(
    q: QueueFixture, kind: str
) -> None:
    """A-27: until those have no credit left."""
    consumers = {c.name: c for c in (q.join(1, priority=p) for p in (3, 3, 1))}
    got: Counter[str] = Counter()
    for i in range(100):
        name = q.put(f"{i:02}").handed_to
        got[name] += 1
        consumers[name].ack(f"{i:02}")
        consumers[name].pull()
    first, second, low = consumers
    assert (got[first], got[second], got[low]) == (50, 50, 0)
    assert [q.put(id).handed_to for id in "ABC"] == [first, second, low]
