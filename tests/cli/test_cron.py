"""`rqueue cron`."""

import re

from rqueue.client._sync.queue import Queue
from rqueue.model.schedule import Timing
from rqueue.protocol import commands
from rqueue.testing import frozen_time, move_time
from rqueue_workers.worker.declaring import Declaration, declare
from tests.cli.looking import Run


def test_periodic_jobs(run: Run, queue: Queue) -> None:
    """A-45."""
    nightly = ("nightly", "app.report", "eu", "-k", "n=2", "--cron", "0 3 * * *")
    nightly += ("--tz", "Europe/Berlin", "--missed", "all")
    said = run("cron", "add", queue.name, *nightly).stdout
    assert said.startswith("schedule nightly is set: next in ")
    run("cron", "add", queue.name, "poll", "app.poll", "--every", "5m", "--overlap", "skip")
    listed = run("cron", "list", queue.name, "--next", "2").stdout
    assert "0 3 * * * (Europe/Berlin)" in listed and "every 5m" in listed
    assert listed.count("T03:00:00+0") == 2
    shown = run("cron", "show", queue.name, "nightly").stdout
    assert "app.report" in shown and '["eu"]' in shown and '{"n":2}' in shown
    assert "is paused" in run("cron", "pause", queue.name, "poll").stdout
    run("cron", "pause", queue.name, "poll", code=1)
    assert "paused" in run("cron", "list", queue.name).stdout
    assert "goes on" in run("cron", "resume", queue.name, "poll").stdout
    assert "is changed" in run("cron", "edit", queue.name, "poll", "--every", "1m").stdout
    id = run("cron", "run-now", queue.name, "poll").stdout.strip()
    assert queue.job(id).state() == "scheduled"
    assert "is removed" in run("cron", "remove", queue.name, "poll").stdout
    run("cron", "show", queue.name, "poll", code=3)
    assert (
        "neither"
        not in run("cron", "add", queue.name, "x", "t", "--cron", "nonsense", code=2).stderr
    )


def test_a_schedule_as_a_document(run: Run, queue: Queue) -> None:
    import orjson

    with frozen_time(queue, 1_795_348_800.0):
        queue.schedules.set("s", "app.poll", every=60)
        listed = orjson.loads(run("cron", "list", queue.name, "--json").stdout)
        assert listed[0]["next"] == "2026-11-22T12:01:00.000+00:00"
        assert (listed[0]["every_ms"], listed[0]["state"]) == (60_000, "active")
        shown = orjson.loads(run("cron", "show", queue.name, "s", "--json").stdout)
        assert len(shown["ticks"]) == 5


def test_what_nobody_looks_for_is_overdue(run: Run, queue: Queue) -> None:
    """In the list of schedules, to the doctor and among the numbers."""
    with frozen_time(queue, 1_795_348_800.0):
        queue.schedules.set("s", "app.poll", every=60)
    with frozen_time(queue, 1_795_348_800.0 + 60 + 51):  # the server's; the doctor's goes on
        assert re.search("overdue by 5[1-9]s", run("cron", "list", queue.name).stdout)
        assert re.search(
            "by 5[1-9]s: no worker looked", run("cron", "show", queue.name, "s").stdout
        )
        said = " ".join(run("doctor", queue.name).stdout.split())
        overdue = r"1 schedule is overdue, 's' by 5[1-9] s: no worker serves the queue \[service\]"
        assert re.search(overdue, said)
        said = run("stats", queue.name, "-i", "1ms").stdout
        assert re.search("schedules overdue by 5[1-9]s", said)
        run("pause", queue.name)
        assert "overdue, 's'" not in run("doctor", queue.name).stdout


def test_what_people_say_wrongly_of_ticks(run: Run, queue: Queue) -> None:
    add = ("cron", "add", queue.name, "s", "app.poll")
    for wrong, right in (
        (("--cron", "0 25 * * *"), "hours go from 0 to 23"),
        (("--cron", "0 3 * *"), "has 4 fields: write five"),
        (("--cron", "every day"), "six with the seconds in front"),
        (("--cron", "0 0 30 2 *"), "this date never comes"),
        (("--every", "5m", "--tz", "Europe/Berlin"), "it has no time zone"),
        (("--every", "5m", "--jitter", "10m"), "no less than the interval"),
        (("--every", "5m", "--missed", "all", "--window", "0"), "missed='skip' says so"),
    ):
        assert right in " ".join(run(*add, *wrong, code=2).stderr.split())
    run(*add, "--every", "5m")
    assert "say what is to change" in run("cron", "edit", queue.name, "s", code=2).stderr


def test_what_code_declares_comes_back(run: Run, queue: Queue) -> None:
    declared = Declaration("s", "s", queue.name, Timing.of(every=60), "4,,0,", '["s"]')
    with queue.consumer() as consumer:
        declare(queue._run, queue.keys, consumer.name, consumer.term, "app", [declared], None)
        said = run("cron", "remove", queue.name, "s").stderr
        assert "brings it back" in said and f"rqueue cron pause {queue.name} s" in said
    queue.schedules.set("s", "app.poll", every=60)
    assert "brings" not in run("cron", "remove", queue.name, "s").stderr


def test_a_retired_schedule_is_a_note(run: Run, queue: Queue) -> None:
    from rqueue.testing import housekeeping

    declared = Declaration("s", "s", queue.name, Timing.of(every=60), "4,,0,", '["s"]')
    with queue.consumer(lease=10**6) as consumer, queue.consumer(lease=10**6) as other:
        declare(queue._run, queue.keys, consumer.name, consumer.term, "app", [declared], None)
        declare(queue._run, queue.keys, other.name, other.term, "app", [], None)
        consumer.close()
        move_time(queue, 700_000)
        housekeeping(queue)
        assert queue.schedules.get("s").state == "retired"
        said = " ".join(run("doctor", queue.name).stdout.split())
        assert "no worker's code declares s any more: retired, no ticks" in said


def test_of_what_is_not_there_nothing_is_removed(run: Run, queue: Queue) -> None:
    assert "there is no queue" in run("cron", "list", queue.name, code=3).stderr
    queue.send("t")
    assert "has no schedules" in run("cron", "list", queue.name).stderr
    said = run("cron", "remove", queue.name, "nope", code=1).stdout
    assert said == "there was no schedule 'nope': nothing was to be done\n"


def test_a_task_that_no_worker_knows_is_named(run: Run, queue: Queue) -> None:
    with frozen_time(queue, 1_795_348_800.0):
        queue.schedules.set("s", "app.pol", every=60)
        queue.schedules.set("fine", "app.poll", every=60)
        id = queue.schedules.run_now("s").id
        queue.schedules.run_now("fine")
        with queue.consumer() as consumer:
            parked = next(job for job in consumer.pull() if job.id == id)
            consumer.settle(retry=[commands.Retried(parked.id, 60_000, "park", False, b"{}")])
        listed = run("cron", "list", queue.name)
        said = (
            f"schedule 's': job '{id}' is parked, for no worker of the queue knows task 'app.pol'"
        )
        assert said in listed.stderr and "'fine'" not in listed.stderr
        shown = run("cron", "show", queue.name, "s").stdout
        assert re.search(f"{id}, .* ago, parked: no worker of the queue knows its task\n", shown)
        assert "parked" not in run("cron", "show", queue.name, "fine").stdout
        assert listed.stdout == run("cron", "list", queue.name).stdout
