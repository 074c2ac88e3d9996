# Generated from tests/client/_async/test_alerts.py (`make generate`): do not edit.
"""Who listens to a queue hears of its alerts."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError
from rqueue.model.alert import Alert
from rqueue.tasks.options import Options


def heard(queue: Queue, after: str = "", most: int = 9) -> list[Alert]:
    """The alerts of a moment, or so many of them."""
    found = []
    for alert in queue.alerts(0.05 if most > 1 else 10, after=after):
        found.append(alert)
        if len(found) == most:
            break
    return found


def test_listeners_hear_of_each_alert(queue: Queue) -> None:
    """Q-72: those that come, or those behind one that they know."""
    queue.configure(alert_depth=1)
    for id_ in ("a", "b"):
        queue.send("t", options=Options(id=id_))
        queue.cancel(id_)
    first, second = heard(queue, "0")
    assert (first.depth, first.threshold) == (1, 1) and first.at_ms > 0
    assert heard(queue, first.id) == [second]
    assert heard(queue, "0", most=1) == [first]
    assert heard(queue) == []


def test_what_is_no_id_is_refused(queue: Queue) -> None:
    for wrong in ("x", "1-", "-", 5):
        with pytest.raises(ConfigError, match="after"):
            heard(queue, wrong)  # type: ignore[arg-type]
