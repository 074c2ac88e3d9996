"""Periodic jobs in real pools."""

import signal
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue_workers.exit_codes import Exit
from tests.workers.pools import Pool, eventually, pop

MakePool = Callable[..., Pool]
APP = "tests.workers.schedules_app"


@pytest.mark.timeout(120)
def test_no_tick_is_lost_or_there_twice_when_a_pool_is_killed(
    queue: Queue,
    client: redis.Redis,
    make_pool: MakePool,
    queue_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A-41, A-42, A-46: two pools look at a schedule of seconds; another one is in their code."""
    monkeypatch.setenv("TEST_QUEUE", queue_name)
    ticks = f"{queue_name}:ticks"
    pools = [make_pool(app=[APP], processes=1, lease="2s") for _ in range(2)]
    queue.schedules.set("s", "tell", [ticks], cron="* * * * * *", missed="all")
    seen = [int(pop(client, ticks)) for _ in range(2)]
    victims = [psutil.Process(pools[0].pid), *psutil.Process(pools[0].pid).children(recursive=True)]
    for victim in victims:
        with suppress(psutil.NoSuchProcess):
            victim.send_signal(signal.SIGKILL)
    pools[0].ended()
    while len({*seen}) < 5:
        seen.append(int(pop(client, ticks)))
    assert int(pop(client, f"{queue_name}:beats")) >= min(seen) - 1
    assert queue.schedules.pause("s") and queue.schedules.pause("beat")
    # what became a job before the pause runs
    eventually(lambda: not client.exists(queue.keys.jobs))
    assert pools[1].drained() == Exit.OK
    seen += [int(tick) for tick in client.lrange(ticks, 0, -1)]  # type: ignore[union-attr]
    info = queue.schedules.get("s")
    assert sorted({*seen}) == list(range(min(seen), max(seen) + 1))
    assert info.fired == max(seen) - min(seen) + 1
    assert (info.missed, info.skipped, info.last_ms) == (0, 0, max(seen) * 1000)
