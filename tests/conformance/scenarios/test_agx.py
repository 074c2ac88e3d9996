"""Artemis's groups and priorities of consumers."""

from collections import Counter

from rqueue.client._sync.consumer import Consumer
from rqueue.protocol.policies.sticky import bucket_of
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, every_kind, ids, one_kind


def test_AGX_06_the_next_of_a_group_waits_and_others_go_on(q: QueueFixture) -> None:
    """X-14: the holder of the first one is busy."""
    owner, free = q.join(1), q.join(1)
    assert q.put("a1", group="a").handed_to == owner.name
    owner.wait(PATIENCE)
    assert q.put("a2", group="a").handed_to == ""
    assert free.pull() == []
    assert q.put("b1", group="b").handed_to == free.name
    assert q.queue.counts().blocked == 1
    assert ids(owner.settle(ack=["a1"], pull=True)) == ["a2"]


def names_by_bucket(buckets: int) -> list[list[str]]:
    """Names of groups, by their buckets."""
    found: list[list[str]] = [[] for _ in range(buckets)]
    for name in "ABCDEFGHIJKLMNOP":
        found[bucket_of(name, buckets)].append(name)
    return found


def run_out(consumers: list[Consumer]) -> list[list[str]]:
    """Each takes and acks in turn, until nothing is left; what each got, in its order."""
    got: list[list[str]] = [[] for _ in consumers]
    busy = True
    while busy:
        busy = False
        for mine, consumer in zip(got, consumers, strict=True):
            for job in consumer.pull():
                busy = True
                mine.append(job.id)
                consumer.ack(job.id)
    return got


def test_AGX_01_one_group_is_one_consumer_s(q: QueueFixture) -> None:
    """A-26."""
    q.queue.configure(sticky=1024)
    for i in range(40):
        q.put(f"{i:02}", group="g")
    first, *others = run_out([q.join(1), q.join(1), q.join(1)])
    assert (first, others) == ([f"{i:02}" for i in range(40)], [[], []])


def test_AGX_02_two_groups_are_two_consumers_(q: QueueFixture) -> None:
    """A-26: each in its order."""
    q.queue.configure(sticky=1024)
    for i in range(20):
        q.put(f"{i:02}", group=f"g{i % 2}")
    consumers = [q.join(1), q.join(1)]
    assert [ids(consumer.pull()) for consumer in consumers] == [["00"], ["01"]]
    for number, consumer in enumerate(consumers):
        seen = [f"{number:02}"]
        while jobs := consumer.settle(ack=seen[-1:], pull=True):
            seen += ids(jobs)
        assert seen == [f"{i:02}" for i in range(20) if i % 2 == number]


@one_kind
def test_AGX_05_ten_groups_are_shared_by_three(q: QueueFixture) -> None:
    """A-26: no consumer has all, none has none."""
    q.queue.configure(sticky=1024)
    for group in range(10):
        for i in range(3):
            q.put(f"{group}.{i}", group=f"g{group}")
    got = run_out([q.join(100), q.join(100), q.join(100)])
    assert sum(map(len, got)) == 30 and min(map(len, got)) > 0
    groups = [{id.partition(".")[0] for id in mine} for mine in got]
    assert sum(map(len, groups)) == 10


@one_kind
def test_AGX_08_groups_of_a_bucket_have_one_owner(q: QueueFixture) -> None:
    """A-26: A and C are in one bucket, B in the other; nothing is left for the third consumer.
    Without groups all take turns."""
    q.queue.configure(sticky=2)
    (a, c, *_), (b, *_) = names_by_bucket(2)
    for name in (a, b, c):
        for i in range(10):
            q.put(f"{name}{i}", group=name)
    one, two, three = q.join(1), q.join(1), q.join(1)
    assert (ids(one.pull()), ids(two.pull()), three.pull()) == ([f"{a}0"], [f"{b}0"], [])
    for consumer, names in ((one, a + c), (two, b)):
        seen = [f"{names[0]}0"]
        while jobs := consumer.settle(ack=seen[-1:], pull=True):
            seen += ids(jobs)
        assert seen == [f"{name}{i}" for name in names for i in range(10)]
    assert three.pull() == []
    plain = q.queue.at(q.queue.name + "-plain")
    for i in range(30):
        plain.send("t", options=Options(id=f"{i:02}"))
    consumers = [plain.consumer(jobs=1, renew=False).register() for _ in range(3)]
    assert [len(mine) for mine in run_out(consumers)] == [10, 10, 10]
    for consumer in consumers:
        consumer.close()


@one_kind
def test_AGX_09_groups_are_shared_out_anew_when_a_consumer_joins(q: QueueFixture) -> None:
    """A-26."""
    q.queue.configure(sticky=1024, rebalance=True)

    def owners(consumers: list[Consumer]) -> dict[str, int]:
        found: dict[str, int] = {}
        for i in range(30):
            id = f"{len(consumers)}.{i}"
            handed = q.put(id, group="ABC"[i % 3]).handed_to
            (taker,) = [n for n, its in enumerate(consumers) if its.name == handed]
            assert ids(consumers[taker].pull()) == [id]
            assert consumers[taker].settle(ack=[id], pull=True) == []
            assert found.setdefault("ABC"[i % 3], taker + 1) == taker + 1
        return found

    two = [q.join(1), q.join(1)]
    assert owners(two) == {"A": 1, "B": 2, "C": 1}
    three = [*two, q.join(1)]
    assert sorted(owners(three).values()) == [1, 2, 3]


@one_kind
def test_AGX_11_the_first_job_of_a_group_says_so(q: QueueFixture) -> None:
    """A-26: pulled, or delivered directly."""
    q.queue.configure(sticky=1024)
    for name in ("A1", "B1", "C1", "A2", "B2", "C2"):
        q.put(name, group=name[0])
    consumers = [q.join(1), q.join(1)]
    first = {}
    for _ in range(6):
        for consumer in consumers:
            for job in consumer.pull():
                first[job.id] = job.first_of_group
                consumer.ack(job.id)
    assert first == {id: id[1] == "1" for id in first} and len(first) == 6
    for consumer in consumers:
        consumer.pull()
    assert q.put("D1", group="D").handed_to == consumers[0].name
    (job,) = consumers[0].pull()
    assert job.first_of_group


@every_kind
def test_AGX_14_the_consumer_of_the_highest_priority_gets_all(q: QueueFixture, kind: str) -> None:
    """A-27: while it has credit."""
    consumers = [q.join(200, priority=priority) for priority in (3, 2, 1)]
    for i in range(40):
        q.put(f"{i:02}")
    taken: list[list[str]] = [[], [], []]
    for _ in range(3):
        for mine, consumer in zip(taken, consumers, strict=True):
            mine += ids(consumer.pull())
    assert taken == [[f"{i:02}" for i in range(40)], [], []]


@every_kind
def test_AGX_15_consumers_of_equal_priority_take_turns_and_lower_ones_wait(
    q: QueueFixture, kind: str
) -> None:
    """A-27: until those have no credit left."""
    consumers = {c.name: c for c in (q.join(1, priority=p) for p in (3, 3, 1))}
    got: Counter[str] = Counter()
    for i in range(40):
        name = q.put(f"{i:02}").handed_to
        got[name] += 1
        consumers[name].ack(f"{i:02}")
        consumers[name].pull()
    first, second, low = consumers
    assert (got[first], got[second], got[low]) == (20, 20, 0)
    assert [q.put(id).handed_to for id in "ABC"] == [first, second, low]
