"""What the command line says of limits, and changes."""

from rqueue.cli.output import iso
from rqueue.client._sync.queue import Queue
from rqueue.model.job_limit import JobLimit
from rqueue.tasks.options import Options
from tests.cli.looking import Read, Run


def test_limits_are_listed_and_changed(run: Run, read: Read, queue: Queue) -> None:
    name = queue.name
    for id_ in ("job-a", "job-b", "job-c"):
        queue.send("t", options=Options(id=id_, limit=JobLimit("crm", 1, "acme")))
    (row,) = read("limits", "list", name)
    assert row | {"name": "crm", "key": "acme", "most": None, "out": 1, "waiting": 2} == row
    shown = run("show", "job-b", "-q", name).stdout
    assert "blocked: waits for limit 'crm' of 'acme': 1 of 1 in flight" in shown
    assert "no worker serves" not in shown and "1 of 'crm' of 'acme'" in shown
    assert (
        "of key 'acme' in queue" in run("limits", "set", name, "crm", "2", "--key", "acme").stdout
    )
    assert read("limits", "list", name)[0]["out"] == 2
    assert "of 2 in flight" in run("show", "job-c", "-q", name).stdout
    assert "acme" in run("limits", "list", name).stdout
    assert "allows what its jobs say" in run("limits", "reset", name, "crm", "--key", "acme").stdout
    assert read("limits", "list", name)[0]["most"] is None


def test_a_limit_that_is_none_is_refused(run: Run, queue: Queue) -> None:
    queue.send("t")
    assert "0 to 999999999" in run("limits", "set", queue.name, "crm", "1000000000", code=2).stderr


def test_a_rate_is_shown_with_the_time_of_its_next_token(
    run: Run, read: Read, queue: Queue
) -> None:
    name, rate = queue.name, JobLimit("api", 1, "acme", 3_600_000)
    for id_ in ("job-a", "job-b", "job-c"):
        queue.send("t", options=Options(id=id_, limit=rate))
    assert read("show", "job-b", "-q", name)["reason"] == (
        "waits for rate 'api' of 'acme' until jobs are taken that have 1 of its tokens: 1 in 3600 s"
    )
    with queue.consumer() as consumer:
        assert [job.id for job in consumer.pull()] == ["job-a"]
        (row,) = read("limits", "list", name)
        due = iso(row["next_ms"])
        reason = read("show", "job-b", "-q", name)["reason"]
        assert reason == f"waits for rate 'api' of 'acme' until {due}: 1 in 3600 s"
        later = iso(row["next_ms"] + 3_600_000)
        reason = read("show", "job-c", "-q", name)["reason"]
        assert f"until about {later}, behind 1 others" in reason
        assert str(due) in run("limits", "list", name).stdout
        run("limits", "set", name, "api", "9/1m", "--burst", "2", "--key", "acme")
        assert read("limits", "list", name)[0]["per_ms"] == 60_000
        assert "no number" in run("limits", "set", name, "api", "often", code=2).stderr


def test_what_is_set_for_nobody_is_set_and_said(run: Run, read: Read, queue: Queue) -> None:
    name = queue.name
    said = run("limits", "set", name, "crm", "2").stderr
    assert (
        said == f"rqueue: there is no queue '{name}' yet: what is set is for the jobs that come\n"
    )
    for limit in (JobLimit("crm", 1), JobLimit("shop.geocode", 1, "", 60_000)):
        queue.send("t", options=Options(limit=limit))
    assert run("limits", "set", name, "crm", "3").stderr == ""
    queue.send("t", options=Options(limit=JobLimit("tenant", 1, "acme")))
    assert "--key '*'" in run("limits", "set", name, "tenant", "3").stderr
    assert run("limits", "set", name, "tenant", "3", "--key", "*").stderr == ""
    assert "now: did you mean 'crm'?" in run("limits", "set", name, "crn", "3").stderr
    said = run("limits", "set", name, "shop.geocode", "5").stderr
    assert said == "rqueue: 'shop.geocode' is a rate here: write 5/1m\n"
    assert run("limits", "set", name, "shop.geocode", "5/1m").stderr == ""
