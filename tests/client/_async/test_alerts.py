"""Who listens to a queue hears of its alerts."""

import pytest

from rqueue.client._async.queue import AsyncQueue
from rqueue.errors import ConfigError
from rqueue.model.alert import Alert
from rqueue.tasks.options import Options


async def heard(queue: AsyncQueue, after: str = "", most: int = 9) -> list[Alert]:
    """The alerts of a moment, or so many of them."""
    found = []
    async for alert in queue.alerts(0.05 if most > 1 else 10, after=after):
        found.append(alert)
        if len(found) == most:
            break
    return found


async def test_listeners_hear_of_each_alert(queue: AsyncQueue) -> None:
    """Q-72: those that come, or those behind one that they know."""
    await queue.configure(alert_depth=1)
    for id_ in ("a", "b"):
        await queue.send("t", options=Options(id=id_))
        await queue.cancel(id_)
    first, second = await heard(queue, "0")
    assert (first.depth, first.threshold) == (1, 1) and first.at_ms > 0
    assert await heard(queue, first.id) == [second]
    assert await heard(queue, "0", most=1) == [first]
    assert await heard(queue) == []


async def test_what_is_no_id_is_refused(queue: AsyncQueue) -> None:
    for wrong in ("x", "1-", "-", 5):
        with pytest.raises(ConfigError, match="after"):
            await heard(queue, wrong)  # type: ignore[arg-type]
