"""Jobs that expire: never delivered late, never taken from who holds them, and never in silence."""

from typing import Any

import pytest

from rqueue.errors import ConfigError, JobExpired
from rqueue.inspector import Inspector
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.tasks.options import Options
from rqueue.testing import frozen_time, housekeeping, move_time
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, every_place, ids

BODY = b'["t"]'


def put(q: QueueFixture, *puts: Put) -> commands.Accepted:
    """Past the client's checks of options."""
    return execute(q.queue.redis, commands.enqueue(q.queue.keys, puts))


def outcomes(q: QueueFixture) -> list[tuple[str, str]]:
    return [(row["id"], row["outcome"]) for row in q.look().history]


def test_a_job_is_delivered_until_its_last_millisecond(q: QueueFixture) -> None:
    """Q-62: it expires when its time is over, not when it ends."""
    with frozen_time(q.queue) as time:
        q.put("A", "B", ttl=10)
        time.move(10)
        consumer = q.join()
        assert ids(consumer.pull()) == ["A", "B"]


def test_a_queue_says_how_long_jobs_live_that_say_nothing(q: QueueFixture) -> None:
    q.queue.configure(ttl=60)
    q.put("A")
    q.put("B", ttl=10)
    q.put("C", ttl=100)
    lives = [job.header.expires_ms - job.enqueued_ms for job in q.join().pull()]
    assert lives == [60_000, 10_000, 100_000]


def test_a_queue_takes_time_to_live_on_while_jobs_wait(q: QueueFixture) -> None:
    """What waits already lives for ever."""
    q.put("old")
    q.put("later", delay_ms=5_000)
    holder = q.join(jobs=1)
    assert ids(holder.pull()) == ["old"]
    q.put("waits")
    assert q.look().meta["v"] == "1"
    q.queue.configure(ttl=10)
    assert q.look().meta["v"] == "1 ttl levels"
    q.put("new")
    move_time(q.queue, 10_001)
    holder.settle(release=["old"])
    assert ids(q.join().pull()) == ["later", "old", "waits"]


@every_place
def test_bounds_that_exclude_each_other_are_refused(q: QueueFixture) -> None:
    q.queue.configure(ttl_max=10)
    before = q.look()
    with pytest.raises(ConfigError, match="ttl_min: is 11000 ms"):
        q.queue.configure(ttl_min=11)
    assert q.look().meta == before.meta


def test_a_held_job_does_not_expire(q: QueueFixture) -> None:
    """X-04, A-30: nothing is taken away from who has it."""
    handle = q.put("A", ttl=10)
    consumer = q.join(lease=120)
    (job,) = consumer.pull()
    move_time(q.queue, 60_000)
    housekeeping(q.queue)
    assert handle.state() is JobState.HELD
    consumer.settle(done=[(job, "late")])
    assert handle.result(0) == "late"


@pytest.mark.parametrize("verb", ["release", "retry", "leave"])
def test_a_job_that_comes_back_late_expires(q: QueueFixture, verb: str) -> None:
    """Q-62: it is not delivered again."""
    handle = q.put("A", ttl=10)
    consumer, other = q.join(), q.join()
    (job,) = consumer.pull()
    move_time(q.queue, 10_001)
    if verb == "release":
        consumer.release(job)
    elif verb == "retry":
        consumer.retry(job, delay=0, error={"type": "ValueError"})
    else:
        consumer.close()
    assert handle.state() is JobState.EXPIRED
    assert other.pull() == []
    assert outcomes(q)[-1] == ("A", "expired")


def test_a_job_that_was_due_in_time_expires_later(q: QueueFixture) -> None:
    q.put("A", delay_ms=5_000, ttl=10)
    q.put("B", delay_ms=5_000, ttl=30)
    move_time(q.queue, 6_000)
    execute(q.queue.redis, commands.promote(q.queue.keys))
    move_time(q.queue, 6_000)
    assert ids(q.join().pull()) == ["B"]


def test_waiting_jobs_expire_while_nobody_pulls(q: QueueFixture) -> None:
    """A-23: in steps of a supervisor's upkeep, until none is left."""
    q.put(*(f"j{n}" for n in range(150)), ttl=10)
    q.put("stays", ttl=100)
    move_time(q.queue, 10_001)
    first = execute(q.queue.redis, commands.renew(q.queue.keys, 1000, []))
    assert first.more and q.queue.counts().ready == 151 - 64
    housekeeping(q.queue)
    counts = q.queue.counts()
    assert (counts.ready, counts.meta["expired"]) == (1, "150")
    assert ids(q.join().pull()) == ["stays"]


@every_place
def test_who_enqueues_sweeps_a_queue_that_nobody_serves(q: QueueFixture) -> None:
    """A-23."""
    q.put("A", "B", ttl=10)
    move_time(q.queue, 10_001)
    q.put("C", ttl=10)
    assert (q.queue.counts().ready, q.queue.counts().meta["expired"]) == (1, "2")


@every_place
def test_who_waits_for_a_result_learns_of_the_end(q: QueueFixture) -> None:
    """Also in a queue that nobody serves: who waits looks."""
    handle = q.put("A", ttl=10)
    move_time(q.queue, 10_001)
    with pytest.raises(JobExpired):
        handle.result(PATIENCE)


@pytest.mark.parametrize("expired", ["end", "dead"])
def test_who_looks_learns_of_it_although_nobody_has_swept_it(q: QueueFixture, expired: str) -> None:
    """A caller whose time ends just then hears that the job is over, not that it waits."""
    q.queue.configure(expired=expired)
    q.put("held", "A", ttl=10)
    assert ids(q.join(1).pull()) == ["held"]
    move_time(q.queue, 10_001)
    with pytest.raises(JobExpired):
        q.queue.job("A").result(0)
    assert q.queue.job("A").state() is (JobState.DEAD if expired == "dead" else JobState.EXPIRED)
    assert q.queue.job("held").state() is JobState.HELD
    assert outcomes(q) == []


def test_many_expired_jobs_at_the_head_are_passed_in_several_calls(q: QueueFixture) -> None:
    """Q-09: bounded, and the consumer stays notified meanwhile: what is behind is not forgotten."""
    for start in range(0, 1000, 250):
        puts = [Put(f"j{start + n}", BODY, ttl_ms=10_000) for n in range(250)]
        put(q, *puts)
    q.put("live")
    move_time(q.queue, 10_001)
    consumer = q.join(jobs=10)
    rounds = 0
    while not (got := consumer.pull()):
        assert consumer.state == "notified" and (rounds := rounds + 1) < 20
    assert ids(got) == ["live"] and rounds > 0
    assert q.queue.counts().meta["expired"] == "1000"


def test_expired_jobs_become_dead_letters_where_the_queue_wants_it(q: QueueFixture) -> None:
    """Q-62, A-23: whatever way they are found, in the middle of a list too; they live again."""
    q.queue.configure(expired="dead", ttl_max=50)
    handle = q.put("A", ttl=10)
    q.put("B", ttl=40)
    q.put("C", ttl=10)
    q.put("D", ttl=10)
    move_time(q.queue, 10_001)
    housekeeping(q.queue)
    look = q.look()
    assert set(look.scores("dead")) == {"A", "C", "D"} and q.queue.counts().ready == 1
    with pytest.raises(JobExpired):
        handle.result(0)
    with Inspector(redis=q.queue.redis) as inspector:
        found = inspector.job("A", q.queue.name).job
        assert (found.state, (found.cause or {})["kind"]) == (JobState.DEAD, "expired")
    assert q.requeue("C", "A") == 2
    assert q.purge_dead("D") == 1
    consumer = q.join()
    jobs = consumer.pull()
    assert ids(jobs) == ["B", "C", "A"]
    # what is over is over: the queue's bound counts anew
    assert jobs[-1].header.expires_ms > q.queue.counts().now


@every_place
def test_where_expired_jobs_go_may_change(q: QueueFixture) -> None:
    """A-23: what counts is what the queue says when they expire."""
    q.put("A", ttl=10)
    q.queue.configure(expired="dead")
    move_time(q.queue, 10_001)
    housekeeping(q.queue)
    q.put("B", ttl=10)
    q.queue.configure(expired="end")
    move_time(q.queue, 10_001)
    housekeeping(q.queue)
    assert set(q.look().scores("dead")) == {"A"}
    assert outcomes(q) == [("A", "expired"), ("B", "expired")]


def test_a_parked_job_expires_when_it_is_looked_at_again(q: QueueFixture) -> None:
    q.put("A", "B", ttl=10)
    q.put("C", ttl=100)
    consumer = q.join()
    for job in consumer.pull():
        consumer.settle(retry=[commands.Retried(job.id, 60_000, "park", False, b'{"message":"x"}')])
    move_time(q.queue, 10_001)
    call = commands.unpark(q.queue.keys, "0", ["t"])
    assert execute(q.queue.redis, call) == ("0", 1)
    assert ids(consumer.pull()) == ["C"]


def test_a_job_is_delivered_directly_with_its_time_to_live(q: QueueFixture) -> None:
    """And is in nobody's way afterwards."""
    consumer = q.join(jobs=2)
    consumer.pull()
    handle = q.put("A", ttl=10)
    assert handle.handed_to == consumer.name
    assert q.look().scores("expiring") == {}


@every_place
def test_pausing_a_queue_does_not_stop_the_time(q: QueueFixture) -> None:
    q.put("A", ttl=10)
    q.queue.pause()
    move_time(q.queue, 10_001)
    housekeeping(q.queue)
    assert outcomes(q) == [("A", "expired")]


@pytest.mark.parametrize("options", [{"ttl": 0}, {"ttl": -1}, {"ttl": "10s"}, {"ttl": 10**9}])
def test_times_to_live_that_are_none(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="ttl"):
        Options(**options)


def test_a_job_that_could_never_run_is_refused() -> None:
    """Q-63: its time counts from the enqueue."""
    with pytest.raises(ValueError, match="would never run"):
        Options(ttl=60, delay_ms=60_000)


def test_a_browser_is_not_shown_what_has_expired(q: QueueFixture) -> None:
    """Q-62: also where nobody has met it yet, and where that is a whole page."""
    with frozen_time(q.queue) as time:
        q.put("A", "B", ttl=1)
        q.put("C")
        q.put("D", ttl=60)
        time.move(1)
        assert q.listed() == ["A", "B", "C", "D"], "it is their last millisecond"
        time.move(0.001)
        browser = q.join(2, mode="browse")
        assert ids(browser.pull()) == ["C", "D"]
        assert q.queue.counts().ready == 4
