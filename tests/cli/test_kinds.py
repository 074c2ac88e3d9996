"""Kinds of queues from the command line: live consumers, alternate queues, the end of a queue."""

from rqueue.client._sync.queue import Queue
from tests.cli.looking import Make, Read, Run


def test_consumers_that_stand_by(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    said = read("configure", queue.name, "--live-consumers", "1", "--max-consumers", "2")
    assert (said["live_consumers"], said["max_consumers"]) == (1, 2)
    live, standby = consumer(), consumer()
    listed = {info["name"]: info["standby"] for info in read("consumers", queue.name)}
    assert listed == {live.name: 0, standby.name: 1}
    shown = run("consumers", queue.name).stdout
    assert "stands by" in shown and "live" in shown
    assert "live consumers" in run("configure", queue.name).stdout
    assert "2 consumers" in run("configure", queue.name, "--strict", code=2).stderr


def test_where_dead_letters_go(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    target = f"{queue.name}-dead"
    assert "no queue" in run("configure", queue.name, "--dead-to", target, code=2).stderr
    run("configure", target, "--keep", "1h")
    assert read("configure", queue.name, "--dead-to", target)["dead_to"] == target
    assert target in run("configure", queue.name).stdout
    queue.send("t")
    one = consumer()
    one.reject(one.pull()[0], "no")
    one.close()
    assert read("queues", queue.name)["counters"]["moved"] == 1
    assert read("queues", target)["ready"] == 1
    assert "it has dead letters" in run("delete", target, "--jobs", "--yes", code=1).stderr
    assert "dead_to" not in read("configure", queue.name, "--dead-to", "")


def test_delete(run: Run, read: Read, queue: Queue, consumer: Make) -> None:
    run("delete", queue.name, "--yes", code=3)
    queue.send("t")
    consumer()
    assert read("delete", queue.name, "--dry-run") == {
        "queue": queue.name, "jobs": 1, "consumers": 1, "dry_run": True,
    }  # fmt: skip
    assert "it has 1 job" in run("delete", queue.name, "--yes", code=1).stderr
    assert "1 consumer" in run("delete", queue.name, "--jobs", "--yes", code=1).stderr
    said = run("delete", queue.name, "--jobs", "--consumers", "--yes").stdout
    assert f"deleted queue '{queue.name}' and 1 job" in said
    run("queues", queue.name, code=3)


def test_the_doctor_passes_by_what_is_left_of_a_deleted_queue(
    run: Run, read: Read, queue: Queue
) -> None:
    apart = ("--namespace", f"apart-{queue.name}")
    for name in ("gone", "kept"):
        run("configure", name, "--kind", "plain", *apart)
    run("delete", "gone", "--yes", *apart)
    assert read("doctor", *apart)["healthy"]


def test_a_queue_that_goes_by_itself(run: Run, read: Read, queue: Queue) -> None:
    run("configure", queue.name, "--delete-if", "empty", "--delete-after", "5m")
    shown = run("configure", queue.name).stdout
    assert "delete if" in shown and "5m" in shown
    assert "delete if empty" in run("queues", queue.name).stdout
    assert read("queues", queue.name)["settings"]["delete_after_ms"] == 300_000
