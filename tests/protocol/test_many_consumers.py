"""A queue with very many consumers: what most renewals cost, and where it ends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from rqueue.errors import ConsumerRefused, QueueDamaged
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute

LEASE_MS = 60_000
MOST = 10_000


@pytest.fixture
def keys(client: redis.Redis, queue_name: str) -> Iterator[QueueKeys]:
    yield (keys := QueueKeys(queue_name))
    found = list(client.scan_iter(match=keys.pattern(), count=1000))
    if found:
        client.unlink(*found)


def join(client: redis.Redis, keys: QueueKeys, consumers: int) -> list[str]:
    """Consumers that wait for work."""
    names = [f"c{number}" for number in range(consumers)]
    for name in names:
        execute(client, commands.register(keys, name, window=Window(1), lease_ms=LEASE_MS))
    return names


def commands_of(client: redis.Redis, call: commands.ScriptCall[object]) -> int:
    """How many commands Redis counts for a call, those inside its script too."""
    execute(client, call)  # Redis has the script
    before = client.info("stats")["total_commands_processed"]
    execute(client, call)
    return int(client.info("stats")["total_commands_processed"] - before)


def test_a_renewal_that_finds_nothing_costs_the_same_however_many_wait(
    make_server: object, queue_name: str
) -> None:
    server = make_server(port=0)  # type: ignore[operator]  # nobody else's commands count there
    keys = QueueKeys(queue_name)
    with redis.Redis.from_url(server.url) as client:
        (first,) = join(client, keys, 1)
        renew = commands.renew(keys, LEASE_MS, [first])
        alone = commands_of(client, renew)
        names = [f"more-{number}" for number in range(100)]
        for name in names:
            execute(client, commands.register(keys, name, lease_ms=LEASE_MS))
        assert commands_of(client, renew) == alone
        eight = commands.renew(keys, LEASE_MS, [first, *names[:7]])
        assert commands_of(client, eight) <= alone + 7 * 2


def test_a_renewal_looks_at_those_that_it_may_have_to_tell(
    client: redis.Redis, keys: QueueKeys
) -> None:
    """Where it touches nobody it looks at nobody; where work waits that nobody was notified of, and
    a consumer's row is of another type, it changes nothing."""
    first, second = join(client, keys, 2)
    execute(client, commands.enqueue(keys, [Put("job", b'["t"]', delay_ms=3_600_000)]))
    execute(client, commands.promote(keys, ["job"]))
    client.zrem(keys.base + "notified", first, second)
    client.zadd(keys.base + "interested", {first: 1, second: 2})
    client.rename(keys.base + "consumer:" + first, keys.base + "kept")
    client.set(keys.base + "consumer:" + first, "x")
    before = client.zscore(keys.base + "consumers", second)
    with pytest.raises(QueueDamaged):
        execute(client, commands.renew(keys, 10 * LEASE_MS, [second]), queue=keys.queue)
    assert client.zscore(keys.base + "consumers", second) == before
    client.delete(keys.base + "consumer:" + first)
    client.rename(keys.base + "kept", keys.base + "consumer:" + first)
    execute(client, commands.renew(keys, 10 * LEASE_MS, [second]))
    assert client.zscore(keys.base + "consumers", second) > before
    assert execute(client, commands.counts(keys)).notified == 1


def test_a_queue_takes_ten_thousand_consumers(client: redis.Redis, keys: QueueKeys) -> None:
    join(client, keys, 1)
    client.zadd(keys.base + "consumers", {f"of many {n}": 1e15 for n in range(MOST - 2)})
    execute(client, commands.register(keys, "last", lease_ms=LEASE_MS))
    with pytest.raises(ConsumerRefused, match="has 10000 consumers, the most"):
        execute(client, commands.register(keys, "more", lease_ms=LEASE_MS), queue=keys.queue)
