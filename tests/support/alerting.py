"""What a queue has said of its depth, in tests."""

from rqueue.protocol.commands.alert_notes import kept_alerts
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture


def alerts(q: QueueFixture) -> list[tuple[int, int]]:
    """(depth, threshold) of the alerts that are kept, the earliest first."""
    found = execute(q.queue.redis, kept_alerts(q.queue.keys))
    return [(alert.depth, alert.threshold) for alert in found]
