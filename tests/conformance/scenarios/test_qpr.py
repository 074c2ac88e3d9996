"""Qpid's priority queue."""

import pytest

from tests.support.queue_fixture import QueueFixture, every_kind, ids


def test_QPR_01_three_levels_map_ten_priorities(q: QueueFixture) -> None:
    """a) Q-11: up to 3 is the lowest of three levels, 4 the middle, 5 and more the highest."""
    q.queue.configure(priorities=3)
    given = [(1, 9), (2, 4), (3, 0), (4, 0), (5, 4), (6, 9), (7, 4), (8, 9), (9, 0)]
    for id, priority in given:
        q.put(str(id), priority=priority)
    assert "".join(ids(q.join().pull())) == "168257349"


@pytest.mark.parametrize("levels", range(1, 11))
def test_QPR_01_each_number_of_levels_maps_as_AMQP_does(q: QueueFixture, levels: int) -> None:
    """b) Q-11: the middle of the levels is 4, or 4 and 5; what is outside is the last on its
    side."""
    q.queue.configure(priorities=levels)
    for priority in range(10):
        q.put(str(priority), priority=priority)
    offset = 5 - (levels + 1) // 2
    order = sorted(range(10), key=lambda given: -min(max(given - offset, 0), levels - 1))
    assert ids(q.join().pull()) == list(map(str, order))


@every_kind
@pytest.mark.parametrize("order", ["abcd", "dcba", "bdac"])
def test_QPR_02_higher_before_lower_and_earlier_before_later(
    q: QueueFixture, order: str, kind: str
) -> None:
    """Q-10: whatever came in between."""
    level = {"a": 4, "b": 5, "c": 5, "d": 4}
    for id in order:
        q.put(id, priority=level[id])
    # of shares a browser is shown first who comes next of each
    found = ids(q.join().pull()) if kind == "shares" else q.listed()
    assert found == sorted(order, key=lambda id: (-level[id], order.index(id)))


def test_QPR_03_the_oldest_of_the_lowest_level_is_the_least(q: QueueFixture) -> None:
    """Q-67: it goes from a full ring, also where it is the one that arrives."""
    q.queue.configure(ring=4)
    for id, level in (("a", 4), ("b", 5), ("c", 5), ("d", 4)):
        q.put(id, priority=level)
    q.put("e", priority=3)
    assert q.listed() == list("bcad")
    q.put("f", priority=9)
    assert q.listed() == list("fbcd")


@every_kind
def test_QPR_04_higher_levels_come_first_and_each_keeps_its_order(
    q: QueueFixture, kind: str
) -> None:
    """Q-10, A-15."""
    for i in range(50):
        q.put(f"{i % 10}-{i:02}", priority=i % 10)
    got = ids(q.join().pull())
    assert got == sorted(got, key=lambda id: (-int(id[0]), int(id[2:])))
    assert len(got) == 50


@every_kind
def test_QPR_06_a_consumer_that_enqueues_higher_jobs_meets_them_next(
    q: QueueFixture, kind: str
) -> None:
    """Q-12, with one job held all the time."""
    q.put("0", priority=0)
    consumer = q.join(1)
    seen = []
    while jobs := consumer.pull():
        seen += ids(jobs)
        if len(seen) < 5:
            q.put(str(len(seen)), priority=4)
        consumer.ack(jobs[0])
    assert seen == ["0", "1", "2", "3", "4"]


@every_kind
def test_QPR_07_a_job_is_given_another_priority(q: QueueFixture, kind: str) -> None:
    """Q-13, A-38: it keeps its id."""
    q.put("a", "b", priority=3)
    q.put("c", priority=4)
    assert q.queue.set_priority("b", 5)
    assert ids(q.join().pull()) == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("levels", "named", "changed", "order"),
    [((3, 3, 4), "20", [1, 1], "201"), ((3, 4, 3), "32", [0, 1], "210")],
)
def test_QPR_09_several_jobs_are_given_another_priority(
    q: QueueFixture, levels: tuple[int, ...], named: str, changed: list[int], order: str
) -> None:
    """Q-13: each goes to the tail of its new level; an id that is unknown is none."""
    for id, level in zip("012", levels, strict=True):
        q.put(id, priority=level)
    assert [q.queue.set_priority(id, 5) for id in named] == changed
    assert "".join(ids(q.join().pull())) == order


def test_QPR_11_an_idle_consumer_with_a_selector_is_next_for_what_it_selects(
    q: QueueFixture,
) -> None:
    """Q-12, Q-22: whatever lower jobs it passed over."""
    q.queue.configure(kind="selectors")
    for n in range(100):
        q.put(f"{n:02}", priority=0, labels={"x": 0})
    consumer = q.join(select="x = 1")
    assert consumer.pull() == []
    assert q.put("high", priority=9, labels={"x": 1}).handed_to == consumer.name
