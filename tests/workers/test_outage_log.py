"""What a pool says while Redis is gone."""

from __future__ import annotations

import logging

import pytest

from rqueue.errors import ConnectionLost, RedisTimeout
from rqueue_workers.outage_log import LASTS_S, OutageLog

CLOSED = ConnectionLost("cannot reach Redis: Connection closed by server.")
WANTS = ConnectionLost("cannot reach Redis: reset by peer; does it want TLS? rediss:// is with it")
REFUSED = ConnectionLost("cannot reach Redis: Error 111 connecting to h:1. Connection refused.")


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> OutageLog:
    caplog.set_level(logging.WARNING)
    return OutageLog(logging.getLogger("tests.outage"), "supervisor")


def test_a_server_that_has_never_answered_may_want_tls(
    lines: OutageLog, caplog: pytest.LogCaptureFixture
) -> None:
    lines.begins(CLOSED, 100.0)
    assert "supervisor: Redis is gone: " in caplog.text
    assert "does it want TLS (rediss://), and is --url or RQUEUE_URL right?" in caplog.text


def test_one_that_was_used_is_at_the_right_address(
    lines: OutageLog, caplog: pytest.LogCaptureFixture
) -> None:
    lines.known()
    lines.begins(CLOSED, 100.0)
    lines.over(101.0)
    assert "supervisor: Redis is back after 1.0 s" in caplog.text
    assert "TLS" not in caplog.text and "RQUEUE_URL" not in caplog.text


def test_a_reason_that_lasts_is_said_too(
    lines: OutageLog, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that comes back with TLS ends its connections as any that stops."""
    lines.known()
    lines.begins(CLOSED, 100.0)
    lines.lasts(REFUSED, 101.0)
    lines.lasts(CLOSED, 100.0 + LASTS_S)
    assert len(caplog.messages) == 1, "no other one that lasts"
    lines.lasts(WANTS, 101.0 + LASTS_S)
    assert "is still gone after 11 s" in caplog.text and "does it want TLS" in caplog.text
    lines.lasts(RedisTimeout("no answer"), 102.0 + LASTS_S)
    assert len(caplog.messages) == 2, "once"
    lines.over(103.0 + LASTS_S)
    lines.begins(CLOSED, 200.0)
    lines.lasts(REFUSED, 201.0 + LASTS_S)
    assert "is --url or RQUEUE_URL right?" in caplog.messages[-1]


def test_one_line_stands_for_all_queues_of_a_node(caplog: pytest.LogCaptureFixture) -> None:
    """Whichever of them fails first, and in whatever order they come back."""
    caplog.set_level(logging.WARNING)
    log = logging.getLogger("tests.outage")
    urls = [f"redis+cluster://a:1,b:2, now {node}" for node in ("a:1", "b:2")]
    queues = {(url, n): OutageLog(log, "supervisor", f"q{n}") for url in urls for n in range(3)}
    for (url, _), lines in queues.items():
        lines.known()
        lines.begins(RedisTimeout("no answer", url=url), 100.0)
    assert [line.partition(": no")[0] for line in caplog.messages] == [
        "supervisor: Redis of queue q0 is gone (node a:1: its other queues too)",
        "supervisor: Redis of queue q0 is gone (node b:2: its other queues too)",
    ]
    caplog.clear()
    for lines in reversed(list(queues.values())):
        lines.over(103.0)
    assert caplog.messages == ["supervisor: Redis of queue q0 is back after 3.0 s"] * 2
    caplog.clear()
    queues[urls[0], 1].begins(RedisTimeout("no answer", url=urls[0]), 200.0)
    queues[urls[0], 1].over(201.0)
    assert len(caplog.messages) == 2
