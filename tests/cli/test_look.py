"""What there is: queues, jobs, one job, results, consumers, history, stats."""

import json
import re
from datetime import datetime

import orjson
import pytest
import redis

from rqueue.cli.jobs import STATES
from rqueue.client._sync.queue import Queue
from rqueue.errors import ResultNotReady
from rqueue.model.log_line import packed_line
from rqueue.model.progress import packed
from rqueue.protocol import commands
from rqueue.protocol.commands.consumers import Ran
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.cli.looking import Make, Read, Run, fill

# -- queues ----------------------------------------------------------------------------------------


def test_queues(run: Run, read: Read, queue: Queue) -> None:
    fill(queue, 3)
    queue.pause()
    lines = run("queues").stdout.splitlines()
    assert lines[0].split()[:6] == ["queue", "ready", "scheduled", "parked", "deferred", "held"]
    (mine,) = [line.split() for line in lines if line.startswith(queue.name)]
    assert mine[1:5] == ["3", "0", "0", "0"] and mine[-2:] == ["paused,", "unserved"]
    (facts,) = [facts for facts in read("queues") if facts["name"] == queue.name]
    assert facts["ready"] == facts["accepted"] == 3
    assert facts["paused"] is True
    assert datetime.fromisoformat(facts["oldest_enqueued"]).tzinfo is not None
    assert facts["next_due"] is None
    assert read("queues", queue.name)["name"] == queue.name
    assert re.search(r"^ready +3$", run("queues", queue.name).stdout, re.M)


def test_a_queue_whose_consumers_leases_have_all_ended(
    run: Run, read: Read, queue: Queue, consumer: Make
) -> None:
    """As where all pools were killed: consumers are registered, and none is alive."""
    consumer(renew=False).pull()
    fill(queue, 1)
    queue.send("later", options=Options(id="later", delay_ms=3_600_000))

    def mine() -> str:
        return next(line for line in run("queues").stdout.splitlines() if queue.name in line)

    assert "unserved" not in mine()
    assert read("queues", queue.name)["forsaken_ms"] == 0
    move_time(queue, 190_000)
    assert mine().endswith("unserved")
    said = run("queues", queue.name).stdout
    wanted = r"^unserved +the leases of its consumers have ended, the last one [\d.]+\S* (\w+ )?ago"
    assert re.search(wanted, said, re.M), said
    assert read("queues", queue.name)["forsaken_ms"] >= 100_000
    shown = " ".join(run("show", "later", "-q", queue.name).stdout.split())
    gone = (
        f"no worker serves queue '{queue.name}' any more: the lease of its one consumer has ended"
    )
    assert gone in shown
    said = run("result", "later", "-q", queue.name, "--timeout", "0", code=5).stderr
    assert gone in said
    with queue.consumer(mode="browse", renew=False) as browser:
        browser.pull()
        assert mine().endswith("unserved"), "who only looks serves nothing"


def test_what_has_ended_in_its_place_is_told_apart(run: Run, read: Read, queue: Queue) -> None:
    """A cancelled job leaves its level when its turn comes: "by level" says how many those are."""
    fill(queue, 3)
    assert re.search(r"^by level +4: 3$", run("queues", queue.name).stdout, re.M)
    queue.cancel("j001")
    shown = run("queues", queue.name).stdout
    assert re.search(r"^ready +2$", shown, re.M)
    assert re.search(r"^by level +4: 3; 1 of them has ended", shown, re.M)


def test_no_queues(run: Run, read: Read) -> None:
    assert read("queues", "--namespace", "nothing-here") == []
    result = run("queues", "--namespace", "nothing-here")
    assert (result.stdout, result.stderr) == ("", "no queues in namespace 'nothing-here'\n")


@pytest.mark.parametrize("name", ["a*b", "[x]", "back\\slash", "wei}rd{%", "two words", "ünï"])
def test_a_queue_of_any_name(run: Run, read: Read, client: redis.Redis, name: str) -> None:
    with Queue(name, redis=client, namespace="odd") as queue:
        fill(queue, 1)
    try:
        assert [facts["name"] for facts in read("queues", "--namespace", "odd")] == [name]
        assert read("jobs", name, "--namespace", "odd")["jobs"][0]["id"] == "j000"
        assert read("doctor", name, "--namespace", "odd")["healthy"] is True
    finally:
        client.unlink(*client.scan_iter(match="odd:*"))


# -- jobs ------------------------------------------------------------------------------------------


def test_ready_jobs_in_order(run: Run, read: Read, queue: Queue) -> None:
    fill(queue, 3)
    queue.enqueue_puts([commands.Put("first", b'["app.u",[],{"a":"b c"}]', 9)])
    lines = run("jobs", queue.name).stdout.splitlines()
    assert lines[0].split()[:3] == ["position", "id", "task"]
    assert [line.split()[1] for line in lines[1:]] == ["first", "j000", "j001", "j002"]
    assert lines[1].split()[0] == "4" and 'a="b c"' in lines[1]
    page = read("jobs", queue.name)
    assert page["next"] is None
    assert page["jobs"][0]["kwargs"] == {"a": "b c"}
    assert page["jobs"][1]["position"] == 1


def test_paging_stays_right_while_jobs_are_consumed(
    read: Read, queue: Queue, consumer: Make
) -> None:
    ids = fill(queue, 20)
    first = read("jobs", queue.name, "-n", "5")
    one = consumer(jobs=8)
    taken = one.pull()
    one.settle(ack=taken[:4], release=taken[4:])
    queue.enqueue_puts([commands.Put("new", b'["app.t"]')])
    second = read("jobs", queue.name, "-n", "5", "--after", first["next"])
    third = read("jobs", queue.name, "-n", "500", "--after", second["next"])
    seen = [job["id"] for page in (first, second, third) for job in page["jobs"]]
    assert seen == [*ids, "new"]


@pytest.mark.parametrize("state", ["scheduled", "held", "dead", "ended"])
def test_pages_of_other_states(
    run: Run, read: Read, queue: Queue, consumer: Make, state: str
) -> None:
    ids = fill(queue, 7)
    if state == "scheduled":
        ids = [f"s{i}" for i in range(7)]
        queue.enqueue_puts([commands.Put(id_, b'["t"]', delay_ms=60_000) for id_ in ids])
    elif state == "ended":
        for id_ in ids:
            queue.cancel(id_)
    else:
        one, other = consumer(name="a", jobs=4), consumer(name="b", jobs=3)
        jobs = one.pull() + other.pull()
        if state == "dead":
            for number, job in enumerate(jobs):
                (one if number < 4 else other).reject(job, "no")
    seen, after = [], ""
    while True:
        page = read("jobs", queue.name, "-s", state, "-n", "2", "--after", after)
        seen += [job["id"] for job in page["jobs"]]
        after = page["next"]
        if not after:
            break
    assert sorted(seen) == ids
    lines = run("jobs", queue.name, "-s", state, "--all", "--json").stdout.splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == ids
    assert ids[0] in run("jobs", queue.name, "-s", state, "--all").stdout


def test_parked_jobs(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    fill(queue, 2)
    one = consumer(jobs=1)
    (job,) = one.pull()
    why = orjson.dumps({"kind": "unknown_task", "message": "nobody knows app.t"})
    one.settle(retry=[commands.Retried(job.id, 60_000, "park", False, why)])
    (parked,) = read("jobs", queue.name, "-s", "parked")["jobs"]
    assert parked["id"] == job.id
    assert "j000" in run("jobs", queue.name, "-s", "parked").stdout
    said = run("show", job.id, "-q", queue.name).stdout
    assert f"parked: no worker that serves queue '{queue.name}' knows its task" in said
    assert "nobody knows app.t" in said
    assert read("show", job.id, "-q", queue.name)["state"] == "parked"
    assert read("jobs", queue.name, "-s", "scheduled")["jobs"] == [], "listed once"
    assert queue.job(job.id).state() == "parked"
    with pytest.raises(ResultNotReady, match="it is parked: no worker that serves queue"):
        queue.job(job.id).result(0)
    assert "1 job waiting" in run("queues", queue.name).stdout
    said = " ".join(run("doctor", queue.name).stdout.split())
    assert f"1 job waiting for a worker that knows task '{parked['task']}'" in said


def test_wrong_paging(run: Run, queue: Queue) -> None:
    fill(queue, 1)
    assert "limit" in run("jobs", queue.name, "-n", "0", code=2).stderr
    for wrong in ("!", "garbage", "4x17", "MTAw", "AA==", "YQBiAGM="):
        for state in STATES:
            said = run("jobs", queue.name, "-s", state, "--after", wrong, code=2).stderr
            assert f"'{wrong}' is no cursor of {state} jobs" in said
    run("jobs", queue.name, "-s", "nowhere", code=2)


def test_an_undecodable_job_is_shown(run: Run, read: Read, queue: Queue) -> None:
    queue.enqueue_puts([commands.Put("odd", b"\x00not json")])
    (job,) = read("jobs", queue.name)["jobs"]
    assert job["task"] == "" and "not an envelope" in job["problem"]
    assert "not an envelope" in run("jobs", queue.name).stdout
    assert "not an envelope" in run("show", "odd").stdout


def test_what_jobs_hold_does_not_steer_the_terminal(run: Run, queue: Queue) -> None:
    queue.enqueue_puts([commands.Put("x\x1b[31m", orjson.dumps(["t\x1b]0;owned\x07"]))])
    assert "\x1b" not in run("jobs", queue.name, color=True).stdout
    assert "\x1b]" not in run("show", "x\x1b[31m", color=True).stdout


# -- one job ---------------------------------------------------------------------------------------


def test_show(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    fill(queue, 3)
    assert "2 before it" in run("show", "j002").stdout
    facts = read("show", "j002", "-q", queue.name)
    assert (facts["state"], facts["before"], facts["args"]) == ("ready", 2, [2])
    one = consumer(name="another", jobs=1)
    one.pull()
    said = run("show", "j000").stdout
    assert "held by another" in said and "runs since" not in said
    assert read("show", "j000")["began"] is None
    running = commands.note_running(queue.keys, "another", [Ran("j000", one.now, one.now)])
    execute(queue.redis, running)
    assert "runs since" in run("show", "j000").stdout
    held = run("jobs", queue.name, "-s", "held").stdout.splitlines()
    assert "runs for" in held[0] and "failed" in held[0] and re.search(r"\d ?m?s +another", held[1])
    assert read("jobs", queue.name, "-s", "held")["jobs"][0]["began"].startswith("20")
    assert read("show", "j000")["began"].startswith("20")
    assert "held by another" in said and "1, of which 0 failed" in said
    assert read("show", "j000")["deliveries"] == 1
    assert read("jobs", queue.name, "-s", "held")["jobs"][0]["deliveries"] == 1
    error = {"type": "app.Boom", "message": "it broke", "traceback": "Trace\n  x\napp.Boom: it"}
    one.retry("j000", error={**error, "at": one.now, "attempt": 1, "worker": "w1"})
    said = run("show", "j000").stdout
    assert "error of attempt 1" in said and "  app.Boom: it" in said and "in worker w1" in said
    assert "1, of which 1 failed" in said
    one.pull()
    one.ack("j000", {"answer": 42})
    facts = read("show", "j000")
    assert facts["result"] == {"answer": 42}
    unknown = ("task", "args", "position", "deliveries", "attempts", "max_crashes", "size")
    assert [facts[name] for name in unknown] == [None] * len(unknown)
    assert f"rqueue history {queue.name} --id j000 tells what" in run("show", "j000").stdout
    assert '{"answer":42}' in run("show", "j000").stdout


def test_show_says_whether_code_that_was_cancelled_runs_on(
    run: Run, read: Read, queue: Queue, consumer: Make
) -> None:
    queue.send("t", options=Options(id="on"))
    worker = consumer(jobs=1)
    worker.pull()
    queue.cancel("on", running=True)
    assert "is to be stopped; cancelled" in run("show", "on").stdout
    assert "still runs" in read("show", "on")["reason"]
    queue.redis.hset(queue.keys.running(worker.name), "on", "1,2,3")  # as a supervisor notes it
    assert "its code still runs in" in run("consumers", queue.name).stdout
    assert "rqueue cancel on --kill" in run("doctor", queue.name, code=0).stdout
    queue.cancel("on", kill=True)
    execute(queue.redis, commands.note_stop(queue.keys, worker.name, "delivered", ["on"]))
    assert "was interrupted, its process to be killed" in run("show", "on").stdout
    execute(queue.redis, commands.note_stop(queue.keys, worker.name, "ended", ["on"]))
    assert read("show", "on")["reason"] is None


def test_show_tells_a_suspicion_from_an_attempt(run: Run, queue: Queue, consumer: Make) -> None:
    fill(queue, 1)
    consumer(name="vanished", jobs=1).pull()
    move_time(queue, 60_000)
    execute(queue.redis, commands.renew(queue.keys, 1000, []))
    one = consumer(name="another", jobs=1)
    one.pull()
    one.retry("j000", error={"type": "app.Boom", "message": "it broke"})
    said = run("show", "j000").stdout
    assert "suspected of a crash, not charged, " in said and "  LeaseEnded: the lease" in said
    assert "error of attempt 1" in said and "2, of which 1 failed" in said


def test_result(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    fill(queue, 4)
    assert "is ready" in run("result", "j000", code=5).stderr
    assert run("result", "j000", "-t", "10ms", code=5).stdout == ""
    one = consumer(jobs=4)
    jobs = one.pull()
    one.settle(done=[(jobs[0], [1, {"a": None}])])
    one.settle(done=[(jobs[1], None)])
    one.reject(jobs[2], "it was no good")
    queue.cancel("j003")
    assert json.loads(run("result", "j000").stdout) == [1, {"a": None}]
    assert run("result", "j001", "-t", "5s").stdout == "null\n"
    assert read("result", "j000")["result"] == [1, {"a": None}]
    assert "it was no good" in run("result", "j002", code=1).stderr
    facts = read("result", "j002", code=1)
    assert (facts["state"], facts["cause"]["message"]) == ("dead", "it was no good")
    assert read("result", "j003", code=1)["state"] == "cancelled"
    assert "was cancelled" in run("result", "j003", code=1).stderr


LINE = packed_line(1000, 30, "\x1b[2Jcareful")


def test_what_a_job_reports_is_shown(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    fill(queue, 1)
    one = consumer(jobs=1)
    (job,) = one.pull()
    said = [commands.JobReport(job.id, 1, packed((3, 4, "\x1b[2Jpages")), "t", 1, [LINE])]
    execute(queue.redis, commands.report(queue.keys, one.name, one.term, said))
    assert re.search(
        r"^progress +3/4 \(75%\) .x1b.2Jpages, said .* ago", run("show", "j000").stdout, re.M
    )
    assert read("show", "j000")["progress"]["fraction"] == 0.75
    watched = run("watch", "j000", "-t", "0", code=5)
    assert watched.stderr == "rqueue: job 'j000' has not ended in 0: it is held\n"
    shown = watched.stdout
    assert "held  3/4 (75%)" in shown and "  WARNING  \\x1b[2Jcareful" in shown
    assert run("log", "j000").stdout in shown
    assert read("log", "j000")["text"] == "\x1b[2Jcareful"
    one.settle(done=[(job, 1)])
    (line,) = run("watch", "j000", "--json").stdout.splitlines()
    assert json.loads(line)["state"] == "done"
    assert run("log", "j000", "--follow").stdout == run("log", "j000").stdout


def test_who_waits_for_a_job_hears_at_once_what_keeps_it(
    run: Run, queue: Queue, consumer: Make
) -> None:
    fill(queue, 1)
    said = f"rqueue: job 'j000' is ready, and no worker serves queue '{queue.name}'; waiting\n"
    for command in (["watch"], ["result"], ["result", "--json"]):
        assert run(*command, "j000", "-t", "1ms", code=5).stderr.startswith(said)
    assert "; waiting" not in run("result", "j000", code=5).stderr
    consumer(jobs=0)
    assert "; waiting" not in run("watch", "j000", "-t", "1ms", code=5).stderr
    queue.pause()
    assert f"queue '{queue.name}' is paused" in run("watch", "j000", "-t", "1ms", code=5).stderr


def test_a_failed_job_s_traceback_has_its_lines(run: Run, queue: Queue, consumer: Make) -> None:
    fill(queue, 1)
    one = consumer(jobs=1)
    trace = 'Traceback:\n  File "x.py"\nValueError: \x1b[2Jno'
    cause = {"type": "ValueError", "message": "no", "kind": "exception", "traceback": trace}
    one.settle(reject=[(one.pull()[0], cause)])
    said = run("result", "j000", code=1).stderr.splitlines()
    assert said[0].endswith("ValueError: no")
    assert said[-3:] == ["Traceback:", '  File "x.py"', r"ValueError: \x1b[2Jno"]
    assert (
        run(
            "enqueue", "a.b", "--id", "j000", "-q", queue.name, "--wait", "3s", code=1
        ).stderr.splitlines()[-len(said) :]
        == said
    )


# -- consumers -------------------------------------------------------------------------------------


def test_consumers(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    fill(queue, 3)
    consumer(name="busy", jobs=2, priority=5).pull()
    consumer(name="browser", jobs=2, mode="browse")
    by_name = {facts["name"]: facts for facts in read("consumers", queue.name)}
    assert by_name["busy"]["state"] == "not_interested"
    assert (by_name["busy"]["held"], by_name["busy"]["window_jobs"]) == (2, 2)
    assert 0 < by_name["busy"]["lease_left_ms"] <= 30_000
    assert by_name["browser"]["state"] == "browsers"
    (line,) = [x for x in run("consumers", queue.name).stdout.splitlines() if "busy" in x]
    assert "2/2" in line.split() and "5" in line.split()


def test_nobody_consumes(run: Run, read: Read, queue: Queue) -> None:
    fill(queue, 1)
    assert read("consumers", queue.name) == []
    assert "has no consumer" in run("consumers", queue.name).stderr


def test_show_and_doctor_say_why_a_job_waits(
    run: Run, read: Read, queue: Queue, consumer: Make
) -> None:
    fill(queue, 1)
    queue.enqueue_puts([commands.Put("later", b'["app.t"]', delay_ms=10_800_000)])
    unserved = f"no worker serves queue '{queue.name}'"

    def shown(id: str) -> str:
        return " ".join(run("show", id, "-q", queue.name).stdout.split())

    assert f"state ready, next in its level: {unserved}" in shown("j000")
    assert f"state scheduled: it is due in 3 hours and {unserved}" in shown("later")
    assert read("show", "j000", "-q", queue.name)["reason"] == unserved
    notes = {finding["kind"]: finding for finding in read("doctor", queue.name)["findings"]}
    assert notes["unserved"]["says"].startswith(
        "2 jobs ready, scheduled or parked, and no worker serves"
    )
    assert notes["unserved"]["severity"] == "note"
    result = run("enqueue", "app.t", "-q", queue.name, "--wait", "10ms", code=5)
    assert f"did not end within 0.01 s: it is ready: {unserved}" in result.stderr

    queue.pause()
    assert f"{unserved} and queue '{queue.name}' is paused" in shown("j000")
    one = consumer(jobs=1)
    assert f"state ready, next in its level: queue '{queue.name}' is paused" in shown("j000")
    kinds = {finding["kind"] for finding in read("doctor", queue.name)["findings"]}
    assert "paused" in kinds
    assert "unserved" not in kinds
    queue.resume()
    one.pull()
    assert f"state held by {one.name} task" in shown("j000"), "nothing but its turn"
    assert read("show", "j000", "-q", queue.name)["reason"] is None
    assert "unserved" not in str(read("doctor", queue.name))
