"""Tasks that ask for the tick of their job."""

from datetime import UTC, datetime

import pytest

from rqueue.model.job import Delivery
from rqueue.model.tick import Tick
from rqueue.tasks.context import JobContext, current
from rqueue.tasks.depends import tick_parameter
from rqueue.tasks.ticks import with_tick

AT = datetime(2026, 11, 22, 3, tzinfo=UTC)
TICK = Delivery(f"s@{round(AT.timestamp() * 1000)}", b"1,2,4,0,0,0,5|t2;[]")
OTHER = Delivery("j", b"1,2;[]")


def plain(x: int) -> int:
    return x


def by_name(x: int, *, when: Tick | None = None) -> tuple[int, Tick | None]:
    return x, when


def by_text(x: int, when: "Tick | None" = None) -> tuple[int, "Tick | None"]:
    return x, when


def test_a_task_gets_the_tick_of_its_job() -> None:
    """A-41."""
    assert with_tick(plain) is plain
    assert (tick_parameter(by_name), tick_parameter(by_text)) == ("when", "when")
    for function in (by_name, by_text):
        for job, tick in ((TICK, Tick("s", AT, 2)), (OTHER, None)):
            token = current.set(JobContext(job, "t", "q"))
            try:
                assert with_tick(function)(7) == (7, tick)
            finally:
                current.reset(token)
        assert with_tick(function)(7) == (7, None)


@pytest.mark.parametrize(("job", "tick"), [(TICK, Tick("s", AT, 2)), (OTHER, None)])
def test_the_context_knows_it_too(job: Delivery, tick: Tick | None) -> None:
    assert JobContext(job, "t", "q").tick == tick
