"""Pools that serve the shards of a queue."""

from collections.abc import Callable

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.workers.pools import Pool


def test_a_redis_that_was_silent_is_worked_for_again(
    server: EmbeddedRedis, queue_name: str, make_pool: Callable[..., Pool]
) -> None:
    with (
        ShardedQueue(queue_name, server.url, shards=2) as queue,
        Proxy(server.url.removeprefix("unix://")) as proxy,
    ):
        queue.table()
        pool = make_pool(proxy.url, tell=server.url, lease="3s")
        pool.said("is ready")
        proxy.hold()
        pool.said("supervisor: Redis is gone")
        proxy.release()
        pool.said("supervisor: Redis is back")
        with Queue(queue_name, server.url) as plain:
            plain.send("pid", [queue_name]).result(PATIENCE)
        assert pool.drained() == 0
