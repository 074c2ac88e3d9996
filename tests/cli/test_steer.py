"""What changes something: enqueue, cancel, dead, pause, resume, purge, doctor."""

import json
import re

import orjson
import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.protocol import commands
from rqueue.tasks.options import Options
from tests.cli.looking import Make, Read, Run, fill


@pytest.fixture
def graves(queue: Queue, consumer: Make) -> list[str]:
    """Four dead letters."""
    one = consumer(jobs=4)
    causes = {
        "d1": ("app.send", {"type": "app.TimeoutError", "kind": "exception", "message": "slow"}),
        "d2": ("app.send", {"type": "ValueError", "kind": "exception", "message": "bad Input"}),
        "d3": ("app.make", {"type": "", "kind": "crash", "message": "signal 9"}),
        "d4": ("app.make", {"type": "ValueError", "traceback": "line 7, in f\nValueError: 'x'"}),
    }
    queue.enqueue_puts(
        [commands.Put(id_, orjson.dumps([task])) for id_, (task, _) in causes.items()]
    )
    for job in one.pull():
        one.settle(reject=[(job, causes[job.id][1])])
    one.close()
    return list(causes)


# -- configure -------------------------------------------------------------------------------------


def test_configure(run: Run, read: Read, queue: Queue) -> None:
    run("configure", queue.name, code=3)
    assert read("configure", queue.name, "--keep", "1h") == {
        "queue": queue.name,
        "keep_ms": 3_600_000,
    }
    said = read("configure", queue.name, "--max-deliveries", "5", "--history-rows", "0")
    assert said == {
        "queue": queue.name,
        "keep_ms": 3_600_000,
        "max_deliveries": 5,
        "history_rows_max": 0,
    }
    assert read("configure", queue.name) == said, "without an option nothing changes"
    shown = run("configure", queue.name).stdout
    assert "1h" in shown and "not set: the default" in shown
    assert "history rows 0, keep 1h, max deliveries 5" in run("queues", queue.name).stdout
    assert read("queues", queue.name)["settings"] == {
        name: value for name, value in said.items() if name != "queue"
    }


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--priorities", "20"], "priorities: 20 is not a whole number from 1 to 10"),
        (["--priorities", "0"], "priorities: 0 is not a whole number from 1 to 10"),
        (["--keep", "soon"], "keep: 'soon' is no duration"),
        (["--keep", "1ms"], "keep: '1ms' is not from 1 second to 365 days"),
        (["--max-crashes=-1"], "-1 is not a whole number from 0, which is no limit, to 1,000,000"),
        (["--history-rows=-1"], "-1 is not a whole number from 0 to 1,000,000,000"),
        (["--max-deliveries", "some"], "Invalid value for '--max-deliveries'"),
        (["--priorities", "3"], "priorities: were 10 when this queue got jobs, and cannot change"),
    ],
)
def test_what_configure_refuses_changes_nothing(
    run: Run, read: Read, queue: Queue, options: list[str], problem: str
) -> None:
    fill(queue, 1)
    said = run("configure", queue.name, "--history-rows", "7", *options, code=2)
    assert problem in said.stderr
    assert read("configure", queue.name) == {"queue": queue.name}


# -- enqueue ---------------------------------------------------------------------------------------


def test_enqueue(run: Run, read: Read, queue: Queue) -> None:
    args = ["app.t", "42", "text", "true", '{"a": [1]}', "-k", "n=null", "-k", "s=a=b"]
    id_ = run("enqueue", *args, "-q", queue.name).stdout.strip()
    facts = read("show", id_)
    assert facts["args"] == [42, "text", True, {"a": [1]}]
    assert facts["kwargs"] == {"n": None, "s": "a=b"}
    said = read("enqueue", "app.t", "1", "--text", "-q", queue.name, "--id", "o-1", "-p", "9")
    assert said == {"id": "o-1", "queue": queue.name, "created": True}
    facts = read("show", "o-1")
    assert (facts["args"], facts["level"]) == (["1"], 9)
    again = run("enqueue", "app.t", "-q", queue.name, "--id", "o-1")
    assert again.stdout == "o-1\n" and "known already" in again.stderr
    assert read("enqueue", "app.t", "-q", queue.name, "--id", "o-1")["created"] is False


def test_enqueue_where_no_worker_is(run: Run, queue: Queue, consumer: Make) -> None:
    said = run("enqueue", "app.t", "-q", queue.name).stderr
    assert f"no worker serves queue '{queue.name}' now, so the job waits" in said
    assert run("enqueue", "app.t", "-q", queue.name, "--id", "a").stderr
    consumer(jobs=0)
    assert run("enqueue", "app.t", "-q", queue.name).stderr == ""


def test_enqueue_options(run: Run, read: Read, queue: Queue) -> None:
    more = [
        "--in",
        "10m",
        "--max-deliveries",
        "3",
        "--time-limit",
        "1m",
        "--soft-time-limit",
        "50s",
    ]
    more += ["--keep", "1h", "--header", "trace=a b"]
    id_ = run("enqueue", "app.t", *more, "-q", queue.name).stdout.strip()
    facts = read("show", id_)
    assert facts["state"] == "scheduled" and facts["max_deliveries"] == 3
    assert facts["opts"] == {
        "headers": {"trace": "a b"},
        "time_limit": 60.0,
        "soft_time_limit": 50.0,
        "keep": 3600.0,
    }
    at = "2099-01-31T08:00:00+00:00"
    id_ = run("enqueue", "app.t", "--at", at, "-q", queue.name).stdout.strip()
    assert read("show", id_)["due"].startswith("2099-01-31T08:00:00")


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--in", "soon"], "in"),
        (["--at", "tomorrow"], "at"),
        (["--at", "10m"], "--in"),
        (["--at", "2099-01-31"], "zone"),
        (["--at", "2099-01-31T08:00:00Z", "--in", "1s"], "--in and --at exclude each other"),
        (["-p", "10"], "priority"),
        (["-k", "novalue"], "NAME=VALUE"),
        (["--id", ""], "id"),
        (["--keep", "0"], "keep"),
    ],
)
def test_enqueue_used_wrongly(run: Run, queue: Queue, args: list[str], word: str) -> None:
    assert word in run("enqueue", "app.t", *args, "-q", queue.name, code=2).stderr
    assert queue.counts().meta == {}


def test_enqueue_and_wait(run: Run, read: Read, queue: Queue) -> None:
    result = run("enqueue", "app.t", "-q", queue.name, "--id", "w", "--wait", "10ms", code=5)
    assert result.stdout == "w\n" and "ready" in result.stderr
    said = read("enqueue", "app.t", "-q", queue.name, "--wait", "10ms", code=5)
    assert "ready" in said["error"]


# -- cancel, pause, resume -------------------------------------------------------------------------


def test_cancel(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    fill(queue, 4)
    run("cancel", "j001", code=2)
    assert queue.job("j001").state() == "ready"
    assert "cancelled" in run("cancel", "j001", "--yes").stdout
    assert "has ended" in run("cancel", "j001", "--yes", code=1).stdout
    one = consumer(jobs=1)
    (job,) = one.pull()
    answer = read("cancel", job.id, "--keep-held", "-y", code=1)
    assert answer == [{"id": job.id, "queue": queue.name, "cancelled": False, "was": "holds"}]
    answers = read("cancel", job.id, "j002", "-y", "-q", queue.name)
    assert [answer["was"] for answer in answers] == ["held", "ready"]
    assert not one.ack(job)
    queue.send("t", options=Options(id="g1", group="g"))
    queue.send("t", options=Options(id="g2", group="g"))
    (answer,) = read("cancel", "g2", "-y")
    assert (answer["cancelled"], answer["was"]) == (True, "blocked")
    # one that is unknown: none is cancelled
    run("cancel", "j003", "nope", "-y", code=3)
    assert queue.job("j003").state() == "ready"


def test_pause_and_resume(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    fill(queue, 1)
    assert "is paused" in run("pause", queue.name).stdout
    assert "it was before" in run("pause", queue.name).stdout
    one = consumer(jobs=1)
    assert one.pull() == []
    assert read("resume", queue.name) == {"queue": queue.name, "paused": False, "changed": True}
    assert read("resume", queue.name)["changed"] is False
    assert len(one.pull()) == 1


# -- purge -----------------------------------------------------------------------------------------


def test_purge(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    fill(queue, 600)
    queue.enqueue_puts([commands.Put("later", b'["t"]', delay_ms=60_000)])
    one = consumer(jobs=2)
    held = one.pull()
    assert "would purge 598 jobs" in run("purge", queue.name, "--dry-run").stdout
    assert read("purge", queue.name, "--dry-run", "--scheduled")["jobs"] == 599
    assert "--yes" in run("purge", queue.name, code=2).stderr
    assert queue.counts().ready == 598
    assert "purged 598 jobs" in run("purge", queue.name, "--yes").stdout
    counts = queue.counts()
    assert (counts.ready, counts.scheduled, counts.held) == (0, 1, 2)
    assert read("purge", queue.name, "--scheduled", "--held", "-y")["jobs"] == 3
    assert not one.ack(held[0])
    assert read("show", held[0].id, "-q", queue.name)["state"] == "purged", "as all the others"
    assert queue.counts().meta["purged"] == "601"
    assert queue.job("j010").state() == "purged"
    assert run("purge", queue.name, "-y").stdout.startswith("purged 0 jobs")


def test_purge_ends_what_waits_behind_others_of_its_group(
    run: Run, read: Read, queue: Queue, consumer: Make
) -> None:
    for number in range(5):
        queue.send("t", options=Options(group=f"g{number % 2}"))
    assert len(consumer(jobs=1).pull()) == 1
    assert "would purge 4 jobs" in run("purge", queue.name, "--dry-run").stdout
    assert read("purge", queue.name, "-y")["jobs"] == 4
    counts = queue.counts()
    assert (counts.ready, counts.blocked, counts.held) == (0, 0, 1)


def test_purge_of_what_is_held_is_no_call_per_job(
    read: Read, queue: Queue, consumer: Make, client: redis.Redis
) -> None:
    fill(queue, 510)
    one, other = consumer(jobs=500), consumer(jobs=10)
    assert len(one.pull()) + len(other.pull()) == 510

    def scripts_run() -> int:
        return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])

    before = scripts_run()
    assert read("purge", queue.name, "--held", "-y")["jobs"] == 510
    assert scripts_run() - before < 12
    assert queue.counts().held == 0


def test_the_question_is_asked_on_a_terminal(
    run: Run, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(queue, 2)
    monkeypatch.setattr("rqueue.cli.exit_codes._is_terminal", lambda: True)
    result = run("purge", queue.name, input="n\n", code=1)
    assert f"Purge 2 jobs of queue '{queue.name}'?" in result.stderr
    assert queue.counts().ready == 2
    run("purge", queue.name, input="y\n")
    assert queue.counts().ready == 0


# -- dead letters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ([], ["d1", "d2", "d3", "d4"]),
        (["--task", "app.send"], ["d1", "d2"]),
        (["--error", "timeout"], ["d1"]),
        (["--error", "crash"], ["d3"]),
        (["--error", "ValueError", "--task", "app.make"], ["d4"]),
        (["--text", "bad input"], ["d2"]),
        (["--text", "line 7"], ["d4"]),
        (["--since", "1h"], ["d1", "d2", "d3", "d4"]),
        (["--until", "1h"], []),
        (["--since", "2099-01-01T00:00:00Z"], []),
    ],
)
def test_dead_letters_are_found(
    run: Run, read: Read, queue: Queue, graves: list[str], options: list[str], ids: list[str]
) -> None:
    found = read("dead", "list", queue.name, *options)
    assert ([job["id"] for job in found["jobs"]], found["more"]) == (ids, False)
    every = run("dead", "list", queue.name, *options, "--all", "--json").stdout.splitlines()
    assert [json.loads(line)["id"] for line in every] == ids
    table = run("dead", "list", queue.name, *options)
    assert [line.split()[0] for line in table.stdout.splitlines()[1:]] == ids
    count = read("dead", "requeue", queue.name, *options, "--dry-run")
    assert (count["jobs"], count["dry_run"]) == (len(ids), True)
    assert queue.counts().dead == 4


def test_dead_letters_in_part(run: Run, read: Read, queue: Queue, graves: list[str]) -> None:
    found = read("dead", "list", queue.name, "-n", "3")
    assert len(found["jobs"]) == 3 and found["more"] is True
    assert "there are more" in run("dead", "list", queue.name, "-n", "3").stderr
    line = run("dead", "list", queue.name).stdout.splitlines()[1]
    assert "app.TimeoutError: slow" in line


def test_requeue(run: Run, read: Read, queue: Queue, graves: list[str], consumer: Make) -> None:
    assert "--yes" in run("dead", "requeue", queue.name, code=2).stderr
    assert queue.counts().dead == 4
    done = run("dead", "requeue", queue.name, "--task", "app.send", "-y").stdout
    assert done == f"requeued 2 dead letters of '{queue.name}'\n"
    assert sorted(job.id for job in consumer(jobs=9).pull()) == ["d1", "d2"]
    assert read("dead", "requeue", queue.name, "-y")["jobs"] == 2
    assert read("dead", "requeue", queue.name, "-y")["jobs"] == 0


def test_dead_letters_by_id(
    run: Run, read: Read, queue: Queue, graves: list[str], consumer: Make
) -> None:
    shown = run("show", "d2", "-q", queue.name).stdout
    assert re.search(rf"^next +rqueue dead requeue {re.escape(queue.name)} d2, or ", shown, re.M)
    for verb in ("requeue", "purge"):
        said = run("dead", verb, queue.name, "d2", "nope", "-y", code=3).stderr
        assert ": nope; nothing was done" in said
        said = run("dead", verb, queue.name, "d2", "--task", "app.make", "-y", code=3).stderr
        assert "d2; nothing was done" in said
    assert queue.counts().dead == 4
    assert read("dead", "requeue", queue.name, "d2", "d1", "d2", "-y")["jobs"] == 2
    assert sorted(job.id for job in consumer(jobs=9).pull()) == ["d1", "d2"]
    assert read("dead", "requeue", queue.name, "d3", "--dry-run")["jobs"] == 1
    assert read("dead", "purge", queue.name, "d4", "-y")["jobs"] == 1
    assert [job["id"] for job in read("dead", "list", queue.name)["jobs"]] == ["d3"]
    run("dead", "requeue", queue.name, "d2", "-y", code=3)


def test_purge_dead(run: Run, read: Read, queue: Queue, graves: list[str]) -> None:
    assert (
        "would purge 2 dead letters"
        in run("dead", "purge", queue.name, "--error", "ValueError", "--dry-run").stdout
    )
    done = run("dead", "purge", queue.name, "--error", "ValueError", "-y").stdout
    assert done.startswith("purged 2 dead letters")
    assert [job["id"] for job in read("dead", "list", queue.name)["jobs"]] == ["d1", "d3"]
    assert read("result", "d2", code=1)["state"] == "purged"


# -- doctor ----------------------------------------------------------------------------------------


def test_doctor(run: Run, read: Read, queue: Queue, client: redis.Redis) -> None:
    fill(queue, 4)
    assert "no problems (1 queue, " in run("doctor", queue.name).stdout
    client.lrem(queue.keys.ready(4), 1, "j001")
    client.hset(queue.keys.meta, "marked", 7)
    said = run("doctor", queue.name, code=1)
    assert "'j001' was accepted and is in no list" in said.stdout.replace("\n  ", " ")
    assert "repair: put it back at its place" in said.stdout
    assert "--repair" in said.stderr
    report = read("doctor", queue.name, code=1)
    assert report["healthy"] is False
    (finding,) = [f for f in report["findings"] if f["severity"] == "problem"]
    assert (finding["kind"], finding["subject"]) == ("lost", "j001")
    assert "--yes" in run("doctor", queue.name, "--repair", code=2).stderr
    assert client.llen(queue.keys.ready(4)) == 3
    report = read("doctor", queue.name, "--repair", "--yes")
    assert report["healthy"] is True
    assert {f["kind"] for f in report["repaired"]} == {"lost", "marked"}
    assert client.lrange(queue.keys.ready(4), 0, -1) == [b"j000", b"j001", b"j002", b"j003"]
    assert "no problems" in run("doctor", queue.name, "--repair").stdout


def test_what_cannot_be_repaired_is_left(run: Run, queue: Queue, client: redis.Redis) -> None:
    fill(queue, 2)
    client.hset(queue.keys.ended, "x", "what")
    client.lrem(queue.keys.ready(4), 1, "j001")
    said = run("doctor", queue.name, "--repair", "--yes", code=1).stdout
    assert "repaired 1 finding" in said
    assert "1 problem left" in said


def test_an_id_in_two_queues_wants_its_queue(run: Run, queue: Queue) -> None:
    other = queue.at(f"{queue.name}-2")
    try:
        ends = [one.send("t", options=Options(id="twin")) for one in (queue, other)]
        for words in (["cancel", "twin", "--yes"], ["show", "twin"], ["result", "twin"]):
            said = run(*words, code=2).stderr
            assert f"'{queue.name}' (ready), '{other.name}' (ready)" in said, words
            assert [str(handle.state()) for handle in ends] == ["ready", "ready"]
        run("cancel", "twin", "-q", other.name, "--yes")
        assert [str(handle.state()) for handle in ends] == ["ready", "cancelled"]
    finally:
        other.redis.unlink(*other.redis.scan_iter(match=other.keys.base + "*"))


def test_one_id_that_is_unknown_and_nothing_is_cancelled(run: Run, queue: Queue) -> None:
    handle = queue.send("t")
    said = run("cancel", handle.id, "nope", "--yes", code=3).stderr
    assert "nope" in said and "nothing was cancelled" in said
    assert str(handle.state()) == "ready"
