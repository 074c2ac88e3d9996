"""Last values in real pools, for both clients."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import redis

from rqueue.client._async.queue import AsyncQueue
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import JobDisplaced
from rqueue.tasks.options import Options
from rqueue_workers.exit_codes import Exit
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool, pop

MakePool = Callable[..., Pool]
APP = "tests.workers.last_value_app"


@pytest.mark.timeout(120)
def test_only_the_latest_value_of_each_key_runs(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str, server: EmbeddedRedis
) -> None:
    """Q-15: while one runs the others displace each other; waits for their results end."""
    pool = make_pool(app=[APP], processes=1)
    running = queue.send("refresh", [queue_name, -1], None, Options(key="a"))
    assert pop(client, f"{queue_name}:seen") == "-1"
    handles = [
        queue.send("refresh", [queue_name, n], None, Options(key=f"k{n % 2}")) for n in range(6)
    ]

    async def awaited() -> None:
        async with AsyncQueue(queue.name, server.url) as other:
            with pytest.raises(JobDisplaced):
                await other.job(handles[1].id).result(PATIENCE)

    asyncio.run(awaited())
    with pytest.raises(JobDisplaced):
        handles[0].result(PATIENCE)
    client.rpush(f"{queue_name}:go", "1")
    ran = (running, handles[4], handles[5])
    assert [job.result(PATIENCE) for job in ran] == [-1, 4, 5]
    seen: Any = client.lrange(f"{queue_name}:seen", 0, -1)
    assert seen == [b"4", b"5"]
    assert pool.drained() == Exit.OK
    assert not client.exists(queue.keys.latest, queue.keys.heads, queue.keys.jobs)
