"""Qpid's sorted queue: jobs go by their sort keys."""

from itertools import product
from random import Random

import pytest

from rqueue.client._sync.consumer import Consumer
from tests.support.queue_fixture import QueueFixture, ids


def consumed(consumer: Consumer) -> list[str]:
    """All that waits, taken one at a time."""
    seen: list[str] = []
    jobs = consumer.pull()
    while jobs:
        seen += ids(jobs)
        jobs = consumer.settle(ack=ids(jobs), pull=True)
    return seen


def test_QSO_01_keys_that_come_unsorted_come_out_sorted(q: QueueFixture) -> None:
    """Q-14."""
    keys = ["".join(letters) for letters in product("ABCDEF", repeat=3)][:200]
    shuffled = Random(14).sample(keys, len(keys))
    for key in shuffled:
        q.put(f"job {key}", sort_key=key)
    assert q.listed() == [f"job {key}" for key in keys]
    assert consumed(q.join(1)) == [f"job {key}" for key in keys]
    assert "heads" not in q.look().keys


@pytest.mark.parametrize("step", [1, -1], ids=["ascending", "descending"])
def test_QSO_03_ascending_and_descending_insertion(q: QueueFixture, step: int) -> None:
    """Q-14."""
    keys = [3 * chr(ord("A") + number) for number in range(25)]
    for key in keys[::step]:
        q.put(key, sort_key=key)
    assert q.listed() == keys


def test_QSO_04_insert_before_between_after_at_the_head(q: QueueFixture) -> None:
    """Q-14: sorted after each insertion."""
    for order in ("AB", "BA", "ACB", "BDCA"):
        for count, key in enumerate(order, 1):
            q.put(f"{order} {key}", sort_key=key)
            assert q.listed() == [f"{order} {one}" for one in sorted(order[:count])]
        q.purge()


def test_QSO_05_few_keys_many_jobs(q: QueueFixture) -> None:
    """Q-14: ten of each key, in the order of their enqueues."""
    for number in range(100):
        q.put(str(number), sort_key=f"{number % 10}00")
    expected = [str(number) for key in range(10) for number in range(key, 100, 10)]
    assert consumed(q.join(1)) == expected
