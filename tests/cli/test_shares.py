"""What the command line says of shares, and changes."""

from rqueue.client._sync.queue import Queue
from rqueue.tasks.options import Options
from tests.cli.looking import Read, Run


def test_shares_are_listed_and_weighed(run: Run, read: Read, queue: Queue) -> None:
    name = queue.name
    for id_, share in (("job-a", "acme"), ("job-b", "acme"), ("job-c", "web & co")):
        queue.send("t", options=Options(id=id_, share=share))
    assert [tuple(row.values()) for row in read("shares", "list", name)] == [
        ("acme", 2, 1, False),
        ("web & co", 1, 1, False),
    ]
    shown = run("show", "job-b", "-q", name).stdout
    assert "ready, 1 before it in its share, one of 2 shares that take turns" in shown
    assert "acme, weight 1" in shown
    assert "next in its share" in run("show", "job-a", "-q", name).stdout
    assert "share 'acme' in queue" in run("shares", "set", name, "acme", "3").stdout
    assert "75.0%" in run("shares", "list", name).stdout
    assert read("show", "job-b", "-q", name)["turn"] == {"weight": 3, "waiting": 2}
    assert read("show", "job-b", "-q", name)["share"] == "acme"
    assert read("shares", "set", name, "*", "2")["weight"] == 2
    assert read("shares", "list", name)[-1] == {
        "name": "web & co",
        "ready": 1,
        "weight": 2,
        "own": False,
    }
    assert "the weight of all others" in run("shares", "reset", name, "acme").stdout
    assert "2 shares waiting" in run("stats", name).stdout
    (row,) = [row for row in read("queues") if row["name"] == name]
    assert (row["ready"], row["shares"]) == (3, 2)


def test_a_weight_that_is_none_is_refused(run: Run, queue: Queue) -> None:
    queue.send("t")
    assert "1 to 1000" in run("shares", "set", queue.name, "acme", "1001", code=2).stderr
