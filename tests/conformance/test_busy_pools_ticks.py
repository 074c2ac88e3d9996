"""A pool that is there misses no tick, however many are due between two of its renewals."""

import pytest

from rqueue.protocol import commands
from rqueue.protocol.commands.clock import stop_clock
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, every_place

NOW, LEASE_MS = 1_800_000_000_000, 900_000


def renew(q: QueueFixture) -> None:
    """As a supervisor does: again at once while there is more."""
    while execute(q.queue.redis, commands.renew(q.queue.keys, LEASE_MS, [])).more:
        pass


@every_place
@pytest.mark.parametrize("missed", ["last", "skip"])
@pytest.mark.parametrize(("schedules", "seconds"), [(40, 3), (1, 120)])
def test_all_ticks_become_jobs(q: QueueFixture, missed: str, schedules: int, seconds: int) -> None:
    """A-42: more schedules, or more ticks of one, than a call looks at."""
    execute(q.queue.redis, stop_clock(q.queue.keys, NOW))
    for i in range(schedules):
        q.queue.schedules.set(f"s{i}", "t", every=1, missed=missed)  # type: ignore[arg-type]
    renew(q)
    for _ in range(2):
        move_time(q.queue, seconds * 1000)
        renew(q)
    found = q.queue.schedules.list()
    assert {(one.fired, one.missed) for one in found} == {(2 * seconds, 0)}
