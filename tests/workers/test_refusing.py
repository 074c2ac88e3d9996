"""A job that refuses to run in one worker process is run by another one, in real pools."""

from collections import Counter
from collections.abc import Callable

import redis

from rqueue.client._sync.queue import Queue
from rqueue_workers.exit_codes import Exit
from tests.support.snapshot import take_snapshot
from tests.workers.pools import Pool

JOBS = 6


def test_what_one_process_refuses_another_one_runs(
    queue: Queue, client: redis.Redis, make_pool: Callable[..., Pool], queue_name: str
) -> None:
    """Q-08: each process tries each job once, whatever it holds, and no attempt is counted."""
    key = f"{queue_name}-first"
    pool = make_pool(app=["tests.workers.refusing_app"], processes=2)
    handles = [queue.send("elsewhere", [key]) for _ in range(JOBS)]
    done_by = {handle.result(20) for handle in handles}
    first = int(client.get(key) or 0)
    assert len(done_by) == 1 and first not in done_by
    runs = [int(pid) for pid in client.lrange(f"{key}-runs", 0, -1)]
    assert runs.count(first) <= JOBS and len(runs) <= 2 * JOBS
    assert pool.drained() == Exit.OK
    outcomes = Counter(row["outcome"] for row in take_snapshot(client, queue.keys).history)
    assert outcomes == {"ack": JOBS, "refuse": runs.count(first)}
    assert "retried" not in queue.counts().meta
    client.delete(key, f"{key}-runs")
