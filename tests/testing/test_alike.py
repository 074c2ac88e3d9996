"""The same jobs have the same ends in a real pool and in the test kit: programs at random."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import rqueue as rq
from rqueue import JobHandle, chain, chord, group
from rqueue.embedded import EmbeddedRedis
from rqueue.errors import JobFailed, ResultError
from rqueue.tasks.registry import registry
from rqueue.testing import in_memory
from tests.support.patience import PATIENCE
from tests.support.profiles import examples
from tests.testing import alike_app as app
from tests.workers.pools import Pool, make_pool  # noqa: F401

QUEUES = [f"alike-{name}" for name in ("plain", "groups", "unique", "rate", "limit", "flows")]
WORDS = (
    *("return", "raise", "retry", "reject", "snooze", "give up", "type error", "bytes"),
    *("bad step", "step"),
)
BAD: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("plain", [], {}),
    ("plain", [["return"], 2], {}),
    ("waits", [["return"]], {"other": 1}),
    ("typed", [["return"], "2030-01-31", 5], {}),
    ("typed", [["return"], "tomorrow"], {}),
    ("typed", [["return"], "2030-01-31"], {"days": ["2030-13-31"]}),
]


def enqueue_all(random: Random) -> list[JobHandle[Any]]:
    """A program's jobs; the same ones for the same seed."""

    def plan() -> list[str]:
        return [random.choice(WORDS) for _ in range(random.randint(1, 3))] + ["return"]

    handles: list[Any] = []
    for _ in range(6):
        handles.append(random.choice([app.plain, app.waits]).enqueue(plan()))
        handles.append(app.plain.enqueue_in(random.choice([0.1, 0.2]), plan()))
        priority = app.waits.options(priority=random.randint(0, 9), max_deliveries=2)
        handles.append(priority.enqueue(plan()))
        handles.append(app.grouped.options(group=random.choice("ab")).enqueue(plan()))
        handles.append(app.unique.enqueue(["return"], random.randint(0, 3)))
        handles.append(app.rated.enqueue(plan()))
        handles.append(app.limited.enqueue(plan()))
    for task, args, kwargs in BAD:
        handles.append(rq.queue(QUEUES[0]).send(task, args, kwargs))
    handles.append(app.early.enqueue(["return"]))
    handles.append(app.early.enqueue(["raise"]))
    goes_on = random.choice(["stop", "continue"])
    flows = [
        chain(app.first.s(plan()), app.then.s(plan()), app.then.s(["return"])),
        chord([app.first.s(plan()) for _ in range(3)], app.then.s(plan()), on_failure=goes_on),  # type: ignore[arg-type]
        group(app.first.s(plan()) for _ in range(2)),
    ]
    for flow in flows:
        its: Any = flow.enqueue()
        handles += its.jobs if hasattr(its, "jobs") else [its]
    return handles


def end_of(handle: Any, timeout: float) -> Any:
    """How a job ended, as its caller sees it."""
    try:
        return "done", handle.result(timeout=timeout)
    except ResultError as error:
        if not isinstance(error, JobFailed):
            return type(error).__name__  # which of several parents failed first is a race
        said = str(error).partition("\n")[0].replace(handle.id, "ID")
        return type(error).__name__, error.type, error.attempts, said


@pytest.mark.parametrize("seed", range(examples(2, 20, brief=1)))
def test_a_pool_and_the_test_kit_end_jobs_alike(
    seed: int,
    private_server: EmbeddedRedis,
    make_pool: Callable[..., Pool],  # noqa: F811
    no_defaults: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for one in (app.plain, app.waits, app.typed, app.early, app.grouped, app.unique, app.rated,
                app.limited, app.first, app.then):  # fmt: skip
        monkeypatch.setitem(registry._tasks, one.name, one)
    with in_memory() as kit:
        handles = enqueue_all(Random(seed))
        kit.drain(raises=False)
        kit.travel("1m", raises=False)
        in_kit = [end_of(handle, 0) for handle in handles]
    rq.configure(url=private_server.url)
    handles = enqueue_all(Random(seed))
    make_pool(private_server.url, app=["tests.testing.alike_app"], queues=QUEUES, threads=2)
    in_pool = [end_of(handle, PATIENCE) for handle in handles]
    apart = [pair for pair in zip(in_pool, in_kit, strict=True) if pair[0] != pair[1]]
    assert apart == []
