"""Pools that serve the shards of a queue."""

from collections.abc import Callable
from pathlib import Path

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.commands.shards import read_shards
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.workers.pools import Pool, eventually


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


def test_a_shard_on_another_server_is_seen_to(
    server: EmbeddedRedis,
    private_server: EmbeddedRedis,
    queue_name: str,
    make_pool: Callable[..., Pool],
) -> None:
    """Nobody else is there: the pool of one server lifts the fence of a shard on another one."""
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        handles = [queue.send("pid", [queue_name], options=keyed(number)) for number in range(8)]
        queue.open(place=private_server.url)
        later = [queue.send("pid", [queue_name], options=keyed(number)) for number in range(8)]
        assert {handle.queue for handle in later} == {f"{queue_name}~0", f"{queue_name}~1"}
        pool = make_pool(server.url, tell=server.url, lease="3s")
        for handle in handles:
            handle.result(PATIENCE)
        eventually(lambda: not queue._queue._run(read_shards(queue._queue.keys)).moving)
        assert pool.drained() == 0


def test_a_restart_for_a_new_shard_that_was_given_up_begins_again(
    server: EmbeddedRedis, queue_name: str, make_pool: Callable[..., Pool], tmp_path: Path
) -> None:
    """The application cannot be imported once: just when a worker is to serve the new shard."""
    app, broken = tmp_path / "once_broken_app.py", tmp_path / "broken"
    app.write_text(
        f"""
from pathlib import Path
from tests.workers import supervisor_app
if Path({str(broken)!r}).exists():
    Path({str(broken)!r}).unlink()
    raise ValueError("not now")
"""
    )
    with ShardedQueue(queue_name, server.url, shards=1) as queue:
        queue.table()
        pool = make_pool(
            server.url, app=["once_broken_app"], path=str(tmp_path), tell=server.url, lease="3s"
        )
        pool.said("is ready")
        broken.touch()
        queue.open()
        pool.said("rolling restart given up")
        pool.said("rolling restart is done")
        sent = [queue.send("pid", [queue_name], options=keyed(number)) for number in range(8)]
        for handle in sent:
            handle.result(PATIENCE)
        assert {handle.queue for handle in sent} == {f"{queue_name}~0", f"{queue_name}~1"}
        assert pool.drained() == 0


def keyed(number: int) -> Options:
    return Options(key=f"k{number}")
