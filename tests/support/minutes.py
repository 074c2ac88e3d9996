"""Minutes of a queue's clock."""

from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture

MINUTE = 60_000


def pass_minutes(q: QueueFixture, minutes: float) -> None:
    move_time(q.queue, minutes * MINUTE)
