"""What the command line says of shards, and changes."""

import json

import redis

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.tasks.options import Options
from tests.cli.looking import Read, Run

JOBS = 24


def test_a_queue_is_spread_and_its_shards_come_and_go(run: Run, read: Read, queue: Queue) -> None:
    name = queue.name
    assert "rqueue shards create" in run("shards", "list", name, code=2).stderr
    assert "over 2 open shards" in run("shards", "create", name, "2").stdout
    for number in range(12):
        queue.send("t", options=Options(id=f"job-{number}"))
    assert "shard 2 of queue" in run("shards", "open", name).stdout
    assert "are changing (open 2)" in run("shards", "drain", name, "0", code=1).stderr
    listed = read("shards", "list", name)
    assert (listed["version"], listed["moving"]) == (2, "open 2")
    assert [its["waits_for"] for its in listed["shards"]] == [[], [], [0, 1]]
    assert sum(its["waiting"] for its in listed["shards"]) == 12
    assert "changing: open 2" in run("shards", "list", name).stdout
    assert read("queues", name)["ready"] == 12
    assert read("show", "job-3")["queue"] in {f"{name}~0", f"{name}~1"}
    assert "is paused" in run("pause", name).stdout
    assert "is running" in run("resume", name).stdout
    for its in (queue.at(f"{name}~0"), queue.at(f"{name}~1")):
        its.cancel_all()
    assert "nothing is changing" in run("shards", "advance", name).stdout
    assert "shard 0 of queue" in run("shards", "drain", name, "0").stdout
    assert read("shards", "list", name)["shards"][0]["state"] == "closed"


def test_commands_are_about_all_shards(
    run: Run, read: Read, queue: Queue, private_server: EmbeddedRedis
) -> None:
    name = queue.name
    run("shards", "create", name, "2")
    run("shards", "open", name, "--place", private_server.url)
    for number in range(JOBS):
        assert read("enqueue", "t", str(number), "-q", name, "--id", f"j{number:02}")["created"]
    (row,) = [its for its in read("queues") if name in its["name"]]
    assert (row["name"], row["ready"], row["shards"]) == (name, JOBS, 3)
    rows = read("queues", name, "--shards")
    assert [its["name"] for its in rows] == [name, *(f"{name}~{n}" for n in range(3))]
    assert sum(its["ready"] for its in rows[1:]) == JOBS
    assert "3 shards" in run("queues").stdout
    assert sorted(job["id"] for job in read("jobs", name)["jobs"]) == [
        f"j{n:02}" for n in range(JOBS)
    ]
    assert len(run("browse", name, "--json").stdout.splitlines()) == JOBS
    far = [job["id"] for job in read("jobs", f"{name}~2")["jobs"]]
    assert read("show", far[0])["queue"] == f"{name}~2" == read("show", far[0], "-q", name)["queue"]
    assert "rejected" in run("reject", name, *far[:2], "--reason", "no").stdout
    assert {job["id"] for job in read("dead", "list", name)["jobs"]} == set(far[:2])
    assert read("dead", "requeue", name, far[0], "--yes")["jobs"] == 1
    assert read("dead", "purge", name, "--yes")["jobs"] == 1
    assert read("cancel", far[0], "--yes")[0]["cancelled"]
    assert read("promote", name, "--all", code=1)["promoted"] == 0
    assert read("expire", name, "--all", "--limit", "2", "--yes")["expired"] == 2
    history = [its["outcome"] for its in read_lines(run("history", name, "--json").stdout)]
    assert sorted(history) == ["cancelled", "dead", "dead", "expired", "expired", "purged"]
    assert read("configure", name, "--max-deliveries", "5")["max_deliveries"] == 5
    assert {its["settings"]["max_deliveries"] for its in read("queues", name, "--shards")} == {5}
    (stats,) = read_all(read("stats", name, "--interval", "10ms"))
    assert stats["queue"]["ready"] == JOBS - 4
    assert len(read("stats", name, "--shards", "--interval", "10ms")) == 4
    assert "is paused" in run("pause", name).stdout
    assert read("queues", name)["paused"] and "is running" in run("resume", name).stdout
    assert read("purge", name, "--yes")["jobs"] == JOBS - 4
    assert "limits" not in run("limits", "list", name, code=1).stdout
    read("doctor", name)
    run("delete", name, "--yes")
    assert [its["name"] for its in read("queues") if name in its["name"]] == []


def read_lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def read_all(found: object) -> list[dict[str, dict[str, object]]]:
    return found if isinstance(found, list) else [found]  # type: ignore[list-item]


def test_a_missing_shard_is_named(
    run: Run, queue: Queue, private_server: EmbeddedRedis, client: redis.Redis
) -> None:
    name = queue.name
    run("shards", "create", name, "2")
    run("shards", "open", name, "--unordered", "--place", private_server.url)
    for number in range(12):
        queue.send("t", options=Options(id=f"j{number:02}"))
    private_server.stop()
    gone = f"shard '{name}~2'"
    for command in (
        ("queues", name),
        ("queues", name, "--shards"),
        ("queues",),
        ("stats", name, "--interval", "10ms"),
        ("stats", name, "--shards", "--interval", "10ms"),
        ("history", name),
        ("jobs", name, "--all"),
        ("show", "nobody"),
        ("shards", "list", name),
        ("pause", name),
        ("resume", name),
        ("purge", name, "--yes"),
        ("delete", name, "--jobs", "--yes"),
    ):
        assert gone in run(*command, code=4).stderr, command
    assert f"{name}~0" in run("queues", name, "--shards", code=4).stdout
    assert "answers: drain it" in run("shards", "forget", name, "0", "--yes", code=2).stderr
    assert "do not answer" not in run("doctor", name, code=1).stdout
    assert f"{name}~2" in run("doctor", name, code=1).stdout
    assert "shard 2 of queue" in run("shards", "forget", name, "2", "--yes").stdout
    assert "gone" in run("shards", "list", name).stdout
    assert run("queues", name).stdout
    assert "no problems" in run("doctor", name).stdout
