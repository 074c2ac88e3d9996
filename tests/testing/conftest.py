from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rqueue import task
from rqueue.tasks.registry import registry
from rqueue.testing import Harness, in_memory

Recorder = Callable[..., Any]


@pytest.fixture
def done() -> list[Any]:
    """What jobs say that they did."""
    return []


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks of this test alone."""
    monkeypatch.setattr(registry, "_tasks", {})


@pytest.fixture
def queues(tasks: None, no_defaults: Any) -> Iterator[Harness]:
    with in_memory() as harness:
        yield harness


@pytest.fixture
def recorder(tasks: None, done: list[Any]) -> Recorder:
    """Makes a task that says what it was called with."""

    def make(**options: Any) -> Any:
        @task(name="record", **options)
        def record(*args: Any) -> Any:
            done.append(args)
            return list(args)

        return record

    return make
