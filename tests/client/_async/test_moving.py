"""Jobs are moved, copied and ended by hand."""

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.errors import JobMoved
from rqueue.model.job import JobState
from rqueue.model.job_filter import JobFilter
from rqueue.tasks.options import Options


async def test_jobs_go_where_people_want_them(queue: AsyncQueue) -> None:
    """Q-69, A-38."""
    other = queue.at(queue.name + "-other")
    await other.configure(priorities=10)
    for id_ in "abcdef":
        await queue.send("old" if id_ in "cd" else "t", options=Options(id=id_))
    assert await queue.copy_all(other.name, limit=2) == 2
    assert await queue.move(other.name, "e") == 1
    assert await queue.move_all(other.name) == 3, "a and b are there"
    with pytest.raises(JobMoved):
        await queue.job("e").result(0)
    assert await queue.expire("a") == 1
    assert await queue.reject("b", reason="why") == 1
    assert await queue.job("b").state() is JobState.DEAD
    assert await other.expire_all(JobFilter(task="old"), limit=1) == 1
    assert await other.reject_all(JobFilter(task="old")) == 1
    assert await other.cancel_all() == 4
    assert await other.job("f").state() is JobState.CANCELLED


async def test_scheduled_jobs_are_promoted_by_name(queue: AsyncQueue) -> None:
    """A-09: hundreds too, in whatever order; those that stay are named with the reason."""
    many = [f"j{number:03}" for number in range(300)]
    for number, id_ in enumerate(many):
        await queue.send("t", options=Options(id=id_, delay_ms=3_600_000 + number))
    await queue.send("t", options=Options(id="plain"))
    done = await queue.promote(*reversed(many), many[0], "plain", "nosuch")
    assert done == 300
    assert done.stayed == {"plain": "it is ready", "nosuch": "this queue has no such job"}
    consumer = await queue.consumer(jobs=301).register()
    assert [job.id for job in await consumer.pull()] == [*many, "plain"]
    await consumer.close()
