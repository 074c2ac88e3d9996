"""What the command line says of shards, and changes."""

from rqueue.client._sync.queue import Queue
from rqueue.tasks.options import Options
from tests.cli.looking import Read, Run


def test_a_queue_is_spread_and_its_shards_come_and_go(run: Run, read: Read, queue: Queue) -> None:
    name = queue.name
    assert "say how many" in run("shards", "list", name, code=2).stderr
    assert "over 2 open shards" in run("shards", "create", name, "2").stdout
    for number in range(12):
        queue.send("t", options=Options(id=f"job-{number}"))
    assert "shard 2 of queue" in run("shards", "open", name).stdout
    assert "are changing (open 2)" in run("shards", "drain", name, "0", code=1).stderr
    listed = read("shards", "list", name)
    assert (listed["version"], listed["moving"]) == (2, "open 2")
    assert [its["waits_for"] for its in listed["shards"]] == [[], [], ["0", "1"]]
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
