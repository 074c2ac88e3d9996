"""When a worker whose Redis cannot be used waits, and when it ends instead."""

from __future__ import annotations

import errno

import pytest

from rqueue.errors import ConnectionLost
from rqueue_workers.outage_log import LASTS_S
from rqueue_workers.worker import outage
from rqueue_workers.worker.outage import DescriptorsExhausted, Outage


def lost(number: int) -> ConnectionLost:
    error = ConnectionLost("cannot reach Redis: connecting to h:1.")
    error.__cause__ = OSError(number, "no connection")
    return error


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(outage, "monotonic", lambda: now[0])
    return now


def test_a_process_without_descriptors_for_a_connection_waits_for_some_and_ends(
    clock: list[float],
) -> None:
    one = Outage()
    one.note(lost(errno.EMFILE))
    clock[0] += LASTS_S - 1
    one.note(lost(errno.EMFILE))
    clock[0] += 2
    with pytest.raises(DescriptorsExhausted):
        one.note(lost(errno.EMFILE))


def test_a_server_that_is_away_is_waited_for(clock: list[float]) -> None:
    one = Outage()
    for _ in range(3):
        one.note(lost(errno.ECONNREFUSED))
        clock[0] += LASTS_S
    assert one.since == 100.0
    one.over()
    one.note(lost(errno.EMFILE))
    assert one.since == 130.0, "it begins anew"
