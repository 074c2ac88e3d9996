"""Signed jobs that two people change at a time: another priority, and now instead of later."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.signing import Signer
from rqueue.protocol.commands import ScriptCall
from rqueue.settings import Settings
from rqueue.tasks.options import Options

T = TypeVar("T")
HOUR = 3_600_000


class Disturbed(Queue):
    """A queue where another client does what stands in `first`, one after the other, just before
    this one writes what it has signed."""

    first: list[Callable[[], object]]
    calls: list[str]

    def _run(self, call: ScriptCall[T]) -> T:
        self.calls.append(call.script)
        if call.script in ("resign", "reorder") and self.first:
            self.first.pop(0)()
        return super()._run(call)


@pytest.fixture
def settings(server: EmbeddedRedis) -> Settings:
    return Settings(url=server.url, signing_keys={"k1": "a secret of some length"})


@pytest.fixture
def other(queue_name: str, settings: Settings) -> Iterator[Queue]:
    with Queue(queue_name, settings=settings) as queue:
        queue.send("t", [1], None, Options(id="a", delay_ms=HOUR))
        yield queue


@pytest.fixture
def queue(queue_name: str, settings: Settings) -> Iterator[Disturbed]:
    with Disturbed(queue_name, settings=settings) as queue:
        queue.first, queue.calls = [], []
        yield queue


def runs(queue: Queue, level: int) -> bool:
    """Whether a worker gets the job now, and its signature lets it run at once."""
    with queue.consumer(renew=False) as c:
        (job,) = c.pull()
    signer = Signer(queue.settings.signing_keys, queue.settings.namespace)
    verified = signer.verify(queue.name, job.id, job.body, job.header)
    return job.level == level and verified.not_before_ms(job.header.enqueued_ms) == 0


@pytest.mark.parametrize("all_", [False, True])
def test_a_job_of_another_priority_meanwhile_is_made_ready_so_that_it_runs(
    queue: Disturbed, other: Queue, all_: bool
) -> None:
    """Signed for its due time it would go back to the schedule."""
    queue.first = [lambda: other.set_priority("a", 9)]
    assert (queue.promote_all() if all_ else queue.promote("a")) == 1
    assert runs(queue, 9)


def test_a_job_made_ready_meanwhile_gets_its_priority_all_the_same(
    queue: Disturbed, other: Queue
) -> None:
    queue.first = [lambda: other.promote("a")]
    assert queue.set_priority("a", 9) == 1
    assert runs(queue, 9)


def test_a_job_that_changes_all_the_time_stays(queue: Disturbed, other: Queue) -> None:
    queue.first = [lambda n=n: other.set_priority("a", n) for n in (1, 2, 3)]  # type: ignore[misc]
    assert queue.promote("a").stayed == {"a": "it changes all the time"}
    queue.first = [lambda n=n: other.set_priority("a", n) for n in (1, 2, 3)]  # type: ignore[misc]
    assert queue.set_priority("a", 9).stayed == {"a": "it changes all the time"}
    assert queue.counts().scheduled == 1
    assert queue.promote("a") == 1
    assert runs(queue, 3)


def test_a_job_that_is_made_ready_is_looked_at_once(queue: Disturbed, other: Queue) -> None:
    assert queue.promote("a") == 1
    assert queue.calls == ["show", "resign", "promote"]
    assert runs(queue, 4)
