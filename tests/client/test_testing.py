"""The clock that tests stop, and the look that they take in place of a fleet's timers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError
from rqueue.protocol.job_packer import Call
from rqueue.tasks.options import Options
from rqueue.testing import frozen_time, housekeeping, move_time

NOON = datetime(2030, 1, 31, 12, tzinfo=UTC)


def test_time_stands_and_moves_exactly(queue: Queue) -> None:
    with frozen_time(queue, NOON) as time:
        assert time.now == NOON
        job = queue.send("t", options=Options(delay_ms=60_000))
        consumer = queue.consumer(jobs=5, renew=False).register()
        assert time.move(59.999) == NOON + timedelta(milliseconds=59_999)
        assert consumer.pull() == []
        time.move(timedelta(milliseconds=1))
        (taken,) = consumer.pull()
        assert taken.id == job.id
        assert taken.enqueued_ms == NOON.timestamp() * 1000
        assert move_time(queue, 1) == NOON.timestamp() * 1000 + 60_001
    assert queue.redis.hget(queue.keys.meta, "clock") is None
    assert abs(queue.counts().now - datetime.now(UTC).timestamp() * 1000) < 60_000


def test_it_stops_now_unless_a_time_is_given(queue: Queue) -> None:
    with frozen_time(queue) as time:
        assert abs(time.now - datetime.now(UTC)) < timedelta(minutes=1)
        assert time.now == time.now
    with pytest.raises(ConfigError, match="at: "), frozen_time(queue, "noon"):  # type: ignore[arg-type]
        pass


def test_housekeeping_returns_what_a_dead_consumer_held(queue: Queue) -> None:
    queue.send("t")
    with frozen_time(queue) as time:
        dead = queue.consumer(jobs=600, lease="5s", renew=False).register()
        queue.enqueue_many([Call("t")] * 499)
        assert len(dead.pull()) == 500
        time.move(4.9)
        assert housekeeping(queue) == 0
        assert queue.counts().held == 500
        time.move(0.2)
        assert housekeeping(queue) == 1, "in as many steps as it takes"
        counts = queue.counts()
        assert (counts.held, counts.ready) == (0, 500)
        assert housekeeping(queue) == 0


def test_housekeeping_passes_on_what_nobody_answered(queue: Queue) -> None:
    with frozen_time(queue) as time:
        first = queue.consumer(jobs=5, renew=False).register()
        second = queue.consumer(jobs=5, renew=False).register()
        queue.send("t")
        queue.send("t")
        time.move(60 * 60 * 24 * 365)
        assert housekeeping(queue) == 2, "both leases have ended"
        assert queue.counts().ready == 2
        assert first.term
        assert second.term
