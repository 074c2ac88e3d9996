"""The feed of ended jobs: each end once, whatever its cause, whatever died."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError, ResultError, UnknownQueue
from rqueue.inspector import EndedJob, Inspector
from rqueue.inspector.ended_jobs import STATES
from rqueue.model.history_batch import OUTCOMES
from rqueue.model.job import JobState
from rqueue.tasks.options import Options
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool, eventually, noted, started

Make = Callable[..., Pool]
Places = dict[str, str]


def read(inspector: Inspector, name: str, after: Places | None) -> tuple[list[EndedJob], Places]:
    """What a reader gets that keeps its place as text, as a table does."""
    found: list[EndedJob] = []
    for batch in inspector.ended_jobs(name, after):
        assert not batch.lost
        found += batch.jobs
        after = json.loads(json.dumps(batch.after))
    return found, after or {}


def ways_to_end(queue: Queue, key: str) -> dict[str, tuple[str, JobState, str]]:
    """Jobs of all that a pool, people and time end: id by id the task, the state, the error."""
    once = Options(max_deliveries=1)
    ran = queue.send("note", [key, "x"])
    killed = queue.send("die", [key, "SIGKILL"], options=once)
    wrong = queue.send("note", [key], options=once)
    ended = {
        ran.id: ("note", JobState.DONE, ""),
        killed.id: ("die", JobState.DEAD, "SIGKILL"),
        wrong.id: ("note", JobState.DEAD, "rqueue.errors.BadArguments"),
    }
    for job in (ran, killed, wrong):
        with suppress(ResultError):
            job.result(PATIENCE)
    queue.pause()
    cancelled = queue.send("note", [key, "x"])
    assert cancelled.cancel()
    ended[cancelled.id] = ("note", JobState.CANCELLED, "")
    late = queue.send("note", [key, "x"], options=Options(ttl=0.001))
    damaged = queue.send("note", [key, "x"])
    queue.redis.hset(queue.keys.jobs, damaged.id, b"not a job")
    queue.resume()
    last = queue.send("note", [key, "x"])
    last.result(PATIENCE)
    eventually(lambda: late.state() is JobState.EXPIRED)
    ended[late.id] = ("note", JobState.EXPIRED, "")
    ended[damaged.id] = ("", JobState.DEAD, "undecodable")
    ended[last.id] = ("note", JobState.DONE, "")
    return ended


def test_every_end_is_read_once(
    make_pool: Make, queue: Queue, client: Any, queue_name: str
) -> None:
    inspector = Inspector(redis=client)
    with pytest.raises(UnknownQueue):
        list(inspector.ended_jobs("nobody"))
    pool = make_pool(lease="1s")
    expected = ways_to_end(queue, queue_name)
    found, place = read(inspector, queue_name, None)
    assert {end.id: (end.task, end.state, end.error) for end in found} == expected
    assert len(found) == len(expected)
    assert read(inspector, queue_name, place) == ([], place)

    # the pool dies, supervisor and all, with a job that has one attempt: another pool ends it
    last = queue.send("hold", [queue_name], options=Options(max_deliveries=1))
    started(client, queue_name)
    noted(queue, last.id)
    pool.clean_up()
    assert read(inspector, queue_name, place) == ([], place)
    make_pool(lease="1s")
    eventually(lambda: last.state() is JobState.DEAD)
    found, place = read(inspector, queue_name, place)
    assert [(end.id, end.state, end.error) for end in found] == [
        (last.id, JobState.DEAD, "LeaseEnded")
    ]

    # by people
    queue.pause()
    purged = queue.send("note", [queue_name, "x"])
    inspector.purge(queue_name)
    found, place = read(inspector, queue_name, place)
    assert [(end.id, end.state) for end in found] == [(purged.id, JobState.PURGED)]


def test_a_reader_that_comes_too_late_is_told(queue: Queue, client: Any) -> None:
    inspector = Inspector(redis=client)
    queue.configure(history_rows_max=2)
    for _ in range(2):
        assert queue.send("t").cancel()
    _, place = read(inspector, queue.name, None)
    for _ in range(2):
        assert queue.send("t").cancel()
    assert len(read(inspector, queue.name, place)[0]) == 2
    for _ in range(3):
        assert queue.send("t").cancel()
    with pytest.raises(ConfigError, match="after: '1-0' is not the `after` of a batch"):
        list(inspector.ended_jobs(queue.name, "1-0"))  # type: ignore[arg-type]
    (batch,) = inspector.ended_jobs(queue.name, place)
    assert (len(batch.jobs), batch.lost) == (2, True)


def test_each_outcome_that_ends_a_job_has_a_state() -> None:
    lasting = {"retry", "crash", "snooze", "refuse", "park", "changed", "damaged"}
    words = {*re.findall(r"(?:^|, (?:or )?)(\w+)", re.sub(r" *\([^)]*\)", "", OUTCOMES))}
    assert words - lasting == set(STATES)
    assert {state for state in JobState if state.ended} == set(STATES.values())
