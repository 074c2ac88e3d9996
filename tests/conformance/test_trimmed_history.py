"""What is trimmed off the history is noted exactly: readers find out whether they missed a row."""

from typing import Any, cast

import pytest

from rqueue.model.history_batch import pack
from tests.support.bench import Bench

pytestmark = pytest.mark.each_server


def write(bench: Bench, rows: int) -> str:
    """One entry of that many rows; returns its id."""
    consumer = bench.join(rows)
    bench.put(*[f"{consumer.name}-{number}" for number in range(rows)])
    jobs = consumer.pull()
    consumer.settle(ack=jobs, batch=pack({"id": [job.id for job in jobs]}), rows=rows)
    consumer.close()
    return entries(bench)[-1] if entries(bench) else ""


def entries(bench: Bench) -> list[str]:
    found = cast("list[Any]", bench.queue.redis.xrange(bench.queue.keys.history))
    return [id.decode() for id, _ in found]


def noted(bench: Bench) -> tuple[str, int, int]:
    """The last entry that was trimmed, the rows trimmed in all, the rows that are left."""
    meta = bench.look().meta
    trimmed, gone = meta.get("history_trimmed", ""), int(meta.get("history_gone", "0"))
    return trimmed, gone, int(meta["history_rows"])


def test_nothing_is_noted_before_anything_is_trimmed(bench: Bench) -> None:
    bench.queue.configure(history_rows_max=10)
    write(bench, 4)
    write(bench, 6)
    assert noted(bench) == ("", 0, 10)


def test_the_last_entry_that_went_is_noted_and_the_rows_are_counted(bench: Bench) -> None:
    bench.queue.configure(history_rows_max=10)
    written = [write(bench, 4), write(bench, 6), write(bench, 5)]
    assert entries(bench) == written[2:]  # 15 rows, then 11, then 5
    assert noted(bench) == (written[1], 10, 5)
    written.append(write(bench, 5))
    assert noted(bench) == (written[1], 10, 10)
    written.append(write(bench, 1))
    assert entries(bench) == written[3:]
    assert noted(bench) == (written[2], 15, 6)


def test_rows_that_scripts_write_count_too(bench: Bench) -> None:
    bench.queue.configure(history_rows_max=2)
    for name in "ABCD":
        bench.put(name)
        assert bench.queue.cancel(name)
    trimmed, gone, left = noted(bench)
    assert (gone, left) == (2, 2)
    assert trimmed and trimmed < entries(bench)[0]


def test_a_queue_that_keeps_nothing_notes_all(bench: Bench) -> None:
    bench.queue.configure(history_rows_max=0)
    assert write(bench, 3) == ""
    first, gone, left = noted(bench)
    assert (gone, left) == (3, 0)
    write(bench, 2)
    second, gone, left = noted(bench)
    assert (gone, left) == (5, 0)
    assert first < second


def test_a_lower_limit_takes_effect_in_steps_that_are_all_noted(bench: Bench) -> None:
    for _ in range(12):
        write(bench, 1)
    written = entries(bench)
    bench.queue.configure(history_rows_max=1)
    written.append(write(bench, 1))  # 8 of them go at once
    assert entries(bench) == written[8:]
    assert noted(bench) == (written[7], 8, 5)
    written.append(write(bench, 1))
    assert noted(bench) == (written[12], 13, 1)
