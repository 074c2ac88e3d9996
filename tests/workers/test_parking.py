"""Jobs whose task a worker does not know wait aside, until one is there that does."""

import pytest

from rqueue_workers.status_page import DRAIN
from rqueue_workers.worker import attempt
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually
from tests.workers.test_outcomes import rows_of

OLD = ("tests.workers.child_app_old",)
"""Knows no c.echo."""


def test_an_unknown_task_waits_for_a_worker_that_knows_it(
    workers: WorkerFixture,
) -> None:
    old = workers.child(app=OLD)
    job = workers.send("c.echo", 5)
    behind = workers.send("old.only")
    assert behind.result(PATIENCE) == "old"  # the jobs behind it pass
    eventually(lambda: workers.counts().parked == 1, "a parked job")
    assert workers.counts().dead == 0
    assert "c.echo" in old.log
    workers.child()  # the deploy: it takes at once what was waiting for it
    assert job.result(PATIENCE) == 5
    (parked, done) = rows_of(workers, job.id)
    assert (parked["outcome"], parked["error"], done["outcome"]) == ("park", "UnknownTask", "ack")
    assert done["attempts"] == 0


def test_what_a_worker_has_parked_goes_to_those_that_stay_when_it_is_asked_to_leave(
    workers: WorkerFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt, "PARK_FIRST_S", attempt.PARK_MOST_S)  # no time brings it back
    key = f"{workers.name}:k"
    knows = workers.child(prefetch=1)
    workers.send("c.gate", key)
    workers.hear(key)
    old = workers.child(app=OLD)
    job = workers.send("c.echo", 5)
    eventually(lambda: workers.counts().parked == 1, "a parked job")
    old.page.ask(DRAIN)
    assert old.leave() == 0
    assert (workers.counts().parked, workers.counts().ready) == (0, 1)
    workers.go(key)
    assert job.result(PATIENCE) == 5
    assert knows.leave() == 0


@pytest.mark.parametrize("asked", [True, False], ids=["the-last-one", "to-be-replaced"])
def test_what_is_parked_stays_where_that_worker_is_the_last_one_or_only_replaced(
    workers: WorkerFixture, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    monkeypatch.setattr(attempt, "PARK_FIRST_S", attempt.PARK_MOST_S)
    old = workers.child(app=OLD)
    workers.send("c.echo", 5)
    eventually(lambda: workers.counts().parked == 1, "a parked job")
    if asked:
        old.page.ask(DRAIN)
    else:
        workers.child(app=OLD)
    assert old.leave() == 0
    assert workers.counts().parked == 1
