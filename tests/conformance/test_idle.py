"""What it costs to wait."""

from collections.abc import Callable
from typing import Any

import pytest

from rqueue.embedded.server import EmbeddedRedis
from tests.support.queue_fixture import QueueFixture

WAIT_S = 1.5


@pytest.mark.each_server
def test_who_waits_sends_one_command(
    private_server: EmbeddedRedis, make_q: Callable[[EmbeddedRedis], QueueFixture]
) -> None:
    """Not one for each moment that it waits; and Redis does nothing for it by itself."""
    q = make_q(private_server)
    consumer = q.join()
    assert consumer.pull() == []
    client: Any = q.queue.redis
    before = calls(client)
    assert not consumer.wait(WAIT_S)
    after = calls(client)
    sent = {name: count - before.get(name, 0) for name, count in after.items()}
    asked = {name: count for name, count in sent.items() if count and name not in OURS}
    assert asked in ({"blpop": 1}, {}), "some servers count it when it ends"
    consumer.close()


OURS = {
    "info",
    "client",
    "hello",
    "client|setinfo",
    "ping",
    "select",
    "client|unblock",
    "client|id",
}
"""What this test sends itself, and a connection that is opened."""


def calls(client: Any) -> dict[str, int]:
    rows = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): row["calls"] for name, row in rows.items()}
