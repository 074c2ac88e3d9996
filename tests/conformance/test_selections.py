"""Every job of a queue is met by calls that mean all of them: behind pages of ended jobs, and
whatever became of the clock."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random

import pytest

from rqueue.client._sync import job_selection
from rqueue.client._sync.queue import Queue
from rqueue.inspector.dead_letters import purge_dead, requeue_dead
from rqueue.inspector.jobs import PAGE_MAX, all_jobs, jobs_page
from rqueue.model.job import Delivery
from rqueue.model.job_filter import JobFilter
from rqueue.protocol.paging import read_pages, waiting
from rqueue.testing import frozen_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, every_place, ids, on_real_servers, one_kind
from tests.support.two_queues import second

MARKS = 20
"""Elements that a page of one job looks at in one list (`ROUNDS` of lua/browse.lua)."""

SELECTIONS: dict[str, Callable[[Queue, str], int]] = {
    "cancel": lambda queue, _to: queue.cancel_all(),
    "cancel those of a task": lambda queue, _to: queue.cancel_all(JobFilter(task="t")),
    "cancel so many": lambda queue, _to: queue.cancel_all(limit=1_000_000),
    "expire": lambda queue, _to: queue.expire_all(),
    "reject": lambda queue, _to: queue.reject_all(),
    "move": lambda queue, to: queue.move_all(to),
    "copy": lambda queue, to: queue.copy_all(to),
}


def end(q: QueueFixture, some: list[str], random: Random, to: str) -> None:
    """End jobs that wait, in any way that leaves their places behind."""
    way = random.choice(["cancel", "expire", "reject", "move"])
    if way == "cancel":
        for id_ in some:
            q.queue.cancel(id_)
    elif way == "move":
        q.queue.move(to, *some)
    elif way == "expire":
        q.queue.expire(*some)
    else:
        q.queue.reject(*some)


def full_of_ended_ones(q: QueueFixture, random: Random, to: str) -> list[str]:
    """Stretches of ended jobs, most of them longer than a page, with jobs that wait between them,
    on all levels; returns those that wait."""
    left: list[str] = []
    number = 0
    for _ in range(random.randint(2, 6)):
        level = random.choice([4, 4, 7])
        gone, wait = random.randint(0, 3 * MARKS), random.randint(0, 3)
        names = [f"j{number + n:04}" for n in range(gone + wait)]
        number += gone + wait
        q.put_all([(id_, {"priority": level}) for id_ in names])
        if gone:
            end(q, names[:gone], random, to)
        left += names[gone:]
    return left


@every_place
@pytest.mark.parametrize("seed", range(6))
def test_pages_of_ended_jobs_are_not_the_end(q: QueueFixture, seed: int) -> None:
    random = Random(seed)
    client, keys = q.queue.redis, q.queue.keys
    with second(q) as target:
        left = full_of_ended_ones(q, random, target.queue.name)
        for limit in (1, 2, 500):
            pages = read_pages(waiting(keys, limit=limit), partial(execute, client))
            assert sorted(job.id for page in pages for job in page.jobs) == left
            first = jobs_page(client, keys, "ready", limit=limit)
            assert len(first.jobs) == min(limit, len(left))
        assert sorted(job.id for job in all_jobs(client, keys, "ready")) == left
        assert sorted(q.listed()) == left


@one_kind
@pytest.mark.parametrize("name", SELECTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_a_selection_means_all_jobs(
    q: QueueFixture, name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number is trusted: 0 means that none is left."""
    monkeypatch.setattr(job_selection, "waiting", partial(waiting, limit=1))
    monkeypatch.setattr(job_selection, "WINDOW", 2)
    with second(q) as target:
        to = target.queue.name
        left = full_of_ended_ones(q, Random(seed), to)
        done = SELECTIONS[name](q.queue, to)
        assert (int(done), done.stayed) == (len(left), {})
        assert q.queue.counts().ready == (len(left) if name == "copy" else 0)


@on_real_servers
def test_more_ended_jobs_than_a_whole_page_looks_at(q: QueueFixture) -> None:
    count = MARKS * PAGE_MAX + 1000
    q.put_all([(f"j{n:05}", {}) for n in range(count)])
    assert q.queue.cancel_all(limit=count - 500) == count - 500
    assert len(jobs_page(q.queue.redis, q.queue.keys).jobs) == 100
    assert q.queue.reject_all() == 500


@one_kind
@pytest.mark.parametrize("back", [0, 1, 60, 86_400])
@pytest.mark.parametrize("name", SELECTIONS)
def test_a_selection_knows_no_clock(q: QueueFixture, name: str, back: int) -> None:
    with second(q) as target, frozen_time(q.queue) as time:
        q.put("a", "b")
        q.put("later", delay_ms=5_000)
        time.move(-back)
        assert SELECTIONS[name](q.queue, target.queue.name) == 3


@one_kind
@pytest.mark.parametrize("step", [-60, 0, 60])
def test_what_is_enqueued_meanwhile_stays(
    q: QueueFixture, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_selection, "WINDOW", 1)
    with frozen_time(q.queue) as time:
        q.put("a", "b", "c")
        cancel_one = q.queue._run

        def and_another_one_comes(call: object) -> object:
            answer = cancel_one(call)  # type: ignore[arg-type]
            if getattr(call, "script", "") == "cancel":
                time.move(step)
                monkeypatch.setattr(q.queue, "_run", cancel_one)
                q.put("new", "later", delay_ms=1)
            return answer

        monkeypatch.setattr(q.queue, "_run", and_another_one_comes)
        assert q.queue.cancel_all() == 3
        assert q.queue.counts().scheduled == 2


@one_kind
@pytest.mark.parametrize("back", [0, 60, 86_400])
def test_dead_letters_are_met_whatever_the_clock_says_and_only_once(
    q: QueueFixture, back: int
) -> None:
    client, keys = q.queue.redis, q.queue.keys
    with second(q) as target, frozen_time(q.queue) as time:
        q.put("a", "b", "c")
        q.queue.reject("a", "b", "c")
        time.move(-back)
        again: list[list[str]] = []

        def dies_again(_looked: int, _done: int) -> None:
            again.append(ids(waiting_jobs(q)))
            q.queue.reject(*again[-1])

        assert requeue_dead(client, keys, progress=dies_again) == 3
        assert again == [["a", "b", "c"]]
        assert q.queue.move_all(target.queue.name, dead=True, limit=1) == 1
        assert purge_dead(client, keys) == 2


def waiting_jobs(q: QueueFixture) -> list[Delivery]:
    run = partial(execute, q.queue.redis)
    return [job for page in read_pages(waiting(q.queue.keys), run) for job in page.jobs]
