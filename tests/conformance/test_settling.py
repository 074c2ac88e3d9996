"""What becomes of jobs in a consumer's hands."""

import pytest

from rqueue.errors import LifecycleError, NotRegistered, RegistrationLost
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.settling import retried
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.bench import Bench, ids


def test_hands_remember_what_was_delivered_in_order(bench: Bench) -> None:
    """Q-55."""
    bench.put(*"0123456789")
    consumer = bench.join()
    consumer.pull()
    assert bench.look().held == {consumer.name: list("0123456789")}
    counts = bench.queue.counts()
    assert (counts.ready, counts.held) == (0, 10)


def test_one_ack_settles_one_and_many_settle_many(bench: Bench) -> None:
    """Q-55: in any order."""
    bench.put(*"0123456789")
    consumer = bench.join()
    consumer.pull()
    consumer.ack("4")
    assert bench.look().held[consumer.name] == list("012356789")
    consumer.settle(ack=["7", "0", "1", "9"])
    assert bench.look().held[consumer.name] == list("23568")
    consumer.settle(ack=list("23568"))
    assert bench.look().jobs == {}


def test_an_ack_of_one_says_nothing_of_the_others(bench: Bench) -> None:
    """Q-55: acked out of the order of sending."""
    consumer = bench.join()
    for i in range(10):
        bench.put(str(i), priority=i)
    consumer.pull(recall=True)
    consumer.ack("9")
    consumer.close()
    assert "".join(ids(bench.join().pull())) == "876543210"


def test_a_job_counts_until_it_is_acked(bench: Bench) -> None:
    """Q-25."""
    bench.put("A")
    consumer = bench.join()
    (job,) = consumer.pull()
    assert bench.queue.job("A").state() is JobState.HELD
    consumer.ack(job, 42)
    assert bench.queue.job("A").result(0) == 42
    assert consumer.pull() == []


def test_recovering_gives_the_unsettled_again_in_order(bench: Bench) -> None:
    """Q-57."""
    bench.put(*"0123")
    consumer = bench.join(3)
    consumer.pull()
    consumer.ack("0")
    consumer.settle(release=["2", "1"])
    got = consumer.pull()
    assert ids(got) == list("123")
    assert [job.redelivered for job in got] == [True, True, False]


def test_each_outcome_counts_as_documented(bench: Bench) -> None:
    """Q-56, X-13: release does not count, retry does, reject is the end."""
    bench.put("A")
    consumer = bench.join()
    (job,) = consumer.pull()
    consumer.release(job)
    (job,) = consumer.pull()
    assert (job.attempts, job.deliveries, job.redelivered) == (0, 1, True)
    consumer.retry(job)
    (job,) = consumer.pull()
    assert (job.attempts, job.deliveries) == (1, 2)
    consumer.retry(job, charge=False)
    (job,) = consumer.pull()
    assert (job.attempts, job.deliveries) == (1, 3)
    consumer.reject(job, "enough")
    assert bench.queue.job("A").state() is JobState.DEAD


def test_a_failed_job_comes_again_before_the_later_ones_or_behind_them(bench: Bench) -> None:
    """X-05, C-06."""
    bench.put("A", "B", "C")
    consumer = bench.join(1)
    consumer.pull()
    consumer.retry("A")
    assert ids(consumer.pull()) == ["A"]
    consumer.retry("A", place="tail")
    seen = []
    while jobs := consumer.pull():
        seen += ids(jobs)
        consumer.ack(jobs[0])
    assert seen == ["B", "C", "A"]


def test_a_retry_at_the_tail_is_told_to_who_waits(bench: Bench) -> None:
    """X-05, Q-37."""
    bench.put("A")
    consumer = bench.join(1)
    consumer.pull()
    other = bench.join(1)
    consumer.retry("A", place="tail")
    assert bench.state(other) == "notified"


def test_a_job_that_fails_once_runs_twice(bench: Bench) -> None:
    """C-06, C-07."""
    bench.put("1")
    consumer = bench.join()
    calls = 0
    while jobs := consumer.pull():
        calls += 1
        if calls == 1:
            consumer.retry(jobs[0], error={"type": "ValueError"})
        else:
            consumer.ack(jobs[0])
    assert calls == 2
    assert not bench.look().hash("errors")


def test_a_retry_that_is_said_again_does_not_charge_the_next_delivery(bench: Bench) -> None:
    """H-18: its reply was lost, and the job was in these hands again."""
    bench.put("A")
    consumer = bench.join(1)
    (job,) = consumer.pull()
    said = retried(job, 0, {"type": "ValueError"}, "", True)
    (again,) = consumer.settle(retry=[said], pull=True)
    assert (again.deliveries, again.attempts) == (1, 1)
    consumer.settle(retry=[said])
    assert consumer.refused == ["A"]
    (seen,) = consumer.pull(recall=True)
    assert (seen.deliveries, seen.attempts) == (1, 1)
    assert consumer.retry(seen)
    (third,) = consumer.pull()
    assert (third.deliveries, third.attempts) == (2, 2)


def test_a_retried_job_keeps_its_level(bench: Bench) -> None:
    """C-06."""
    consumer = bench.join(1)
    bench.put("x", priority=5)
    consumer.pull(recall=True)
    bench.queue.pause()
    consumer.retry("x")
    bench.put("y", priority=6)
    bench.queue.resume()
    (job,) = consumer.pull()
    assert job.id == "y"
    consumer.ack(job)
    assert ids(consumer.pull()) == ["x"]


def test_four_consumers_share_a_queue_and_take_nothing_twice(bench: Bench) -> None:
    """C-34, C-18."""
    names = [f"{i:03}" for i in range(300)]
    bench.put(*names)
    consumers = [bench.join(7) for _ in range(4)]
    seen: list[str] = []
    held = {c: c.pull() for c in consumers}
    while any(held.values()):
        for consumer in consumers:
            seen += ids(held[consumer])
            held[consumer] = consumer.settle(ack=held[consumer], pull=True)
    assert sorted(seen) == names
    assert bench.queue.counts().held == 0


def test_a_settle_of_what_is_not_held_changes_nothing(bench: Bench) -> None:
    """H-08: it is named, and the others count."""
    bench.put("A", "B")
    first, second = bench.join(1), bench.join(1)
    first.pull()
    second.pull()
    before = bench.look()
    assert first.ack("B") is False
    assert first.ack("never") is False
    wrong = invariants.unchanged(before, bench.look())
    assert not wrong
    first.settle(ack=["A", "B", "A"])
    assert first.refused == ["B", "A"]


def test_a_cancelled_job_is_taken_from_its_consumer(bench: Bench) -> None:
    """X-04: who has it is told, and its settle changes nothing."""
    bench.put("A")
    consumer = bench.join(1)
    (job,) = consumer.pull()
    assert bench.queue.cancel("A")
    (wake,) = consumer.wait(1)
    assert (wake.kind, wake.id) == ("revoked", "A")
    assert consumer.ack(job) is False
    assert bench.queue.job("A").state() is JobState.CANCELLED


def test_jobs_in_somebody_s_hands_are_purged(bench: Bench) -> None:
    """X-04: many in one step, from anywhere in the hands; what lives elsewhere is named."""
    names = [f"{i:03}" for i in range(400)]
    bench.put(*names, "dead", "later", "waits")
    consumer, other = bench.join(401, bytes=1_000_000), bench.join(1)
    held = consumer.pull()
    consumer.settle(ack=["000"], reject=[("dead", {})])
    assert ids(other.pull()) == ["later"]
    some = [*names[:100:7], *names[150:250], *names[390:]]
    gone = some[1:]
    asked = [*some, "399", "dead", "later", "waits", "never"]
    assert bench.purge_held(consumer, *asked) == (len(gone), ["later", "waits"])
    assert bench.told(consumer) == [b"X" + id.encode() for id in gone]
    assert [(wake.kind, wake.id) for wake in consumer.wait(1)] == [("revoked", gone[0])]
    assert {str(bench.queue.job(id).state()) for id in gone} == {"purged"}
    left = [job for job in held if job.id not in {*some, "dead"}]
    consumer.settle(ack=[*gone[:3], *ids(left)])
    assert consumer.refused == gone[:3]
    look = bench.look()
    assert look.consumers[consumer.name]["held_bytes"] == "0"
    rows = [row for row in look.history if row["outcome"] == "purged"]
    assert [row["id"] for row in rows] == gone
    assert {row["worker"] for row in rows} == {look.consumers[consumer.name]["worker"]}


def test_a_job_in_somebody_s_hands_can_be_left_alone(bench: Bench) -> None:
    """C-25, C-36."""
    bench.put("A")
    consumer = bench.join(1)
    consumer.pull()
    assert bench.queue.cancel("A", held=False) is False
    assert consumer.ack("A")


def test_a_job_is_cancelled_once(bench: Bench) -> None:
    """C-25."""
    bench.put("x", "y")
    assert [bench.queue.cancel(id) for id in ("x", "x", "zz")] == [True, False, False]
    assert ids(bench.join().pull()) == ["y"]


def test_an_id_is_taken_once_while_its_record_lasts(bench: Bench) -> None:
    """A-39."""
    assert bench.put("A").created
    assert not bench.put("A").created
    consumer = bench.join()
    consumer.settle(ack=consumer.pull())
    assert not bench.put("A").created
    assert bench.queue.counts().ready == 0


def test_the_life_of_a_consumer(bench: Bench) -> None:
    """C-02."""
    consumer = bench.queue.consumer(renew=False)
    with pytest.raises(NotRegistered):
        consumer.pull()
    consumer.register()
    with pytest.raises(LifecycleError):
        consumer.register()
    consumer.close()
    with pytest.raises(NotRegistered):
        consumer.pull()
    consumer.close()


def test_a_consumer_of_a_dropped_term_is_told(bench: Bench) -> None:
    """H-08."""
    consumer = bench.join(1)
    consumer.term = "999"
    with pytest.raises(RegistrationLost):
        consumer.pull()


def test_browsing_takes_nothing_and_ends_at_the_tail(bench: Bench) -> None:
    """Q-29, Q-24."""
    browser = bench.join(100, mode="browse")
    assert browser.pull() == []
    bench.put(*"12345")
    assert ids(browser.pull()) == list("12345")
    assert browser.pull() == []
    got = bench.join().pull()
    assert ids(got) == list("12345")
    assert {job.deliveries for job in got} == {0}


def test_a_browser_is_not_sent_back_by_a_release(bench: Bench) -> None:
    """Q-04."""
    bench.put(*"12345")
    consumer = bench.join(2)
    consumer.pull()
    browser = bench.join(100, mode="browse")
    assert ids(browser.pull()) == list("345")
    consumer.settle(release=["1", "2"])
    bench.put("6")
    assert ids(browser.pull()) == ["6"]
    assert ids(bench.join(100, mode="browse").pull()) == list("123456")


def test_listing_leaves_out_what_is_gone(bench: Bench) -> None:
    """Q-69."""
    bench.put(*"0123")
    bench.queue.cancel("1")
    assert ids(bench.join(10, mode="browse").pull()) == list("023")
    assert bench.queue.counts().ready == 3


def test_a_browser_pages_through_all_levels_in_order(bench: Bench) -> None:
    """Q-69, Q-10."""
    for i in range(50):
        bench.put(f"{i:02}", priority=4 + i % 2)
    browser = bench.join(7, mode="browse")
    seen: list[str] = []
    while page := ids(browser.pull()):
        seen += page
    assert seen == [f"{i:02}" for i in [*range(1, 50, 2), *range(0, 50, 2)]]


def test_purging_empties_the_queue_and_leaves_hands_alone(bench: Bench) -> None:
    """Q-69, X-04."""
    bench.put(*"0123")
    bench.put("later", delay_ms=60_000)
    consumer = bench.join(1)
    consumer.pull()
    bench.queue.cancel("1")
    assert bench.purge() == 3
    counts = bench.queue.counts()
    assert (counts.ready, counts.scheduled, counts.held) == (0, 0, 1)
    assert bench.queue.job("2").state() is JobState.PURGED
    assert consumer.ack("0")
    assert [row["outcome"] for row in bench.look().history] == ["cancelled"] + ["purged"] * 3 + [
        "ack"
    ]


def test_delivery_counts(bench: Bench) -> None:
    """A-20, A-19: browsing counts nothing, giving back is no attempt, failing is one."""
    bench.queue.configure(max_deliveries=100)
    bench.put(*"0123456789")
    browser = bench.join(10, mode="browse")
    assert {job.deliveries for job in browser.pull()} == {0}
    for round_ in range(5):
        consumer = bench.join(10)
        got = consumer.pull()
        assert "".join(ids(got)) == "0123456789"
        assert {(job.deliveries, job.attempts) for job in got} == {(round_, 0)}
        consumer.close()
    consumer = bench.join(10)
    for round_ in range(5):
        got = consumer.pull()
        assert "".join(ids(got)) == "0123456789"
        assert {job.attempts for job in got} == {round_}
        for job in reversed(got):
            consumer.retry(job)


def test_a_job_given_back_for_ever_never_dies(bench: Bench) -> None:
    """A-20, A-22."""
    bench.put("A")
    consumer = bench.join(1)
    for round_ in range(300):
        (job,) = consumer.pull()
        if round_ % 50 == 49:
            consumer.retry(job)
        else:
            consumer.release(job)
    (job,) = consumer.pull()
    assert (job.deliveries, job.attempts) == (300, 6)


def test_a_retry_of_what_was_cancelled_while_it_waited_is_refused(bench: Bench) -> None:
    """H-18: the outcome came late, the job had gone back and was cancelled there."""
    bench.put("A", "B")
    consumer = bench.join(1)
    consumer.pull()
    assert bench.queue.cancel("B")
    call = commands.settle(
        bench.queue.keys,
        consumer.name,
        consumer.term,
        None,
        retry=[commands.Retried("B", 0, "old", True, b"{}", 0)],
    )
    assert execute(bench.queue.redis, call).refused == [b"B"]
