"""`rqueue cron`."""

from rqueue.client._sync.queue import Queue
from rqueue.testing import frozen_time
from tests.cli.looking import Run


def test_periodic_jobs(run: Run, queue: Queue) -> None:
    """A-45."""
    on = ("-q", queue.name)
    said = run("cron", "add", "nightly", "app.report", "eu", "-k", "n=2", "--cron", "0 3 * * *",
               "--tz", "Europe/Berlin", "--missed", "all", *on).stdout  # fmt: skip
    assert said.startswith("schedule nightly is set: next in ")
    run("cron", "add", "poll", "app.poll", "--every", "5m", "--overlap", "skip", *on)
    listed = run("cron", "list", "--next", "2", *on).stdout
    assert "0 3 * * * (Europe/Berlin)" in listed and "every 0:05:00" in listed
    assert listed.count("T03:00:00+0") == 2
    shown = run("cron", "show", "nightly", *on).stdout
    assert "app.report" in shown and "(['eu'], {'n': 2})" in shown
    assert "is paused" in run("cron", "pause", "poll", *on).stdout
    run("cron", "pause", "poll", *on, code=1)
    assert "paused" in run("cron", "list", *on).stdout
    assert "goes on" in run("cron", "resume", "poll", *on).stdout
    assert "is changed" in run("cron", "edit", "poll", "--every", "1m", *on).stdout
    id = run("cron", "run-now", "poll", *on).stdout.strip()
    assert queue.job(id).state() == "scheduled"
    assert "is removed" in run("cron", "remove", "poll", *on).stdout
    run("cron", "show", "poll", *on, code=3)
    assert "neither" not in run("cron", "add", "x", "t", "--cron", "nonsense", *on, code=2).stderr


def test_a_schedule_as_a_document(run: Run, queue: Queue) -> None:
    import orjson

    with frozen_time(queue, 1_795_348_800.0):
        queue.schedules.set("s", "app.poll", every=60)
        listed = orjson.loads(run("cron", "list", "-q", queue.name, "--json").stdout)
        assert listed[0]["next"] == "2026-11-22T12:01:00.000+00:00"
        assert (listed[0]["every_ms"], listed[0]["state"]) == (60_000, "active")
        shown = orjson.loads(run("cron", "show", "s", "-q", queue.name, "--json").stdout)
        assert len(shown["ticks"]) == 5
