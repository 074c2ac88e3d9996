"""Tests of the test: each of these faults, planted in the worker's code, is found by the search."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, run_state_machine_as_test

from rqueue.embedded.server import EmbeddedRedis
from rqueue_workers.worker import hearing
from rqueue_workers.worker.demand import LINGER_S
from rqueue_workers.worker.dispatcher import Dispatcher
from rqueue_workers.worker.executors import main_thread
from rqueue_workers.worker.executors.base import Executor
from rqueue_workers.worker.isolation import FIRST_S, Isolation
from rqueue_workers.worker.subscription import Subscription
from tests.property.sources import sound
from tests.workers.loop.beside_long import share_of_standstill
from tests.workers.loop.machine import Machine, specs

SEARCH = settings(
    max_examples=400,
    stateful_step_count=30,
    derandomize=True,  # each run searches the same way
    database=None,
    phases=[Phase.generate],
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)

Patch = pytest.MonkeyPatch
FAULTS: dict[str, Callable[[Patch], None]] = {}


def fault(plant: Callable[[Patch], None]) -> Callable[[Patch], None]:
    """A fault that is named after the function that plants it."""
    FAULTS[plant.__name__] = plant
    return plant


@fault
def a_job_to_be_passed_on_lingers_like_one_that_ended(patch: Patch) -> None:
    def lingers(self: Dispatcher, subscription: Subscription, now: float) -> bool:
        if (
            not self.executors
            or subscription.others
            or subscription.back
            or subscription.dones
            or self.closing
        ):
            return False
        if not any(executor.todo for executor in self.executors.values()):
            return False
        return bool(now < subscription.acks[0][6] + LINGER_S)

    patch.setattr(Dispatcher, "_lingers", lingers)


@fault
def a_recall_brings_what_is_here_already(patch: Patch) -> None:
    recalling = Subscription.recalling

    def forgetful(self: Subscription, window: int) -> Any:
        jobs = yield from recalling(self, window)
        self.add(jobs, 0)
        return jobs

    patch.setattr(Subscription, "recalling", forgetful)


@fault
def the_loop_never_rests(patch: Patch) -> None:
    patch.setattr(Dispatcher, "rest", lambda self, now: 0.0)


@fault
def a_crashed_job_runs_beside_others(patch: Patch) -> None:
    patch.setattr(hearing, "has_crashed", lambda value: False)


@fault
def what_runs_still_is_not_waited_for(patch: Patch) -> None:
    patch.setattr(Executor, "idle", True)


OF_CRASHED_JOBS = ("a_crashed_job_runs_beside_others", "what_runs_still_is_not_waited_for")


class AfterACrash(Machine):
    """Begins with a job that has cost a worker its process: from nothing, the search needs hundreds
    of tries to come to where such jobs matter."""

    @initialize(queues=st.integers(1, 2), spec=specs, rare=st.booleans(), apart=st.booleans())
    def begin(self, queues: int, spec: dict[str, Any], rare: bool, apart: bool = False) -> None:
        super().begin(queues, spec, rare, apart)
        self.enqueue(pick=0, many=[("sync", None, [], 0)], alone=False)
        self.world.settle()
        self._kill(self.living[0])
        self._hire(spec, rare)


SPEC = {"threads": 0, "async_slots": 0}
TWO = {"threads": 1, "async_slots": 1, "prefetch": 5}
THREE = [("sync", None, [], 0), ("loop", None, [], 0), ("rare", None, [], 0)]

COURSES: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "a_job_to_be_passed_on_lingers_like_one_that_ended": (
        ("begin", {"queues": 2, "spec": SPEC, "rare": False}),
        ("hire", {"spec": {"threads": 2, "async_slots": 1}, "rare": False}),
        (
            "enqueue",
            {"pick": 1, "many": [("rare", 0.0, [], 500), ("loop", None, [], 500)], "alone": True},
        ),
    ),
    "a_recall_brings_what_is_here_already": (
        ("begin", {"queues": 2, "spec": SPEC, "rare": False}),
        ("lose_lease", {"pick": 0}),
        ("outage", {"seconds": 40.0}),
        ("pause_or_resume", {"pick": 1}),
        ("pass_time", {"seconds": 0.003, "choices": []}),
        (
            "enqueue",
            {
                "pick": 1,
                "many": [
                    *[("loop", 0.0, [], 0), ("loop", None, [], 0), ("sync", 0.03, [], 0)],
                    *[("sync", 0.0, ["exit"], 0), ("sync", None, [], 0), ("loop", 0.002, [], 0)],
                ],
                "alone": False,
            },
        ),
    ),
    "a_crashed_job_runs_beside_others": (
        ("begin", {"queues": 2, "spec": TWO, "rare": False, "apart": True}),
        ("enqueue", {"pick": 1, "many": THREE, "alone": False}),
    ),
    "what_runs_still_is_not_waited_for": (
        ("begin", {"queues": 2, "spec": TWO, "rare": False, "apart": True}),
        ("enqueue", {"pick": 1, "many": THREE, "alone": False}),
    ),
}
"""What the search found, cut down: it takes a minute to come to each."""


def machine_of(fault: str, client: redis.Redis, server: EmbeddedRedis) -> type[Machine]:
    kind = AfterACrash if fault in OF_CRASHED_JOBS else Machine
    parts = {"client": client, "url": server.url, "scripts": sound()}
    return type("Machine", (kind,), parts)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.long if name in COURSES else ()) for name in FAULTS],
)
def test_the_search_finds(
    name: str,
    client: redis.Redis,
    server: EmbeddedRedis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    FAULTS[name](monkeypatch)
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(machine_of(name, client, server), settings=SEARCH)


@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize("name", COURSES)
def test_what_the_search_found_shows_it(
    name: str,
    planted: bool,
    client: redis.Redis,
    server: EmbeddedRedis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if planted:
        FAULTS[name](monkeypatch)
    played = machine_of(name, client, server)()
    found = pytest.raises((AssertionError, ExceptionGroup)) if planted else nullcontext()
    with found:
        try:
            for step, arguments in COURSES[name]:
                getattr(played, step)(**arguments)
                played.holds()
        finally:
            played.teardown()


def test_the_check_of_order_finds_that_the_last_is_begun_first(
    client: redis.Redis, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    deal = Dispatcher.deal

    def dealt(self: Dispatcher, subscription: Subscription, jobs: Any, acquired: int) -> None:
        deal(self, subscription, [*jobs[-2:], *jobs[:-2]], acquired)

    monkeypatch.setattr(Dispatcher, "deal", dealt)
    parts = {"client": client, "url": server.url, "scripts": sound()}
    played = type("Machine", (Machine,), parts)()
    try:
        played.begin(queues=1, spec={}, rare=False)
        played.holds()
        played.enqueue(pick=0, many=[("sync", 0.0, [], 0)] * 3, alone=False)
        with pytest.raises(AssertionError, match="j2 begins before j0"):
            played.holds()
    finally:
        played.sound = False
        played.teardown()


@pytest.mark.parametrize("planted", [False, True])
def test_outcomes_whose_call_is_lost_are_settled_by_the_next(
    planted: bool,
    client: redis.Redis,
    server: EmbeddedRedis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Played: the search finds by luck only that they are forgotten."""
    if planted:
        monkeypatch.setattr(Subscription, "restore", lambda self, flight: None)
    parts = {"client": client, "url": server.url, "scripts": sound()}
    played = type("Machine", (Machine,), parts)()
    found = pytest.raises((AssertionError, ExceptionGroup)) if planted else nullcontext()
    with found:
        try:
            played.begin(queues=1, spec={"async_slots": 0}, rare=False)
            played.enqueue(pick=0, many=[("sync", None, [], 0)], alone=False)
            played.holds()
            played.connection(pick=0, fault="cut call")
            played.finish_all(choices=[])
            played.let_pass(3)
            played.holds()
        finally:
            played.teardown()


@pytest.mark.parametrize("planted", [False, True])
def test_nothing_begins_while_redis_is_gone_before_a_crashed_job_is_settled(
    planted: bool,
    client: redis.Redis,
    server: EmbeddedRedis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Jobs that the main thread has may run during an outage, but not behind such a job."""
    if planted:
        monkeypatch.setattr(main_thread, "has_crashed", lambda value: False)
    parts = {"client": client, "url": server.url, "scripts": sound()}
    played = type("Machine", (Machine,), parts)()
    try:
        played.begin(queues=1, spec={"async_slots": 0}, rare=False)
        played.enqueue(pick=0, many=[("sync", None, [], 0), ("sync", 0.0, [], 0)], alone=False)
        played.holds()
        played.kill(pick=0)
        played.hire(spec={"async_slots": 0}, rare=False)
        played.holds()
        crashed, behind = played.world.jobs
        assert len(crashed.begins) == 2
        played.world.fall()
        played.tell(crashed)
        played.world.settle()
        assert not crashed.runs
        assert len(behind.begins) == planted
        assert len(played.world.not_alone) == planted
        played.world.rise()
        played.let_pass(1)
        assert behind.ends == ["none"]
    finally:
        played.sound = False
        played.teardown()


def test_the_check_of_standstill_finds_that_crashed_jobs_are_waited_for_by_turns(
    client: redis.Redis, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_away = Isolation._turn_away

    def restless(self: Isolation, *arguments: Any) -> None:
        turn_away(self, *arguments)
        self._rest_until, self._patience = 0.0, FIRST_S

    monkeypatch.setattr(Isolation, "_turn_away", restless)
    parts = {"client": client, "url": server.url, "scripts": sound()}
    played = type("Machine", (Machine,), parts)()
    try:
        assert share_of_standstill(played, 2) > 0.5
    finally:
        played.sound = False
        played.teardown()
