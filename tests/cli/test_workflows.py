"""What the command line says of workflows."""

from rqueue.client._sync.queue import Queue
from rqueue.tasks.workflow import chain, chord
from tests.cli.looking import Read, Run
from tests.support.workflows import double, total


def test_a_workflow_is_shown_as_a_tree(run: Run, read: Read, queue: Queue) -> None:
    members = [chain(double.s(1), double.s()), double.s(2)]
    queue.enqueue_workflow(chord(members, total.s()), id="report")
    on = ("-q", queue.name)
    said = run("show", "report", *on).stdout
    assert "deferred, waits for 2 jobs" in said
    tree = said.partition("waits for\n")[2].splitlines()
    assert [line.strip() for line in tree] == [
        "├─ report.0 (double) deferred",
        "│  └─ report.0.0 (double) ready",
        "└─ report.1 (double) ready",
    ]
    assert read("show", "report", *on)["state"] == "deferred"
    listed = run("jobs", queue.name, "--state", "deferred").stdout
    assert "report.0" in listed
    assert read("queues", queue.name)["deferred"] == 2
    assert "deferred, wait for other jobs  2" in run("queues", queue.name).stdout
    assert "(2 deferred)" in run("stats", queue.name, "--interval", "10ms").stdout
    assert run("doctor", queue.name).stdout.startswith(("no problems", "note"))
    assert "it waited for other jobs" in run("cancel", "report", *on, "--yes").stdout
    said = run("show", "report.0", *on).stdout
    assert "deferred, waits for 1 job" in said


def test_the_whole_of_a_workflow_is_cancelled(run: Run, read: Read, queue: Queue) -> None:
    members = [chain(double.s(1), double.s()), double.s(2)]
    handle = queue.enqueue_workflow(chain(chord(members, total.s()), double.s()), id="all")
    on = ("-q", queue.name, "--yes")
    answers = read("cancel", "all", "--workflow", *on)
    assert sorted(one["id"] for one in answers) == sorted(handle.ids)
    assert {one["cancelled"] for one in answers} == {True}
    again = run("cancel", "all", "--workflow", *on, code=1)
    assert again.stdout.count("it has ended") == 1
    assert {str(queue.job(id_).state()) for id_ in handle.ids} == {"cancelled"}
