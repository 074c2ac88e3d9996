"""What the command line says of alerts."""

from rqueue.client._sync.queue import Queue
from tests.cli.looking import Read, Run


def test_alerts_are_listed(run: Run, read: Read, queue: Queue) -> None:
    run("configure", queue.name, "--alert-depth", "2")
    assert run("alerts", queue.name).stdout == ""
    for _ in range(3):
        queue.send("t")
    (alert,) = queue.alerts(0, after="0")
    assert read("alerts", queue.name) == alert._asdict()
    assert "2 jobs  threshold 2" in run("alerts", queue.name).stdout
