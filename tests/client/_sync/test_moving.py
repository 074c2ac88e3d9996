# Generated from tests/client/_async/test_moving.py (`make generate`): do not edit.
"""Jobs are moved, copied and ended by hand."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import JobMoved
from rqueue.model.job import JobState
from rqueue.model.job_filter import JobFilter
from rqueue.tasks.options import Options


def test_jobs_go_where_people_want_them(queue: Queue) -> None:
    """Q-69, A-38."""
    other = queue.at(queue.name + "-other")
    other.configure(priorities=10)
    for id_ in "abcdef":
        queue.send("old" if id_ in "cd" else "t", options=Options(id=id_))
    assert queue.copy_all(other.name, limit=2) == 2
    assert queue.move(other.name, "e") == 1
    assert queue.move_all(other.name) == 3, "a and b are there"
    with pytest.raises(JobMoved):
        queue.job("e").result(0)
    assert queue.expire("a") == 1
    assert queue.reject("b", reason="why") == 1
    assert queue.job("b").state() is JobState.DEAD
    assert other.expire_all(JobFilter(task="old"), limit=1) == 1
    assert other.reject_all(JobFilter(task="old")) == 1
    assert other.cancel_all() == 4
    assert other.job("f").state() is JobState.CANCELLED


def test_scheduled_jobs_are_promoted_by_name(queue: Queue) -> None:
    """A-09: hundreds too, in whatever order; those that stay are named with the reason."""
    many = [f"j{number:03}" for number in range(300)]
    for number, id_ in enumerate(many):
        queue.send("t", options=Options(id=id_, delay_ms=3_600_000 + number))
    queue.send("t", options=Options(id="plain"))
    done = queue.promote(*reversed(many), many[0], "plain", "nosuch")
    assert done == 300
    assert done.stayed == {"plain": "it is ready", "nosuch": "this queue has no such job"}
    consumer = queue.consumer(jobs=301).register()
    assert [job.id for job in consumer.pull()] == [*many, "plain"]
    consumer.close()
