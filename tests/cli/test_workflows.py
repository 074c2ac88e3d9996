"""What the command line says of workflows."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.inspector import workflows
from rqueue.tasks.workflow import chain, chord, group
from tests.cli.looking import Read, Run
from tests.support.open_streams import OpenStream
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


def test_what_waits_is_cancelled_first_also_with_force(read: Read, queue: Queue) -> None:
    queue.enqueue_workflow(chain(double.s(1), double.s(), double.s()), id="forced")
    answers = read("cancel", "forced", "--workflow", "--running", "-q", queue.name, "--yes")
    assert [(one["id"], one["was"]) for one in answers] == [
        ("forced", "stopped"),
        ("forced.0", "stopped"),
        ("forced.0.0", "stopped"),
    ]


def test_a_stream_that_goes_on(run: Run, read: Read, queue: Queue) -> None:
    on = ("-q", queue.name)
    flow = OpenStream(queue, "w")
    assert "deferred, waits for 0 jobs; open, 0 so far" in run("show", "w", *on).stdout
    flow.step(30)
    queue.cancel("w.3")
    flow = OpenStream(queue, "v")
    flow.step(30)
    with queue.consumer(jobs=2, renew=False) as consumer:
        consumer.settle(ack=consumer.pull())
    said = run("show", "v", *on).stdout
    assert "deferred, waits for 30 jobs; open, 30 so far" in said
    assert "├─ v.0 (double) ready" in said and "└─ and 10 others" in said
    assert read("show", "v", *on)["joined"] == 30
    assert "30, open" in run("jobs", queue.name, "--state", "deferred").stdout
    assert run("doctor", queue.name).stdout.startswith(("no problems", "note"))


def test_a_stream_is_cancelled_while_it_goes_on(
    read: Read, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Members that come while its first ones are read are cancelled too."""
    flow = OpenStream(queue, "w")
    flow.step(20)
    lists = workflows.waited_for

    def late(*args: object) -> object:
        yield from lists(*args)  # type: ignore[arg-type]
        flow.step(10)

    monkeypatch.setattr(workflows, "waited_for", late)
    monkeypatch.setattr(workflows, "PAGE", 7)
    answers = read("cancel", "w", "--workflow", "-q", queue.name, "--yes")
    assert [one["id"] for one in answers] == ["w", *(f"w.{n}" for n in range(30))]
    assert {one["was"] for one in answers} == {"deferred", "ready"}
    assert queue.counts().ready == 0


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (1, "no job 'grp', but 'grp.0': it is the one member of a group, name a job of it"),
        (3, "no job 'grp', but 'grp.0' to 'grp.2': they are the 3 members of a group, name a job"),
        (8, "'grp.0' to 'grp.7': they are the 8 members"),
    ],
)
def test_a_group_is_no_job_and_has_members(run: Run, queue: Queue, count: int, said: str) -> None:
    queue.enqueue_workflow(group(double.s(n) for n in range(count)), id="grp")
    for command in ("show", "result", "watch", "log", "log --follow", "cancel --yes"):
        assert said in run(*command.split(), "grp", "-q", queue.name, code=3).stderr
    answer = run("cancel", "grp.0", "grp", "-q", queue.name, "--yes", code=3).stderr
    assert answer.endswith("; nothing was cancelled\n") and queue.counts().ready == count
    assert "--timeout 30s" in run("result", "grp.0", "--wait", "2s", code=2).stderr
