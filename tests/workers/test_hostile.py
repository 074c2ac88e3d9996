"""What stands in Redis, and what jobs raise, reaches no log as control characters."""

from __future__ import annotations

import orjson

from rqueue.protocol.commands import Put
from tests.support.hostile import HOSTILE, STORABLE, false_lines, steers
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually


def test_a_worker_s_log_is_lines_of_text(workers: WorkerFixture) -> None:
    worker = workers.child()
    calls = {
        "fails": ["c.fail", [STORABLE]],
        "unknown": [STORABLE, []],
        "broken": {"no": "envelope"},
        "later": ["c.fail", [STORABLE]],
    }
    puts = [
        Put(f"{STORABLE}-{name}", orjson.dumps(call), max_deliveries=1 if name == "fails" else 0)
        for name, call in calls.items()
    ]
    workers.queue.enqueue_puts([*puts, Put("last", b'["c.noop"]')])
    workers.queue.job("last").result(PATIENCE)
    eventually(lambda: workers.queue.counts().dead == 2, "two dead letters")
    eventually(lambda: "-later" in worker.log_file.read_text(), "the failure in the log")
    eventually(lambda: workers.queue.counts().parked == 1, "the unknown one is parked")
    log = worker.log_file.read_text()
    assert "it waits for a worker that knows it, and is asked for again in " in log
    for name in calls:
        assert f"\\x00-{name}" in log, name
    assert steers(log) == []
    false = [line for line in false_lines(log) if "-fails" in line or "-later" in line]
    assert false == [], "an id makes no line of its own"
    assert HOSTILE not in log
