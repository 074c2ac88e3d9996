"""What replies teach of Redis's clock."""

import pytest

from rqueue.protocol import server_clock
from rqueue.protocol.server_clock import LATE_MS, ServerClock

OFFSET = 1_000_000.0


def read(patch: pytest.MonkeyPatch, now: float, made: float, asked: float | None = None) -> float:
    """The offset after a reply that is read at `now`, s, and was made at `made`, ms."""
    patch.setattr(server_clock, "monotonic", lambda: now)
    clock = ServerClock(OFFSET)
    clock.read(round(made), *([] if asked is None else [asked]))
    return clock.offset


def test_a_reply_that_was_read_late_does_not_set_the_clock_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a process reads it that was frozen since it asked."""
    assert read(monkeypatch, now=20.0, made=OFFSET + 10_000, asked=10.0) == OFFSET
    assert read(monkeypatch, now=20.0, made=OFFSET + 10_000, asked=19.9) == OFFSET - 10_000
    assert read(monkeypatch, now=20.0, made=OFFSET + 10_000) == OFFSET - 10_000


def test_a_clock_that_is_ahead_of_what_was_known_is_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read(monkeypatch, now=20.0, made=OFFSET + 20_005, asked=10.0) == OFFSET + 5
    assert read(monkeypatch, now=20.0, made=OFFSET + 20_000 - LATE_MS / 2) == OFFSET
