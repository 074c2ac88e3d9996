"""A workflow that runs is cancelled as a whole: by its id, from another process, with force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rqueue.cli.root import cli
from rqueue.client._sync.queue import Queue
from rqueue.errors import UnknownJob
from rqueue.inspector import Inspector
from rqueue.model.job import JobState
from rqueue.tasks.workflow import chord
from tests.support.command_line import runner
from tests.workers.pools import Pool, eventually, started
from tests.workers.supervisor_app import hold, note

Make = Callable[..., Pool]


@pytest.fixture
def running(make_pool: Make, queue: Queue, client: Any, queue_name: str) -> list[str]:
    """The ids of a workflow two of whose members run."""
    pool = make_pool(processes=2, prefetch=1)
    members = [hold.si(queue_name) for _ in range(2)]
    handle = queue.enqueue_workflow(chord(members, note.si(queue_name, "x")), id="flow")
    for _ in members:
        started(client, queue_name)
    pool.said("is ready after", 2)
    return list(handle.ids)


def test_by_its_id(running: list[str], client: Any, queue: Queue, queue_name: str) -> None:
    inspector = Inspector(redis=client)
    with pytest.raises(UnknownJob):
        inspector.cancel("nobody", workflow=True)
    answers = inspector.cancel("flow", queue_name, workflow=True, kill=True, timeout=60)
    assert {one.id: one.was for one in answers} == dict.fromkeys(running, "stopped")
    assert all(one.cancelled and one.queue == queue_name for one in answers)
    assert answers[0].id == "flow", "what waits first: nothing begins any more"
    for id_ in running:
        assert queue.job(id_).state() is JobState.CANCELLED
    again = inspector.cancel("flow", queue_name, workflow=True, kill=True)
    assert [(one.was, one.cancelled) for one in again] == [("ended", False)]


def test_on_the_command_line(
    running: list[str], client: Any, queue: Queue, queue_name: str, server: Any
) -> None:
    command = ["cancel", "flow", "--workflow", "--running", "--timeout", "60", "--yes"]
    done = runner().invoke(cli, [*command, "--url", server.url, "-q", queue_name])
    assert done.exit_code == 0, done.output
    assert done.output.count("it runs no more") == 3


def test_by_its_handle(running: list[str], queue: Queue, queue_name: str, client: Any) -> None:
    flow = queue.enqueue_workflow(
        chord([hold.si(queue_name) for _ in range(2)], note.si(queue_name, "x")), id="flow"
    )
    assert flow.cancel(kill=True) == 3
    eventually(lambda: not any(client.hgetall(queue.keys.jobs)))
