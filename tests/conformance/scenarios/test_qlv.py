"""Qpid's last-value queue: of the jobs of one key only the latest waits."""

import pytest

from tests.support.queue_fixture import QueueFixture, ids


@pytest.fixture
def lv(q: QueueFixture) -> QueueFixture:
    """A queue of the kind."""
    q.queue.configure(kind="last_value")
    return q


def kept(lv: QueueFixture) -> int:
    """Keys that something is kept of."""
    return len(lv.look().hash("latest"))


def test_QLV_01_jobs_with_and_without_a_key(lv: QueueFixture) -> None:
    """Q-15: those without one are never displaced."""
    lv.put("plain")
    assert lv.queue.counts().ready == 1
    lv.put("keyed", key="k")
    lv.put("plain too")
    assert lv.queue.counts().ready == 3
    consumer = lv.join()
    assert ids(consumer.pull()) == ["plain", "keyed", "plain too"]
    consumer.settle(ack=["plain", "keyed", "plain too"])
    assert lv.queue.counts().held == lv.queue.counts().ready == kept(lv) == 0


@pytest.mark.parametrize(("second", "left"), [("k", ["2"]), ("other", ["1", "2"])])
def test_QLV_02_the_same_key_replaces_and_another_does_not(
    lv: QueueFixture, second: str, left: list[str]
) -> None:
    lv.put("1", key="k")
    lv.put("2", key=second)
    assert lv.queue.counts().ready == len(left)
    assert ids(lv.join().pull()) == left


@pytest.mark.parametrize("second", ["k", "other"])
def test_QLV_04_the_map_of_keys_does_not_leak(lv: QueueFixture, second: str) -> None:
    lv.put("1", key="k")
    assert kept(lv) == 1
    lv.put("2", key=second)
    assert kept(lv) == len({"k", second})
    consumer = lv.join()
    consumer.settle(ack=ids(consumer.pull()))
    assert not {"latest", "heads", "jobs"} & lv.look().keys.keys()


def test_QLV_06_conflation(lv: QueueFixture) -> None:
    """a) Of four jobs of two keys two are left."""
    for id in ("A1", "B2", "A3", "B4"):
        lv.put(id, key=id[0])
    assert ids(lv.join().pull()) == ["A3", "B4"]


def test_QLV_06_the_depth_of_a_conflated_queue(lv: QueueFixture) -> None:
    """b) Of 100 jobs of ten keys ten."""
    for i in range(100):
        lv.put(str(i), key=f"k{i % 10}")
    counts = lv.queue.counts()
    assert (counts.ready, counts.levels) == (10, {4: 10})
    assert counts.meta["displaced"] == "90"
    assert ids(lv.join().pull()) == [str(i) for i in range(90, 100)]


@pytest.mark.parametrize("browsers", [1, 2])
def test_QLV_08_browsers_see_what_is_left_and_what_comes(lv: QueueFixture, browsers: int) -> None:
    lv.put_all((str(i), {"key": f"k{i % 10}"}) for i in range(400))
    looking = [lv.join(100, mode="browse") for _ in range(browsers)]
    for browser in looking:
        assert ids(browser.pull()) == [str(i) for i in range(390, 400)]
    lv.put("400", key="k0")
    for browser in looking:
        assert ids(browser.pull()) == ["400"]


def test_QLV_09_the_last_of_each_key_is_delivered_last(lv: QueueFixture) -> None:
    """Two producers, two keys; the consumer holds one job at a time."""
    sent = [(f"{key}{i}", key) for i in range(40) for key in "ab"]
    for id, key in sent[:40]:
        lv.put(id, key=key)
    consumer, last = lv.join(1), {}
    rest = iter(sent[40:])
    while job := next(iter(consumer.pull()), None):
        last[job.id[0]] = job.id
        for id, key in [next(rest, ("", "")) for _ in range(3)]:
            if id:
                lv.put(id, key=key)
        consumer.ack(job)
    assert (last, list(rest)) == ({"a": "a39", "b": "b39"}, [])
