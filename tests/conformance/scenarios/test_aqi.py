"""What Artemis's queues do."""

import pytest

from tests.support.queue_fixture import QueueFixture, every_kind, ids


def test_AQI_01_adding_and_removing_consumers_is_counted(q: QueueFixture) -> None:
    """Q-35."""
    consumers = [q.join(1) for _ in range(3)]
    assert q.queue.counts().interested == 3
    for left, consumer in zip((2, 1, 0), consumers, strict=True):
        consumer.close()
        consumer.close()  # a second time does nothing
        assert q.queue.counts().interested == left


@every_kind
def test_AQI_02_jobs_wait_for_a_consumer(q: QueueFixture, kind: str) -> None:
    """C-26, A-11: and count until they are settled."""
    q.put(*"0123456789")
    counts = q.queue.counts()
    assert (counts.ready, counts.scheduled, counts.held) == (10, 0, 0)
    consumer = q.join()
    assert ids(consumer.pull()) == list("0123456789")
    counts = q.queue.counts()
    assert (counts.ready, counts.scheduled, counts.held) == (0, 0, 10)
    consumer.settle(ack=list("0123456789"))
    assert q.queue.counts().held == 0


@every_kind
def test_AQI_03_a_busy_consumer_gets_all_in_order_once_it_is_free(
    q: QueueFixture, kind: str
) -> None:
    """A-16."""
    consumer = q.join(0)
    q.put(*"0123456789")
    assert consumer.pull() == []
    consumer.interest(100)
    assert ids(consumer.pull()) == list("0123456789")


@every_kind
def test_AQI_05_what_is_brought_to_the_front_comes_last_in_first_out(
    q: QueueFixture, kind: str
) -> None:
    """A-17: before all that waits; the others stay first in, first out."""
    tails, heads = [f"{i:02}" for i in range(10)], [f"{i:02}" for i in range(10, 20)]
    q.put(*tails)
    for id in heads:
        q.put(id)
        assert q.queue.move_to_front(id) == 1
    q.put("20", "21")
    assert ids(q.join().pull()) == [*reversed(heads), *tails, "20", "21"]


@every_kind
def test_AQI_06_consumers_that_come_and_go_share_what_arrives(q: QueueFixture, kind: str) -> None:
    """A-16."""
    consumers = {c.name: c for c in (q.join(1) for _ in range(2))}

    def share(count: int) -> list[int]:
        got = dict.fromkeys(consumers, 0)
        for _ in range(count):
            handle = q.queue.send("t")
            got[handle.handed_to] += 1
            consumers[handle.handed_to].ack(handle.id)
            consumers[handle.handed_to].pull()
        return list(got.values())

    assert share(20) == [10, 10]
    third = q.join(1)
    consumers[third.name] = third
    assert share(30) == [10, 10, 10]
    consumers.pop(next(iter(consumers))).close()
    assert share(20) == [10, 10]


@every_kind
def test_AQI_08_higher_priorities_come_first(q: QueueFixture, kind: str) -> None:
    """A-15."""
    for priority in range(10):
        q.put(str(priority), priority=priority)
    assert ids(q.join().pull()) == list("9876543210")


@pytest.mark.parametrize("consumer_first", [True, False])
def test_AQI_09_a_filter_takes_its_own_and_leaves_the_others(
    q: QueueFixture, consumer_first: bool
) -> None:
    """Q-22."""
    q.queue.configure(kind="selectors")
    if consumer_first:
        filtered = q.join(select="fruit = 'orange'")
    for n in range(1, 7):
        q.put(str(n), labels={"fruit": "orange" if n in (4, 6) else "apple"})
    if not consumer_first:
        filtered = q.join(select="fruit = 'orange'")
    assert ids(filtered.pull()) == ["4", "6"]
    filtered.settle(ack=["4", "6"])
    filtered.close()
    everything = q.join(4)
    assert ids(everything.pull()) == ["1", "2", "3", "5"]
    again = q.join(select="fruit = 'orange'")
    assert q.put("7", labels={"fruit": "orange"}).handed_to == again.name
    assert ids(again.pull()) == ["7"]
    assert again.pull() == []


def test_AQI_10_a_busy_consumer_with_a_filter_keeps_the_order(q: QueueFixture) -> None:
    """Q-22."""
    q.queue.configure(kind="selectors")
    busy = q.join(0, select="fruit = 'orange'")
    q.put(*"0123456789", labels={"fruit": "orange"})
    assert busy.pull() == []
    busy.interest(100)
    assert ids(busy.pull()) == list("0123456789")


@every_kind
def test_AQI_12_a_listing_is_complete_and_in_order(q: QueueFixture, kind: str) -> None:
    """C-30, Q-69: page by page."""
    names = [f"{i:02}" for i in range(50)]
    q.put(*names)
    assert q.listed() == names
    browser = q.join(7, mode="browse")
    seen: list[str] = []
    while page := ids(browser.pull()):
        assert len(page) <= 7
        seen += page
    assert seen == names


@every_kind
def test_AQI_14_what_was_accepted_is_counted_for_good(q: QueueFixture, kind: str) -> None:
    """Q-72: the count goes on where the jobs have ended. Nobody sets it back."""
    q.put("1", "2", "3")
    assert q.queue.counts().meta["seq"] == "3"
    consumer = q.join()
    consumer.settle(ack=consumer.pull())
    q.put("4")
    counts = q.queue.counts()
    assert (counts.meta["seq"], counts.meta["acked"]) == ("4", "3")
