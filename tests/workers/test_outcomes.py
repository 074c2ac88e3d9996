"""What becomes of a job in a worker process: each way to end, and what is kept of it."""

from pathlib import Path

import orjson
import pytest

from rqueue.errors import JobFailed
from rqueue.model.envelope import pack
from rqueue.model.ids import new_id
from rqueue.model.job import parse_value, why_dead
from rqueue.model.signing import SIGNED_WITHIN_MS
from rqueue.protocol.commands.enqueue import Put
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.tasks.retry import RetryPolicy
from rqueue.testing import move_time
from tests.workers.children import Bench, eventually


def dead(bench: Bench, id_: str) -> dict[str, object]:
    keys = bench.queue.keys
    cause = eventually(lambda: bench.redis.hget(keys.causes, id_), "a dead letter")
    return orjson.loads(cause)


def rows_of(bench: Bench, id_: str) -> list[dict[str, object]]:
    return [row for row in bench.history() if row["id"] == id_]


def test_results_come_back(bench: Bench) -> None:
    bench.child()
    assert bench.result("c.echo", {"a": [1, None, "ü"]}) == {"a": [1, None, "ü"]}
    assert bench.result("c.noop") is None
    kwargs = bench.queue.send("c.echo", (), {"value": 7})
    assert kwargs.result(10) == 7


def test_a_failure_comes_again_until_it_succeeds(bench: Bench) -> None:
    bench.child()
    job = bench.send("c.flaky", f"{bench.name}:n", 2)
    assert job.result(10) == "at last"
    rows = eventually(lambda: len(found := rows_of(bench, job.id)) == 3 and found, "three rows")
    assert [row["outcome"] for row in rows] == ["retry", "retry", "ack"]
    assert [row["attempts"] for row in rows] == [0, 1, 2]
    assert [row["deliveries"] for row in rows] == [0, 1, 2]
    assert rows[0]["error"] == "tests.workers.child_app.OddError"
    assert rows[2]["result_size"] == len(b'"at last"')


def test_the_last_attempt_is_followed_by_death_and_says_why(bench: Bench) -> None:
    worker = bench.child()
    job = bench.send("c.fail", "broken pipe", max_deliveries=3)
    with pytest.raises(JobFailed):
        job.result(10)
    cause = dead(bench, job.id)
    assert cause["type"] == "tests.workers.child_app.OddError"
    assert cause["message"] == "broken pipe"
    assert cause["attempt"] == 3
    assert cause["kind"] == "exception"
    assert cause["worker"] == worker.base
    assert "raise OddError(message)" in str(cause["traceback"])
    assert "main_lane" not in str(cause["traceback"])
    rows = [row for row in rows_of(bench, job.id) if row["worker"]]
    assert [row["outcome"] for row in rows] == ["retry", "retry", "dead"]


def test_the_task_says_how_often(bench: Bench) -> None:
    bench.child()
    job = bench.send("c.fail_once_at_most")
    assert dead(bench, job.id)["attempt"] == 1


def test_the_job_says_how_often(bench: Bench) -> None:
    bench.child()
    job = bench.send("c.fail", "no", retry=RetryPolicy(max_deliveries=2, delay=0))
    assert dead(bench, job.id)["attempt"] == 2


def test_the_queue_says_how_often(bench: Bench) -> None:
    bench.queue.configure(max_deliveries=2)
    bench.child()
    job = bench.send("c.fail", "no")
    assert dead(bench, job.id)["attempt"] == 2


def test_a_rule_of_the_policy_ends_the_attempts(bench: Bench) -> None:
    bench.child()
    key = f"{bench.name}:k"
    job = bench.send("c.picky", key)
    assert dead(bench, job.id)["type"] == "KeyError"
    assert bench.redis.llen(key) == 2


def test_retry_waits_and_is_counted(bench: Bench) -> None:
    bench.child()
    key = f"{bench.name}:k"
    job = bench.send("c.retry", key, 0.05)
    assert bench.hear(key) == "0"
    assert bench.hear(key) == "1"
    bench.settled()
    first, second = rows_of(bench, job.id)
    assert (first["outcome"], first["error"]) == ("retry", "Retry")
    assert second["acquired"] - first["finished"] >= 45  # type: ignore[operator]


def test_snooze_waits_and_is_not_counted(bench: Bench) -> None:
    bench.child()
    key = f"{bench.name}:k"
    job = bench.send("c.snooze", key, 0.02)
    assert bench.hear(key) == "1,0"
    assert bench.hear(key) == "2,0"
    bench.settled()
    assert [row["outcome"] for row in rows_of(bench, job.id)] == ["snooze", "ack"]


@pytest.mark.parametrize(
    ("call", "most", "why"),
    [
        (("c.fail", "x"), 1, "exhausted"),
        (("c.fail", "x"), 2, "exhausted"),
        (("c.reject",), 5, "gave up"),
        (("c.picky", "why:picky"), 5, "gave up"),
        (("c.odd_result",), 5, "gave up"),
    ],
    ids=lambda value: str(value[0]) if isinstance(value, tuple) else str(value),
)
def test_history_calls_it_dead_and_the_letter_says_why(
    bench: Bench, call: tuple[str, ...], most: int, why: str
) -> None:
    bench.child()
    job = bench.send(*call, max_deliveries=most)
    with pytest.raises(JobFailed) as failed:
        job.result(10)
    assert failed.value.why == why
    assert why_dead(dead(bench, job.id)) == why
    last = [row["outcome"] for row in rows_of(bench, job.id)][-1]
    assert last == "dead"


def test_reject_is_final(bench: Bench) -> None:
    bench.child()
    job = bench.send("c.reject")
    cause = dead(bench, job.id)
    assert (cause["kind"], cause["message"]) == ("rejected", "no such user")


def test_a_result_that_is_not_json_is_a_failure_for_good(bench: Bench) -> None:
    bench.child()
    job = bench.send("c.odd_result")
    cause = dead(bench, job.id)
    assert cause["type"] == "rqueue.errors.NotEncodable"
    assert "set" in str(cause["message"])


def test_a_job_that_leaves_the_program_has_failed(bench: Bench) -> None:
    worker = bench.child()
    job = bench.send("c.leave", max_deliveries=1)
    assert dead(bench, job.id)["type"] == "SystemExit"
    assert bench.result("c.pid") == worker.pid


def test_what_cannot_be_decoded_goes_to_the_dead_letters_as_it_is(bench: Bench) -> None:
    bench.child()
    for body in (
        b"\x00\xff garbage",
        b'[2,"c.noop"]',
        b'{"c.noop":1}',
        b'"c.noop"',
        b'["c.noop",7]',
        b'["c.noop",[],{},[]]',
    ):
        id_ = new_id()
        bench.queue.enqueue_puts([Put(id_, body)])
        assert dead(bench, id_)["kind"] == "undecodable"
        assert bench.redis.hget(bench.queue.keys.jobs, id_).endswith(b";" + body)
    bench.queue.pause()
    good, bad, other = (bench.send("c.echo", number) for number in range(3))
    raw = b'abc,def;["x",[],{"a":"b"}]'
    bench.redis.hset(bench.queue.keys.jobs, bad.id, raw)
    bench.queue.resume()
    assert dead(bench, bad.id)["kind"] == "undecodable"
    assert bench.redis.hget(bench.queue.keys.jobs, bad.id).endswith(b";" + raw)
    assert [good.result(10), other.result(10)] == [0, 2]
    assert bench.result("c.echo", 1) == 1


def test_a_result_that_is_too_large_is_refused_with_a_remedy(bench: Bench) -> None:
    bench.child(settings=Settings(url=bench.url, lease_ms=600_000, max_body=1024))
    cause = dead(bench, bench.send("c.echo", "x" * 2000).id)
    assert cause["message"] == (
        "result of task 'c.echo': 2,002 bytes, at most 1,024 fit: store the data elsewhere and "
        "return a reference, or raise RQUEUE_MAX_BODY (setting max_body)"
    )


def test_signed_jobs_run_and_all_others_are_refused(bench: Bench) -> None:
    keys = {"k1": "0123456789abcdef"}
    settings = Settings(url=bench.url, lease_ms=600_000, signing_keys=keys)
    bench.child(settings=settings)
    unsigned = bench.send("c.echo", 1)
    cause = dead(bench, unsigned.id)
    assert cause["kind"] == "forged"
    assert cause["message"] == "it is not signed, and this worker runs signed jobs only"
    forged = new_id()
    bench.queue.enqueue_puts([Put(forged, b"Sk1.AAAA." + pack("c.echo", (2,)))])
    cause = dead(bench, forged)
    assert (cause["kind"], cause["type"]) == ("forged", "rqueue.errors.Forged")
    signing = type(bench.queue)(bench.name, redis=bench.redis, settings=settings)
    assert signing.send("c.echo", (3,)).result(10) == 3


def test_a_signature_covers_what_the_queue_knows_of_a_job(bench: Bench) -> None:
    """Whoever writes to Redis cannot move a signed job forward, or run it again or early."""
    settings = Settings(url=bench.url, lease_ms=7_200_000, signing_keys={"k1": "0123456789abcdef"})
    signing = type(bench.queue)(bench.name, redis=bench.redis, settings=settings)
    jobs = bench.queue.keys.jobs
    lifted = signing.send("c.echo", (1,), options=Options(priority=3))
    value = bench.redis.hget(jobs, lifted.id)
    bench.redis.hset(jobs, lifted.id, value.replace(b",3,", b",9,", 1))
    copied = signing.send("c.echo", (2,))
    _, envelope = parse_value(bench.redis.hget(jobs, copied.id))
    later = signing.send("c.echo", (4,), options=Options(delay_ms=3_600_000))
    bench.child(settings=settings)
    assert "it is for priority 3, the job has 9" in dead(bench, lifted.id)["message"]
    assert copied.result(10) == 2
    # all that is left of it goes, as it would in ten minutes; then the copy is put in again
    bench.redis.delete(bench.queue.keys.ended, bench.queue.keys.ended_old)
    move_time(bench.queue, SIGNED_WITHIN_MS + 1000)
    bench.queue.enqueue_puts([Put(copied.id, envelope)])
    assert "enqueued again from a copy" in dead(bench, copied.id)["message"]
    # promoted by somebody without keys it goes back, by somebody who has them it runs
    assert bench.queue.promote(later.id) == 1
    eventually(lambda: bench.counts().scheduled == 1, "the job to wait again")
    assert signing.promote(later.id) == 1
    assert later.result(10) == 4


def test_signed_jobs_of_all_priorities_run_where_a_queue_has_few_levels(bench: Bench) -> None:
    settings = Settings(url=bench.url, signing_keys={"k1": "0123456789abcdef"})
    signing = type(bench.queue)(bench.name, redis=bench.redis, settings=settings)
    signing.configure(priorities=3)
    jobs = [signing.send("c.echo", (p,), options=Options(priority=p)) for p in range(10)]
    bench.child(settings=settings)
    assert [job.result(10) for job in jobs] == list(range(10))


def test_an_unknown_task_waits_for_a_worker_that_knows_it(bench: Bench, tmp_path: Path) -> None:
    old = bench.child(app=("tests.workers.child_app_old",))
    job = bench.send("c.echo", 5)
    behind = bench.send("old.only")
    assert behind.result(10) == "old"  # the jobs behind it pass
    eventually(lambda: bench.counts().parked == 1, "a parked job")
    assert bench.counts().dead == 0
    assert "c.echo" in old.log
    bench.child()  # the deploy: it takes at once what was waiting for it
    assert job.result(10) == 5
    (parked, done) = rows_of(bench, job.id)
    assert (parked["outcome"], parked["error"], done["outcome"]) == ("park", "UnknownTask", "ack")
    assert done["attempts"] == 0


def test_a_job_knows_itself(bench: Bench) -> None:
    worker = bench.child()
    job = bench.send("c.context", "x", headers={"trace": "abc"})
    told = job.result(10)
    assert told == {
        "id": job.id,
        "task": "c.context",
        "queue": bench.name,
        "delivery": 1,
        "headers": {"trace": "abc"},
        "worker": worker.base,
        "thread": "MainThread",
    }


def test_rows_say_what_happened_and_when(bench: Bench) -> None:
    worker = bench.child()
    job = bench.send("c.echo", "four", priority=7)
    job.result(10)
    (row,) = eventually(lambda: bench.history(), "history")
    assert row["id"] == job.id
    assert (row["task"], row["queue"], row["outcome"]) == ("c.echo", bench.name, "ack")
    assert (row["level"], row["attempts"], row["deliveries"]) == (7, 0, 0)
    assert row["worker"] == worker.base
    assert row["result_size"] == 6
    assert row["body_size"] == len(pack("c.echo", ("four",)))
    now = bench.counts().now
    times = [row[name] for name in ("enqueued", "acquired", "started", "finished")]
    assert times == sorted(times)
    assert now - 10_000 < times[0] <= times[-1] <= now + 5


def test_history_has_one_row_for_each_of_many_jobs(bench: Bench) -> None:
    ids = [bench.send("c.noop").id for _ in range(300)]
    bench.child()
    bench.settled()
    rows = bench.history()
    assert [row["id"] for row in rows] == ids
    assert {row["outcome"] for row in rows} == {"ack"}


def test_an_app_that_cannot_be_imported_is_one_line_and_exit_code_1(bench: Bench) -> None:
    worker = bench.child(app=("tests.workers.no_such_module",), ready=False)
    assert worker.wait() == 1
    assert "no_such_module" in worker.page.words
    assert "\n" not in worker.page.words


@pytest.mark.parametrize("threads", [0, 1])
def test_the_log_of_a_failure_has_its_type_and_its_traceback(bench: Bench, threads: int) -> None:
    child = bench.child(threads=threads)
    bench.send("c.fail_once_at_most")
    eventually(lambda: bench.counts().dead == 1, "its death")
    said = "failed for good after 1 attempt: tests.workers.child_app.OddError: once\nTraceback "
    eventually(lambda: said in child.log, "the log")
    assert 'raise OddError("once")' in child.log
    assert "main_lane.py" not in child.log and "threads.py" not in child.log
