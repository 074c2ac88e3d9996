"""What is trimmed off the history is noted exactly: readers find out whether they missed a row."""

from typing import Any, cast

import pytest

from rqueue.model.history_batch import pack
from tests.support.queue_fixture import QueueFixture, every_place

pytestmark = pytest.mark.each_server


def write(q: QueueFixture, rows: int) -> str:
    """One entry of that many rows; returns its id."""
    consumer = q.own(rows)
    q.put(*[f"{consumer.name}-{number}" for number in range(rows)])
    jobs = consumer.pull()
    consumer.settle(ack=jobs, batch=pack({"id": [job.id for job in jobs]}), rows=rows)
    consumer.close()
    return entries(q)[-1] if entries(q) else ""


def entries(q: QueueFixture) -> list[str]:
    found = cast("list[Any]", q.queue.redis.xrange(q.queue.keys.history))
    return [id.decode() for id, _ in found]


def noted(q: QueueFixture) -> tuple[str, int, int]:
    """The last entry that was trimmed, the rows trimmed in all, the rows that are left."""
    meta = q.look().meta
    trimmed, gone = meta.get("history_trimmed", ""), int(meta.get("history_gone", "0"))
    return trimmed, gone, int(meta["history_rows"])


@every_place
def test_nothing_is_noted_before_anything_is_trimmed(q: QueueFixture) -> None:
    q.queue.configure(history_rows_max=10)
    write(q, 4)
    write(q, 6)
    assert noted(q) == ("", 0, 10)


@every_place
def test_the_last_entry_that_went_is_noted_and_the_rows_are_counted(q: QueueFixture) -> None:
    q.queue.configure(history_rows_max=10)
    written = [write(q, 4), write(q, 6), write(q, 5)]
    assert entries(q) == written[2:]  # 15 rows, then 11, then 5
    assert noted(q) == (written[1], 10, 5)
    written.append(write(q, 5))
    assert noted(q) == (written[1], 10, 10)
    written.append(write(q, 1))
    assert entries(q) == written[3:]
    assert noted(q) == (written[2], 15, 6)


@every_place
def test_rows_that_scripts_write_count_too(q: QueueFixture) -> None:
    q.queue.configure(history_rows_max=2)
    for name in "ABCD":
        q.put(name)
        assert q.queue.cancel(name)
    trimmed, gone, left = noted(q)
    assert (gone, left) == (2, 2)
    assert trimmed and trimmed < entries(q)[0]


@every_place
def test_a_queue_that_keeps_nothing_notes_all(q: QueueFixture) -> None:
    q.queue.configure(history_rows_max=0)
    assert write(q, 3) == ""
    first, gone, left = noted(q)
    assert (gone, left) == (3, 0)
    write(q, 2)
    second, gone, left = noted(q)
    assert (gone, left) == (5, 0)
    assert first < second


@every_place
def test_a_lower_limit_takes_effect_in_steps_that_are_all_noted(q: QueueFixture) -> None:
    for _ in range(12):
        write(q, 1)
    written = entries(q)
    q.queue.configure(history_rows_max=1)
    written.append(write(q, 1))  # 8 of them go at once
    assert entries(q) == written[8:]
    assert noted(q) == (written[7], 8, 5)
    written.append(write(q, 1))
    assert noted(q) == (written[12], 13, 1)
