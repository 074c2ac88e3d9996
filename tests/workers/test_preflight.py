"""What a pool says of a server that it waits for at its start."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from rqueue.errors import ConnectionLost
from rqueue.settings import Settings
from rqueue_workers.pool import preflight
from rqueue_workers.pool.signals import Inbox


def test_nodes_that_take_turns_are_told_of_once_each(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    tries = [ConnectionLost(f"cannot reach Redis at node {number}") for number in (1, 2, 1, 2, 1)]

    def look(*_: Any) -> list[Any]:
        if tries:
            raise tries.pop(0)
        return []

    monkeypatch.setattr(preflight, "_of_server", look)
    monkeypatch.setattr(preflight, "PAUSE", 0)
    assert preflight.pass_through(Settings(url="redis://127.0.0.1:1/0"), ["q"], 60, Inbox())
    assert ["node 1" in said for said in caplog.messages] == [True, False]
