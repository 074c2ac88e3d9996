"""Queues that are sorted by keys given at enqueue (Q-14)."""

from random import Random

import pytest

from rqueue.errors import ConfigError, InvalidName
from rqueue.model.job import Delivery
from rqueue.model.sort_keys import SortKey
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, ids, one_kind

KEYS: list[SortKey] = [
    *(-1e300, -(2**53), -7.5, -1, -0.25, 0, 0.5, 1, 2, 10, 41.5, 1e18, 1.7e308),
    *("!", "10", "9", "A", "AA", "B", "a", "ab", "z", "Ä", "ä", "日", "😀"),
]
"""In their order: numbers, then text by its code points."""


def test_the_order_of_keys(q: QueueFixture) -> None:
    """Numbers by their values, text by its bytes, numbers before text."""
    for key in Random(14).sample(KEYS, len(KEYS)):
        q.put(repr(key), sort_key=key)
    expected = [repr(key) for key in KEYS]
    assert q.listed() == expected
    jobs = q.join().pull()
    assert ids(jobs) == expected
    assert [job.sort_key for job in jobs] == KEYS


@one_kind
def test_the_greatest_first(q: QueueFixture) -> None:
    """Of two keys that begin alike the longer one goes first then."""
    q.queue.configure(sort="descending")
    for key in ("a", 3, "ab", "b", 30, -1):
        q.put(str(key), sort_key=key)
    jobs = q.join().pull()
    assert ids(jobs) == ["b", "ab", "a", "30", "3", "-1"]
    assert [job.sort_key for job in jobs] == ["b", "ab", "a", 30, 3, -1]


def test_jobs_without_a_key_go_first_and_a_higher_level_before_all(q: QueueFixture) -> None:
    q.put("b", sort_key="b")
    q.put("plain")
    q.put("urgent b", sort_key="b", priority=9)
    q.put("a", sort_key="a")
    q.put("urgent", priority=9)
    q.put("urgent a", sort_key="a", priority=9)
    expected = ["urgent", "urgent a", "urgent b", "plain", "a", "b"]
    assert q.listed() == expected
    assert q.queue.counts().levels == {9: 3, 4: 3}
    assert ids(q.join(3).pull()) == expected[:3]
    assert ids(q.join().pull()) == expected[3:]


def test_what_comes_back_stands_where_its_key_says(q: QueueFixture) -> None:
    """Released, retried, and of a consumer that left; among equal keys by position."""
    for id in ("b1", "b2", "b3", "c1", "a1"):
        q.put(id, sort_key=id[0])
    consumer, other = q.join(3), q.join(3)
    assert ids(consumer.pull()) == ["a1", "b1", "b2"]
    q.put("a2", sort_key="a")
    consumer.release("b1")
    assert q.listed() == ["a2", "b1", "b3", "c1"]
    consumer.retry("b2")
    consumer.close()
    assert q.listed() == ["a1", "a2", "b1", "b2", "b3", "c1"]
    assert ids(other.pull()) == ["a1", "a2", "b1"]


def test_what_was_due_stands_where_its_key_says(q: QueueFixture) -> None:
    """X-06 is of jobs without keys: these go to the head of their level."""
    q.put("b", sort_key="b")
    q.put("later c", sort_key="c", delay_ms=60_000)
    q.put("later a", sort_key="a", delay_ms=50_000)
    q.put("later", delay_ms=90_000)
    q.queue.promote("later c", "later a", "later")
    assert q.listed() == ["later", "later a", "b", "later c"]


def test_a_job_that_arrives_is_delivered_directly_where_nothing_waits(q: QueueFixture) -> None:
    consumer = q.join(2)
    consumer.pull()
    assert q.put("b", sort_key="b").handed_to == consumer.name
    consumer.wait(PATIENCE)
    consumer.pull()
    assert q.put("a", sort_key="a").handed_to == consumer.name
    q.put("c", sort_key="c")
    consumer.release("b")
    assert q.listed() == ["b", "c"]


@one_kind
def test_its_place_is_not_chosen_and_a_priority_is(q: QueueFixture) -> None:
    for id in ("a", "b", "c"):
        q.put(id, sort_key=id)
    assert q.queue.move_to_front("c") == 0
    assert q.queue.set_priority("c", 9)
    assert q.listed() == ["c", "a", "b"]


@one_kind
def test_its_place_is_shown_and_it_leaves_from_the_middle(q: QueueFixture) -> None:
    q.put("plain")
    for id in ("c", "a", "b", "d"):
        handle = q.put(id, sort_key=id)
    q.queue.job("b").cancel()
    assert handle.state() == "ready"
    assert not q.look().meta.get("marked")
    assert q.listed() == ["plain", "a", "c", "d"]
    assert q.purge() == 4


@one_kind
def test_pages_of_a_browser_go_by_key(q: QueueFixture) -> None:
    """What a browser has passed it does not see: a smaller key that comes later."""
    for number in range(40):
        q.put(f"{number:02}", sort_key=number % 4)
    browser = q.join(7, mode="browse")
    seen: list[str] = []
    while page := browser.pull():
        seen += ids(page)
        if len(seen) == 14:
            q.put("passed", sort_key=0)
            q.put("seen", sort_key=9)
            q.queue.job(seen[-1]).cancel()
    assert seen == [*(f"{n:02}" for key in range(4) for n in range(key, 40, 4)), "seen"]


@one_kind
def test_many_in_one_call(q: QueueFixture) -> None:
    calls = [Call("t", [n], options=Options(id=str(n), sort_key=-n)) for n in range(600)]
    q.queue.enqueue_many(calls)
    assert ids(q.join(200).pull()) == [str(n) for n in range(599, 399, -1)]


@one_kind
def test_the_order_is_fixed_while_there_are_jobs(q: QueueFixture) -> None:
    q.put("a", sort_key="a")
    q.queue.configure(sort="ascending")
    with pytest.raises(ConfigError, match=r"sort: cannot change while the queue has jobs"):
        q.queue.configure(sort="descending")
    q.purge()
    q.queue.configure(sort="descending")
    with pytest.raises(ConfigError, match="groups or the policy sorted, not both"):
        q.put("x", group="g")
    q.queue.configure(kind="plain")
    q.put("x", group="g")


@pytest.mark.parametrize("key", [float("nan"), float("inf"), 2**53 + 1, True, b"a", [1]])
def test_what_is_no_key(key: object) -> None:
    with pytest.raises(ConfigError, match="sort_key"):
        Options(sort_key=key)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["", "a\nb", "\0", "x" * 129, "\ud800"])
def test_text_that_is_no_key(key: str) -> None:
    with pytest.raises(InvalidName, match="sort key"):
        Options(sort_key=key)


def test_a_value_that_says_a_key_which_cannot_be_read() -> None:
    assert Delivery("x", b"1,2|sxyz;[]").sort_key is None
    assert Delivery("x", b"1,2|s2ff;[]").sort_key is None
    assert Delivery("x", b"1,2|s10;[]").sort_key is None


def test_what_a_consumer_selects_goes_by_key(q: QueueFixture) -> None:
    """Q-22: over all its classes; and what stood there before the queue had selectors."""
    q.put("old b", sort_key="b")
    q.put("old a", sort_key="a")
    q.queue.configure(kind="sorted selectors")
    for id in ("x2", "y1", "x0", "y3", "z9"):
        q.put(id, sort_key=id[1:], labels={"of": id[0]})
    assert q.listed() == ["x0", "y1", "x2", "y3", "z9", "old a", "old b"]
    one, other = q.join(select="of in ('x', 'y')"), q.join()
    jobs = one.pull()
    assert ids(jobs) == ["x0", "y1", "x2", "y3"]
    one.settle(release=["x2", "y3"])
    q.queue.job("y3").cancel()
    assert ids(other.pull()) == ["x2", "z9", "old a", "old b"]
    assert q.put("x1", sort_key="1", labels={"of": "x"}).handed_to


@one_kind
def test_of_a_ring_the_last_key_makes_room(q: QueueFixture) -> None:
    """X-08: of the lowest level, and before jobs without a key."""
    q.queue.configure(ring=3)
    q.put("high", sort_key="z", priority=9)
    for id in ("b", "c", "a"):
        q.put(id, sort_key=id)
    assert q.queue.job("c").state() == "displaced"
    q.put("plain")
    assert q.listed() == ["high", "plain", "a"]
    q.put("d", sort_key="d")
    assert q.queue.job("d").state() == "displaced"
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["high"]
    q.put("b again", sort_key="b")
    consumer.release("high")
    assert q.listed() == ["high", "plain", "a"]
    q.queue.configure(ring=1)
    assert q.listed() == ["high"]
