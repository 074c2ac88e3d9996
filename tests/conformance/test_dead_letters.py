"""Jobs that fail too often, or for good."""

import orjson
import pytest

from rqueue.errors import JobFailed
from rqueue.model.job import JobState
from tests.support.bench import Bench, ids


def fail_all(bench: Bench, rounds: int) -> list[list[str]]:
    """Take everything and fail it, so many times; what came in each round."""
    consumer = bench.join()
    seen = []
    for round_ in range(rounds):
        jobs = consumer.pull()
        seen.append(ids(jobs))
        for job in jobs:
            consumer.retry(job, error={"type": "ValueError", "message": f"round {round_}"})
    consumer.close()
    return seen


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_the_last_attempt_is_followed_by_the_dead_letters(bench: Bench, attempts: int) -> None:
    """A-22."""
    bench.put("A", max_deliveries=attempts)
    assert fail_all(bench, attempts + 1) == [["A"]] * attempts + [[]]
    assert bench.queue.job("A").state() is JobState.DEAD
    with pytest.raises(JobFailed, match=f"round {attempts - 1}"):
        bench.queue.job("A").result(0)


def test_the_queue_s_limit_holds_for_jobs_without_their_own(bench: Bench) -> None:
    """A-22."""
    bench.queue.configure(max_deliveries=2)
    bench.put("plain")
    bench.put("own", max_deliveries=3)
    assert fail_all(bench, 4) == [["plain", "own"], ["plain", "own"], ["own"], []]


def test_without_a_limit_nothing_dies(bench: Bench) -> None:
    """A-22."""
    bench.queue.configure(max_deliveries=0)
    bench.put("A")
    assert fail_all(bench, 50) == [["A"]] * 50
    assert bench.queue.counts().dead == 0


def test_order_holds_in_every_round_and_in_the_dead_letters(bench: Bench) -> None:
    """A-22, A-19: with the id and the envelope it was enqueued with."""
    bench.put(*"01234", max_deliveries=16)
    envelopes = {id: value.partition(b";")[2] for id, value in bench.look().jobs.items()}
    assert fail_all(bench, 16) == [list("01234")] * 16
    after = bench.look()
    assert sorted(after.scores("dead")) == list("01234")
    assert {id: value.partition(b";")[2] for id, value in after.jobs.items()} == envelopes


def test_every_attempt_s_error_is_kept(bench: Bench) -> None:
    """A-22."""
    bench.put("A", max_deliveries=3)
    fail_all(bench, 3)
    lines = bench.look().hash("errors")[b"A"].splitlines()
    assert [orjson.loads(line)["message"] for line in lines] == ["round 0", "round 1", "round 2"]


def test_a_rejected_job_is_dead_at_once_with_the_reason(bench: Bench) -> None:
    """Q-56."""
    bench.put("A")
    consumer = bench.join()
    (job,) = consumer.pull()
    consumer.reject(job, "no such customer")
    cause = orjson.loads(bench.look().hash("causes")[b"A"])
    assert (cause["message"], cause["kind"]) == ("no such customer", "rejected")


def test_a_dead_letter_lives_again_at_the_tail(bench: Bench) -> None:
    """A-38: with its attempts counted from nothing."""
    bench.put("A", max_deliveries=1)
    fail_all(bench, 1)
    bench.put("B")
    assert bench.requeue("A", "B", "never") == 1
    assert bench.queue.job("A").state() is JobState.READY
    first, second = bench.join().pull()
    assert (first.id, second.id) == ("B", "A")
    assert second.attempts == 0
    assert bench.queue.counts().dead == 0


def test_who_waits_is_told_of_a_dead_letter_that_lives_again(bench: Bench) -> None:
    """A-38, Q-37."""
    bench.put("A", max_deliveries=1)
    consumer = bench.join(2)
    consumer.pull()
    consumer.retry("A")
    assert consumer.pull() == []
    bench.requeue("A")
    assert bench.state(consumer) == "notified"


def test_a_dead_letter_s_id_stays_taken(bench: Bench) -> None:
    """A-39."""
    bench.put("A", max_deliveries=1)
    fail_all(bench, 1)
    assert not bench.put("A").created
