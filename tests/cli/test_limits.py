"""What the command line says of limits, and changes."""

from rqueue.client._sync.queue import Queue
from rqueue.model.job_limit import JobLimit
from rqueue.tasks.options import Options
from tests.cli.looking import Read, Run


def test_limits_are_listed_and_changed(run: Run, read: Read, queue: Queue) -> None:
    name = queue.name
    for id_ in ("job-a", "job-b", "job-c"):
        queue.send("t", options=Options(id=id_, limit=JobLimit("crm", 1, "acme")))
    (row,) = read("limits", "list", name)
    assert row == {"name": "crm", "key": "acme", "most": None, "out": 1, "waiting": 2}
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
