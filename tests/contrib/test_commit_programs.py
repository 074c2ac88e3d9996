"""Random programs of nested transactions: the jobs that are there in the end are those of what was
committed, in the order of their enqueues; and a planted fault is found."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry

LOOK = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Block:
    """`atomic()` around steps. savepoint: one of its own, where it is not the outermost."""

    steps: tuple[Any, ...]
    fails: bool
    savepoint: bool


ENQUEUE, AT_ONCE = "enqueue", "at once"
STEPS = st.recursive(
    st.sampled_from([ENQUEUE, ENQUEUE, AT_ONCE]),
    lambda steps: st.builds(
        Block, st.lists(steps, max_size=4).map(tuple), st.booleans(), st.booleans()
    ),
    max_leaves=12,
)
PROGRAMS = st.lists(STEPS, max_size=5)


class Fails(Exception):
    pass


def run(django: Any, record: Any, program: Sequence[Any]) -> tuple[list[int], list[int]]:
    """Run a program; the jobs that are there in the end, and those that ought to be."""
    sent: list[int] = []
    number = iter(range(1000))

    def steps(some: Sequence[Any], kept: list[int], outer: bool) -> bool:
        """False where a block without a savepoint failed: what is around it is rolled back too."""
        good = True
        for step in some:
            if isinstance(step, Block):
                inner: list[int] = []
                savepoint = step.savepoint or outer
                fine = not step.fails
                try:
                    with django.transaction.atomic(savepoint=savepoint):
                        fine = steps(step.steps, inner, False) and fine
                        if step.fails:
                            raise Fails
                except Fails:
                    pass
                if fine:
                    kept += inner
                elif not savepoint:
                    good = False
                if outer:
                    sent.extend(kept)
                    kept.clear()
            else:
                value = next(number)
                eager = step == AT_ONCE
                record.options(on_commit=not eager).enqueue(value)
                (sent if eager or outer else kept).append(value)
        return good

    steps(program, [], True)
    jobs = record.consumer.pull()
    record.consumer.settle(ack=jobs)
    return [django.queue.envelope(job).args[0] for job in jobs], sent


@pytest.fixture
def record(django: Any) -> Iterator[Any]:
    def record(number: int) -> None: ...

    made: Any = task(queue=django.queue.name, registry=Registry())(record)
    with django.queue.consumer(jobs=1000, renew=False) as made.consumer:
        yield made


def test_what_was_committed_is_there_in_order(django: Any, record: Any) -> None:
    @LOOK
    @given(PROGRAMS)
    def look(program: list[Any]) -> None:
        stored, sent = run(django, record, program)
        assert stored == sent

    look()


class AnyScope(tuple[Any, ...]):
    """Savepoints that are those of every other place."""

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0


def test_jobs_that_outlive_their_savepoint_are_found(
    django: Any, record: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: enqueues are put together without a look at the savepoint."""
    from rqueue.contrib.django import commits

    made = commits.CommitSends.__init__

    def planted(self: Any, savepoints: Any) -> None:
        made(self, AnyScope(savepoints))

    monkeypatch.setattr(commits.CommitSends, "__init__", planted)

    rolled_back = Block((ENQUEUE,), fails=True, savepoint=True)
    stored, sent = run(django, record, [Block((ENQUEUE, rolled_back), fails=False, savepoint=True)])
    assert (stored, sent) == ([0, 1], [0])
