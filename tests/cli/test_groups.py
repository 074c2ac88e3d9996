"""What the command line says of sticky groups."""

from rqueue.client._sync.queue import Queue
from rqueue.tasks.options import Options
from tests.cli.looking import Read, Run
from tests.support.patience import PATIENCE


def test_who_owns_a_group_and_how_it_is_freed(run: Run, read: Read, queue: Queue) -> None:
    assert (
        "are not sticky"
        in run("configure", queue.name, "--keep", "1h").stdout
        + run("groups", queue.name, code=1).stderr
    )
    run("configure", queue.name, "--sticky", "16", "--rebalance")
    for number in range(2):
        queue.send("t", options=Options(id=f"a{number}", group="a"))
    with queue.consumer(name="c1") as consumer:
        assert consumer.receive(timeout=PATIENCE).id == "a0"
        consumer.interest(0)
        consumer.release("a0")
        owner = {"consumer": "c1", "buckets": 1, "ready": 1, "state": "not_interested"}
        assert read("groups", queue.name)["owners"] == [owner]
        assert "not_interested" in run("groups", queue.name).stdout
        assert read("groups", queue.name, "a")["owner"] == "c1"
        assert "c1" in run("groups", queue.name, "a", "--reset").stdout
        assert "no consumer" in run("groups", queue.name, "a", code=1).stdout
    assert "name the group" in run("groups", queue.name, "--reset", code=2).stderr
