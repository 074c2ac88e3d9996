"""What becomes of a job in a worker process: each way to end, and what is kept of it."""

import re
from typing import Any

import orjson
import pytest

from rqueue.cli.root import cli
from rqueue.errors import JobFailed
from rqueue.model.causes import why_dead
from rqueue.model.envelope import pack
from rqueue.model.ids import new_id
from rqueue.model.job import parse_value
from rqueue.model.signing import SIGNED_WITHIN_MS
from rqueue.protocol.commands.enqueue import Put
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.tasks.retry import RetryPolicy
from rqueue.testing import move_time
from tests.support.command_line import runner
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually


def dead(workers: WorkerFixture, id_: str) -> dict[str, object]:
    keys = workers.queue.keys
    cause = eventually(lambda: workers.redis.hget(keys.causes, id_), "a dead letter")
    return orjson.loads(cause)


def rows_of(workers: WorkerFixture, id_: str) -> list[dict[str, object]]:
    return [row for row in workers.history() if row["id"] == id_]


def test_results_come_back(workers: WorkerFixture) -> None:
    workers.child()
    assert workers.result("c.echo", {"a": [1, None, "ü"]}) == {"a": [1, None, "ü"]}
    assert workers.result("c.noop") is None
    kwargs = workers.queue.send("c.echo", (), {"value": 7})
    assert kwargs.result(PATIENCE) == 7


def test_a_failure_comes_again_until_it_succeeds(workers: WorkerFixture) -> None:
    workers.child()
    job = workers.send("c.flaky", f"{workers.name}:n", 2)
    assert job.result(PATIENCE) == "at last"
    rows = eventually(lambda: len(found := rows_of(workers, job.id)) == 3 and found, "three rows")
    assert [row["outcome"] for row in rows] == ["retry", "retry", "ack"]
    assert [row["attempts"] for row in rows] == [0, 1, 2]
    assert [row["deliveries"] for row in rows] == [0, 1, 2]
    assert rows[0]["error"] == "tests.workers.child_app.OddError"
    assert rows[2]["result_size"] == len(b'"at last"')


def test_the_last_attempt_is_followed_by_death_and_says_why(workers: WorkerFixture) -> None:
    worker = workers.child()
    job = workers.send("c.fail", "broken pipe", max_deliveries=3)
    with pytest.raises(JobFailed):
        job.result(PATIENCE)
    cause = dead(workers, job.id)
    assert cause["type"] == "tests.workers.child_app.OddError"
    assert cause["message"] == "broken pipe"
    assert cause["attempt"] == 3
    assert cause["kind"] == "exception"
    assert cause["worker"] == worker.base
    assert "raise OddError(message)" in str(cause["traceback"])
    assert "main_thread" not in str(cause["traceback"])
    rows = [row for row in rows_of(workers, job.id) if row["worker"]]
    assert [row["outcome"] for row in rows] == ["retry", "retry", "dead"]


def test_the_task_says_how_often(workers: WorkerFixture) -> None:
    workers.child()
    job = workers.send("c.fail_once_at_most")
    assert dead(workers, job.id)["attempt"] == 1


def test_the_job_says_how_often(workers: WorkerFixture) -> None:
    workers.child()
    job = workers.send("c.fail", "no", retry=RetryPolicy(max_deliveries=2, delay=0))
    assert dead(workers, job.id)["attempt"] == 2


def test_the_queue_says_how_often(workers: WorkerFixture) -> None:
    workers.queue.configure(max_deliveries=2)
    workers.child()
    job = workers.send("c.fail", "no")
    assert dead(workers, job.id)["attempt"] == 2


def test_a_rule_of_the_policy_ends_the_attempts(workers: WorkerFixture) -> None:
    workers.child()
    key = f"{workers.name}:k"
    job = workers.send("c.picky", key)
    assert dead(workers, job.id)["type"] == "KeyError"
    assert workers.redis.llen(key) == 2


def test_retry_waits_and_is_counted(workers: WorkerFixture) -> None:
    workers.child()
    key = f"{workers.name}:k"
    job = workers.send("c.retry", key, 0.05)
    assert workers.hear(key) == "0"
    assert workers.hear(key) == "1"
    workers.settled()
    first, second = rows_of(workers, job.id)
    assert (first["outcome"], first["error"]) == ("retry", "Retry")
    assert second["acquired"] - first["finished"] >= 45  # type: ignore[operator]


def test_snooze_waits_and_is_not_counted(workers: WorkerFixture) -> None:
    workers.child()
    key = f"{workers.name}:k"
    job = workers.send("c.snooze", key, 0.02)
    assert workers.hear(key) == "1,0"
    assert workers.hear(key) == "2,0"
    workers.settled()
    assert [(row["outcome"], row["error"]) for row in rows_of(workers, job.id)] == [
        ("snooze", "Snooze: too early"),
        ("ack", ""),
    ]


def test_a_job_that_is_put_off_shows_its_reason(workers: WorkerFixture) -> None:
    workers.child()
    job = workers.send("c.snooze", f"{workers.name}:k", 600)
    eventually(lambda: workers.counts().scheduled == 1, "the snooze")
    command = ["show", job.id, "-q", workers.queue.name, "--url", workers.url]
    said = runner().invoke(cli, command).output
    assert re.search(r"put off +Snooze: too early", said)
    document = orjson.loads(runner().invoke(cli, [*command, "--json"]).output)
    assert document["put_off"] == "Snooze: too early"


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
    workers: WorkerFixture, call: tuple[str, ...], most: int, why: str
) -> None:
    workers.child()
    job = workers.send(*call, max_deliveries=most)
    with pytest.raises(JobFailed) as failed:
        job.result(PATIENCE)
    assert failed.value.why == why
    assert why_dead(dead(workers, job.id)) == why
    last = [row["outcome"] for row in rows_of(workers, job.id)][-1]
    assert last == "dead"


def test_reject_is_final(workers: WorkerFixture) -> None:
    workers.child()
    job = workers.send("c.reject")
    cause = dead(workers, job.id)
    assert (cause["kind"], cause["message"]) == ("rejected", "no such user")


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize(
    ("task", "args", "kwargs"),
    [
        ("c.fail", (), {}),
        ("c.fail", ("no",), {"other": 1}),
        ("c.afail", (1, 2, 3), {}),
        ("c.spin", (1,), {}),
        ("c.aspin", (1,), {}),
    ],
)
def test_a_call_that_can_never_fit_is_dead_at_once(
    workers: WorkerFixture,
    threads: int,
    task: str,
    args: tuple[object, ...],
    kwargs: dict[str, Any],
) -> None:
    child = workers.child(threads=threads)
    job = workers.queue.send(task, args, kwargs, Options(max_deliveries=5))
    cause = dead(workers, job.id)
    assert (cause["type"], cause["attempt"]) == ("rqueue.errors.BadArguments", 1)
    assert f"task '{task}' takes (" in str(cause["message"])
    assert why_dead(cause) == "gave up"
    assert f"{job.id} of {task} failed for good after 1 attempt" in child.log


def test_a_type_error_of_the_function_itself_comes_again(workers: WorkerFixture) -> None:
    workers.child()
    job = workers.send("c.misuse", max_deliveries=2)
    assert dead(workers, job.id)["attempt"] == 2


def test_what_failed_for_good_is_an_error_in_the_log(workers: WorkerFixture) -> None:
    child = workers.child(
        settings=Settings(url=workers.url, signing_keys={"k": "0123456789abcdef"})
    )
    job = workers.queue.enqueue("c.noop")
    assert dead(workers, job.id)["kind"] == "forged"
    assert f"ERROR: job {job.id}: it is not signed" in child.log
    child.leave()
    child = workers.child()
    job = workers.send("c.reject")
    assert dead(workers, job.id)["kind"] == "rejected"
    assert f"ERROR: job {job.id} of c.reject rejected itself" in child.log


def test_a_result_that_is_not_json_is_a_failure_for_good(workers: WorkerFixture) -> None:
    workers.child()
    job = workers.send("c.odd_result")
    cause = dead(workers, job.id)
    assert cause["type"] == "rqueue.errors.NotEncodable"
    assert "bytes" in str(cause["message"])


def test_a_job_that_leaves_the_program_has_failed(workers: WorkerFixture) -> None:
    worker = workers.child()
    job = workers.send("c.leave", max_deliveries=1)
    assert dead(workers, job.id)["type"] == "SystemExit"
    assert workers.result("c.pid") == worker.pid


def test_what_cannot_be_decoded_goes_to_the_dead_letters_as_it_is(workers: WorkerFixture) -> None:
    workers.child()
    for body in (
        b"\x00\xff garbage",
        b'[2,"c.noop"]',
        b'{"c.noop":1}',
        b'"c.noop"',
        b'["c.noop",7]',
        b'["c.noop",[],{},[]]',
    ):
        id_ = new_id()
        workers.queue.enqueue_puts([Put(id_, body)])
        assert dead(workers, id_)["kind"] == "undecodable"
        assert workers.redis.hget(workers.queue.keys.jobs, id_).endswith(b";" + body)
    workers.queue.pause()
    good, bad, other = (workers.send("c.echo", number) for number in range(3))
    raw = b'abc,def;["x",[],{"a":"b"}]'
    workers.redis.hset(workers.queue.keys.jobs, bad.id, raw)
    workers.queue.resume()
    assert dead(workers, bad.id)["kind"] == "undecodable"
    assert workers.redis.hget(workers.queue.keys.jobs, bad.id).endswith(b";" + raw)
    assert [good.result(PATIENCE), other.result(PATIENCE)] == [0, 2]
    assert workers.result("c.echo", 1) == 1


def test_a_result_that_is_too_large_is_refused_with_a_remedy(workers: WorkerFixture) -> None:
    workers.child(settings=Settings(url=workers.url, lease_ms=600_000, max_body=1024))
    cause = dead(workers, workers.send("c.echo", "x" * 2000).id)
    assert cause["message"] == (
        "result of task 'c.echo': 2,002 bytes, at most 1,024 fit: store the data elsewhere and "
        "return a reference, or raise RQUEUE_MAX_BODY (setting max_body)"
    )


def test_signed_jobs_run_and_all_others_are_refused(workers: WorkerFixture) -> None:
    keys = {"k1": "0123456789abcdef"}
    settings = Settings(url=workers.url, lease_ms=600_000, signing_keys=keys)
    workers.child(settings=settings)
    unsigned = workers.send("c.echo", 1)
    cause = dead(workers, unsigned.id)
    assert cause["kind"] == "forged"
    assert cause["message"] == "it is not signed, and this worker runs signed jobs only"
    forged = new_id()
    workers.queue.enqueue_puts([Put(forged, b"Sk1.AAAA." + pack("c.echo", (2,)))])
    cause = dead(workers, forged)
    assert (cause["kind"], cause["type"]) == ("forged", "rqueue.errors.Forged")
    signing = type(workers.queue)(workers.name, redis=workers.redis, settings=settings)
    assert signing.send("c.echo", (3,)).result(PATIENCE) == 3


def test_a_signature_covers_what_the_queue_knows_of_a_job(workers: WorkerFixture) -> None:
    """A client that writes to Redis cannot move a signed job forward, or run it again or early."""
    settings = Settings(
        url=workers.url, lease_ms=7_200_000, signing_keys={"k1": "0123456789abcdef"}
    )
    signing = type(workers.queue)(workers.name, redis=workers.redis, settings=settings)
    jobs = workers.queue.keys.jobs
    lifted = signing.send("c.echo", (1,), options=Options(priority=3))
    value = workers.redis.hget(jobs, lifted.id)
    workers.redis.hset(jobs, lifted.id, value.replace(b",3,", b",9,", 1))
    copied = signing.send("c.echo", (2,))
    _, envelope = parse_value(workers.redis.hget(jobs, copied.id))
    later = signing.send("c.echo", (4,), options=Options(delay_ms=3_600_000))
    workers.child(settings=settings)
    assert "it is for priority 3, the job has 9" in dead(workers, lifted.id)["message"]
    assert copied.result(PATIENCE) == 2
    # all that is left of it goes, as it would in ten minutes; then the copy is put in again
    workers.redis.delete(workers.queue.keys.ended, workers.queue.keys.ended_old)
    move_time(workers.queue, SIGNED_WITHIN_MS + 1000)
    workers.queue.enqueue_puts([Put(copied.id, envelope)])
    assert "enqueued again from a copy" in dead(workers, copied.id)["message"]
    # promoted by a client without keys it goes back, by a client that has them it runs
    assert workers.queue.promote(later.id) == 1
    eventually(lambda: workers.counts().scheduled == 1, "the job to wait again")
    assert signing.promote(later.id) == 1
    assert later.result(PATIENCE) == 4


def test_signed_jobs_of_all_priorities_run_where_a_queue_has_few_levels(
    workers: WorkerFixture,
) -> None:
    settings = Settings(url=workers.url, signing_keys={"k1": "0123456789abcdef"})
    signing = type(workers.queue)(workers.name, redis=workers.redis, settings=settings)
    signing.configure(priorities=3)
    jobs = [signing.send("c.echo", (p,), options=Options(priority=p)) for p in range(10)]
    workers.child(settings=settings)
    assert [job.result(PATIENCE) for job in jobs] == list(range(10))


def test_a_job_knows_itself(workers: WorkerFixture) -> None:
    worker = workers.child()
    job = workers.send("c.context", "x", headers={"trace": "abc"})
    context = job.result(PATIENCE)
    assert context == {
        "id": job.id,
        "task": "c.context",
        "queue": workers.name,
        "delivery": 1,
        "headers": {"trace": "abc"},
        "worker": worker.base,
        "thread": "MainThread",
    }


def test_rows_say_what_happened_and_when(workers: WorkerFixture) -> None:
    worker = workers.child()
    job = workers.send("c.echo", "four", priority=7)
    job.result(PATIENCE)
    (row,) = eventually(lambda: workers.history(), "history")
    assert row["id"] == job.id
    assert (row["task"], row["queue"], row["outcome"]) == ("c.echo", workers.name, "ack")
    assert (row["level"], row["attempts"], row["deliveries"]) == (7, 0, 0)
    assert row["worker"] == worker.base
    assert row["result_size"] == 6
    assert row["body_size"] == len(pack("c.echo", ("four",)))
    now = workers.counts().now
    times = [row[name] for name in ("enqueued", "acquired", "started", "finished")]
    assert times == sorted(times)
    assert now - 10_000 < times[0] <= times[-1] <= now + 5


def test_history_has_one_row_for_each_of_many_jobs(workers: WorkerFixture) -> None:
    ids = [workers.send("c.noop").id for _ in range(300)]
    workers.child()
    workers.settled()
    rows = workers.history()
    assert [row["id"] for row in rows] == ids
    assert {row["outcome"] for row in rows} == {"ack"}


def test_an_app_that_cannot_be_imported_is_one_line_and_exit_code_1(workers: WorkerFixture) -> None:
    worker = workers.child(app=("tests.workers.no_such_module",), ready=False)
    assert worker.wait() == 1
    assert "no_such_module" in worker.page.words
    assert "\n" not in worker.page.words


@pytest.mark.parametrize("threads", [0, 1])
def test_the_log_of_a_failure_has_its_type_and_its_traceback(
    workers: WorkerFixture, threads: int
) -> None:
    child = workers.child(threads=threads)
    workers.send("c.fail_once_at_most")
    eventually(lambda: workers.counts().dead == 1, "its death")
    said = "failed for good after 1 attempt: tests.workers.child_app.OddError: once\n  Traceback "
    eventually(lambda: said in child.log, "the log")
    assert 'raise OddError("once")' in child.log
    assert "main_thread.py" not in child.log and "threads.py" not in child.log
