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


def test_a_workflow_of_several_queues_is_shown_and_cancelled(
    run: Run, read: Read, queue: Queue
) -> None:
    other = f"{queue.name}-pages"
    in_one = [member.options(queue=queue.name) for member in (double, total)]
    workflow = chord(
        [chain(double.options(queue=other).s(n), in_one[0].s()) for n in range(2)], in_one[1].s()
    )
    handle = queue.enqueue_workflow(workflow, id="over", spread=True)
    tree = run("show", "over", "-q", queue.name).stdout.partition("waits for\n")[2].splitlines()
    assert [line.strip() for line in tree] == [
        "├─ over.0 (double) deferred",
        f"│  └─ over.0.0 (double) ready in {other}",
        "└─ over.1 (double) deferred",
        f"└─ over.1.0 (double) ready in {other}",
    ]
    answers = read("cancel", "over", "--workflow", "-q", queue.name, "--yes")
    assert {one["id"]: one["queue"] for one in answers} == {
        id_: handle.queues.get(id_, queue.name) for id_ in handle.ids
    }
    assert {one["cancelled"] for one in answers} == {True}
