"""A job that fell due while nobody looked counts as ready from the moment when it was due."""

from collections.abc import Callable
from typing import Any

import pytest

from rqueue import Options
from rqueue.model.job import JobState
from rqueue.model.job_limit import JobLimit
from tests.support.due_jobs import pass_minutes
from tests.support.queue_fixture import QueueFixture, every_place, ids
from tests.support.two_queues import second

DUE: dict[str, Any] = {"delay_ms": 60_000}


def late(q: QueueFixture) -> None:
    """All delayed jobs are due, and nobody has looked at the schedule."""
    pass_minutes(q, 2)


@every_place
def test_the_newest_value_of_a_key_displaces_an_older_one_that_was_due(q: QueueFixture) -> None:
    """A-31."""
    q.queue.configure(kind="last_value")
    q.put("old", key="k", **DUE)
    late(q)
    q.put("newest", key="k")
    assert q.queue.job("old").state() is JobState.DISPLACED
    assert ids(q.own(9).pull()) == ["newest"]


@every_place
def test_so_it_does_in_a_queue_that_is_paused(q: QueueFixture) -> None:
    q.queue.configure(kind="last_value")
    q.put("old", key="k", **DUE)
    q.queue.pause()
    late(q)
    q.put("newest", key="k")
    q.queue.resume()
    assert ids(q.own(9).pull()) == ["newest"]


@every_place
def test_so_it_does_behind_many_other_keys(q: QueueFixture) -> None:
    q.queue.configure(kind="last_value")
    q.put_all([(f"old{n}", {"key": f"k{n}", **DUE}) for n in range(700)])
    late(q)
    q.put("newest", key="k699")
    assert q.queue.job("old699").state() is JobState.DISPLACED


ENDS: dict[str, Callable[[QueueFixture, Any, Any], object]] = {
    "ack": lambda _q, consumer, job: consumer.ack(job),
    "reject": lambda _q, consumer, job: consumer.reject(job, "no"),
    "cancel": lambda q, _c, job: q.queue.job(job.id).cancel(),
    "purge": lambda q, consumer, job: q.purge_held(consumer, job.id),
}
"""How the job ends that has the turn, or the permit."""
SHARED: dict[str, dict[str, Any]] = {
    "group": {"group": "G"},
    "limit": {"limit": JobLimit("x", 1)},
}


@every_place
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("what", SHARED)
def test_a_turn_goes_to_the_due_job_in_front_of_later_ones(
    q: QueueFixture, what: str, end: str
) -> None:
    """Q-65."""
    q.put("first", **SHARED[what], **DUE)
    q.put("second", "third", **SHARED[what])
    consumer = q.own(1)
    (job,) = consumer.pull()
    assert job.id == "second"
    late(q)
    ENDS[end](q, consumer, job)
    assert ids(q.own(1).pull()) == ["first"]


@every_place
def test_a_turn_in_a_bucket_of_sticky_groups_does_too(q: QueueFixture) -> None:
    q.queue.configure(sticky=4)
    q.put("first", group="G", **DUE)
    q.put("second", "third", group="G")
    consumer = q.own(1)
    (job,) = consumer.pull()
    late(q)
    consumer.ack(job)
    assert ids(consumer.pull()) == ["first"]


@every_place
@pytest.mark.parametrize("leave", ["expire", "reject", "move"])
def test_a_job_that_leaves_passes_its_turn_to_the_due_one(q: QueueFixture, leave: str) -> None:
    q.put("first", group="G", **DUE)
    q.put("second", "third", group="G")
    late(q)
    if leave == "move":
        with second(q) as target:
            assert q.queue.move(target.queue.name, "second") == 1
    else:
        assert getattr(q.queue, leave)("second") == 1
    assert ids(q.own(1).pull()) == ["first"]


@every_place
def test_many_due_jobs_stand_in_the_order_of_all_that_wait(q: QueueFixture) -> None:
    """A pull of one job looks at all that is due."""
    q.put_all([(f"j{n:03}", {"hold": True, "delay_ms": 60_000 - n}) for n in range(200)])
    late(q)
    assert ids(q.own(1).pull()) == ["j000"]


@every_place
def test_a_due_job_has_its_tokens_before_later_ones(q: QueueFixture) -> None:
    rate = (JobLimit("api", 1, "", 3_600_000, 1, 1),)
    q.put("first", limit=rate, **DUE)
    late(q)
    q.put("second", limit=rate)
    assert ids(q.own(9).pull()) == ["first"]


def beat(q: QueueFixture, **options: Any) -> None:
    q.queue.schedules.set("beat", "t", every=60, options=Options(**options))


@every_place
@pytest.mark.parametrize("there", [True, False])
def test_the_newest_value_displaces_a_tick_that_nobody_looked_at(
    q: QueueFixture, there: bool
) -> None:
    """A-31. With a pool the tick is a job before the newer one comes; without, it is made up for
    later, and is the older one all the same."""
    q.queue.configure(kind="last_value")
    beat(q, key="k")
    q.renew(q.own(9), lease_ms=600_000 if there else 1000)
    pass_minutes(q, 1.5)
    q.put("newest", key="k")
    assert ids(q.own(9).pull()) == ["newest"]
    (record,) = q.queue.schedules.list()
    assert record.fired == 1


@every_place
def test_a_tick_that_is_made_up_for_displaces_an_older_value(q: QueueFixture) -> None:
    q.queue.configure(kind="last_value")
    beat(q, key="k")
    q.put("older", key="k")
    pass_minutes(q, 1.5)
    (job,) = q.own(9).pull()
    assert job.id.startswith("beat@")


@every_place
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("what", SHARED)
def test_a_tick_stands_in_front_of_jobs_that_came_after_it_was_due(
    q: QueueFixture, what: str, end: str
) -> None:
    q.put("first", **SHARED[what])
    consumer = q.own(1)
    beat(q, **SHARED[what])
    q.renew(consumer, lease_ms=600_000)
    (job,) = consumer.pull()
    pass_minutes(q, 1.5)
    q.put("later", **SHARED[what])
    ENDS[end](q, consumer, job)
    (job,) = q.own(1).pull()
    assert job.id.startswith("beat@")
