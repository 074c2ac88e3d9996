"""A worker's loop under everything that can happen to it at once.

`RQUEUE_TEST_PROFILE=thorough` runs many more and longer ones.
"""

import os
import re
from itertools import zip_longest
from typing import ClassVar

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from rqueue_workers.exit_codes import Exit
from rqueue_workers.status_page import DRAIN
from rqueue_workers.worker.under_way import ANSWER_S, HURRIED_S
from tests.property.sources import sound
from tests.support import profiles
from tests.support.profiles import examples
from tests.support.snapshot import take_snapshot
from tests.workers.loop.beside_long import share_of_standstill
from tests.workers.loop.machine import Machine
from tests.workers.loop.two_queues import (
    AT_ONCE_S,
    When,
    acks_early,
    joins,
    leave_two_that_hang,
    lose_one_of_two,
    recalls,
    recalls_where_all_are_lost,
    registers,
    reports,
    settle_behind_a_report,
    settles,
    stall_beside_one_that_hangs,
)
from tests.workers.loop.world import CAUSE, LEASE_MS

QUICK = settings(
    max_examples=examples(6, 60),
    stateful_step_count=30,
    report_multiple_bugs=False,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
THOROUGH = settings(
    QUICK,
    max_examples=int(os.environ.get("RQUEUE_TEST_EXAMPLES", "3000")),
    stateful_step_count=60,
    phases=[Phase.generate, Phase.shrink],
)
PROFILE = THOROUGH if profiles.THOROUGH else QUICK


@pytest.fixture
def machine(client: redis.Redis, server: EmbeddedRedis) -> type[Machine]:
    parts = {"client": client, "url": server.url, "scripts": sound()}
    return type("Machine", (Machine,), parts)


@pytest.mark.timeout(3600 if PROFILE is THOROUGH else 240)
def test_a_worker_does_what_it_must(machine: type[Machine]) -> None:
    run_state_machine_as_test(machine, settings=PROFILE)


def test_the_same_choices_give_the_same_course_of_events(machine: type[Machine]) -> None:
    """Else a fault that was found once would not be found again."""

    class Logged(machine):  # type: ignore[misc, valid-type]
        courses: ClassVar[list[list[str]]]

        def teardown(self) -> None:
            super().teardown()
            tag = self.world.queues[0].name.removeprefix("loop0-")
            # names made by chance, and what was packed with them in it
            own = rf"{tag}|\b[0-9a-f]{{16}}\b|pid=\d+|process \d+|b['\"]\\x01x.*"
            self.courses.append([re.sub(own, "*", said) for said in self.world.log])

    for name in machine.scripts.names():  # the first run is not to be the one that sends them
        machine.client.script_load(machine.scripts.script(name).source)
    enough = examples(2, 8)
    again = settings(PROFILE, max_examples=enough, derandomize=True, phases=[Phase.generate])
    first, second = [], []
    for Logged.courses in (first, second):
        run_state_machine_as_test(Logged, settings=again)
    assert len(first) == len(second) >= enough
    for one, other in zip(first, second, strict=True):
        apart = [(a, b) for a, b in zip_longest(one, other) if a != b]
        assert not apart, apart[:3]


def test_what_comes_while_it_leaves_is_not_begun(machine: type[Machine]) -> None:
    """Delivered after its last look and before its good-bye, and heard of while it waits for the
    end of a job: another thread stands ready to begin."""
    played = machine()
    try:
        played.begin(queues=1, spec={"threads": 2}, rare=False)
        played.enqueue(pick=0, many=[("sync", None, [], 0)], alone=True)
        (worker,) = played.living
        calls = worker.connections[-2]
        calls.before = lambda: played.enqueue(pick=0, many=[("sync", 0.0, [], 0)], alone=False)
        worker.ask(DRAIN)
        played.world.stage.pauses.extend([True] * 200)
        played.world.stage.choices.extend([1] * 200)
        played.let_pass(1)
        played.holds()
        runs, late = played.world.jobs
        log = played.world.log
        assert runs.runs and not late.begins
        assert any(" reads " in said and "wake:" in said and late.id in said for said in log)
        played.tell(runs)
        played.let_pass(1)
        played.holds()
        assert worker.code == Exit.OK and not late.begins
    finally:
        played.teardown()


def test_a_registration_whose_reply_was_lost_is_the_only_one(machine: type[Machine]) -> None:
    """It joins again after its lease had ended, and says so twice."""
    played = machine()
    try:
        played.begin(queues=1, spec={}, rare=False)
        played.enqueue(pick=0, many=[("sync", None, [], 0)], alone=True)
        (worker,) = played.living
        worker.connections[-2].lose_of = "register"
        played.lose_lease(pick=0)
        played.finish_all(choices=[])
        played.let_pass(2)
        played.holds()
        assert not worker.connections[-2].lose_of and worker.page.rejoins(0) == 1
        consumers = take_snapshot(played.client, played.world.queues[0].keys).consumers
        assert list(consumers) == [worker.consumer(0)]
    finally:
        played.teardown()


@pytest.mark.parametrize("crashed", [1, 2, 7])
def test_crashed_jobs_stop_their_process_for_at_most_half_of_the_time(
    machine: type[Machine], crashed: int
) -> None:
    """Beside a long job, however many they are."""
    played = machine()
    try:
        assert share_of_standstill(played, crashed) <= 0.5
    finally:
        played.teardown()


def test_what_waits_here_does_not_begin_where_redis_is_lost_while_the_queues_are_left(
    machine: type[Machine],
) -> None:
    """The registrations were lost, the one queue is left, and then Redis cannot be reached: others
    have those jobs."""
    played = machine()
    try:
        spec = {"threads": 1, "async_slots": 0, "prefetch": 5}
        played.begin(queues=2, spec=spec, rare=False)
        played.enqueue(pick=0, many=[("sync", None, [], 0)], alone=True)
        (worker,) = played.living
        calls = worker.connections[-2]

        def lose_all() -> None:
            played.take_back(worker, {})
            calls.before = leave_one

        def leave_one() -> None:
            calls.before = fail

        def fail() -> None:
            calls.cut = True

        calls.before = lose_all
        played.enqueue(pick=0, many=[("sync", 0.0, [], 0)], alone=True)
        runs, waits = played.world.jobs
        assert calls.before is None and not calls.cut and runs.runs
        played.tell(runs)
        played.world.settle()
        assert not runs.runs and not waits.begins
        runs.lasts = 0.0  # it runs again: its end was not reported
        played.let_pass(2)
        played.holds()
        assert len(waits.begins) == 1 and waits.ends == ["none"]
    finally:
        played.teardown()


def test_a_queue_that_was_not_left_after_all_is_listened_to(machine: type[Machine]) -> None:
    """One registration was lost, and Redis could not be reached when the other one was to end."""
    played = machine()
    try:
        played.begin(queues=2, spec={"threads": 1, "async_slots": 0}, rare=False)
        (worker,) = played.living
        calls = worker.connections[-2]
        first = played.world.queues[0]

        def lose_one() -> None:
            execute(played.client, commands.reclaim(first.keys, worker.consumer(0), CAUSE, []))
            calls.before = leave_one

        def leave_one() -> None:
            calls.before = fail

        def fail() -> None:
            calls.cut = True

        calls.before = lose_one
        played.excuse(worker)
        played.enqueue(pick=0, many=[("sync", 0.0, [], 0)], alone=True)
        assert calls.before is None and not calls.cut
        played.let_pass(2)
        for pick in (0, 1):
            played.enqueue(pick=pick, many=[("sync", 0.0, [], 0)], alone=True)
            played.let_pass(0.1)
        played.holds()
        assert [job.ends for job in played.world.jobs] == [["none"]] * 3
    finally:
        played.teardown()


@pytest.mark.parametrize("apart", [False, True])
def test_a_wake_list_that_is_repaired_before_it_is_looked_at_ends_no_worker(
    machine: type[Machine], apart: bool
) -> None:
    """Its listening is refused, and the keys are of their types again when it asks which is not."""
    played = machine()
    try:
        played.begin(queues=2, spec={"async_slots": 0}, rare=False, apart=apart)
        played.holds()
        (worker,) = played.living
        wake = played.world.queues[0].keys.wake(worker.consumer(0))
        *_, calls, listening = worker.connections[: 2 if apart else None]

        def damage() -> None:
            played.client.set(wake, "another application's")
            calls.before = lambda: played.client.delete(wake)

        listening.before = damage
        for pick in (0, 1):
            played.enqueue(pick=pick, many=[("sync", 0.0, [], 0)], alone=True)
        played.let_pass(1)
        assert listening.before is None and calls.before is None
        played.enqueue(pick=0, many=[("sync", 0.0, [], 0)], alone=True)
        played.let_pass(1)
        played.holds()
        assert [job.ends for job in played.world.jobs] == [["none"]] * 3
    finally:
        played.teardown()


@pytest.mark.parametrize("apart", [False, True])
def test_a_registration_lost_in_one_queue_is_no_loss_of_another(
    machine: type[Machine], apart: bool
) -> None:
    played = machine()
    try:
        lose_one_of_two(played, apart)
    finally:
        played.teardown()


def test_registrations_that_are_lost_together_are_asked_for_once_each(
    machine: type[Machine],
) -> None:
    played = machine()
    try:
        asked = recalls_where_all_are_lost(played, 12)
    finally:
        played.teardown()
    assert asked <= 12 + 2


def test_a_call_to_a_redis_that_was_replaced_is_not_waited_for(machine: type[Machine]) -> None:
    """The supervisor has found the one that answers now, while a call to the other is under way."""
    played = machine()
    try:
        played.begin(queues=2, spec={"async_slots": 0}, rare=False, apart=True)
        played.enqueue(pick=0, many=[("sync", None, [], 0)], alone=False)
        played.holds()
        (worker,) = played.living
        (job,) = played.world.jobs
        played.world.hang(played.world.queues[0].name)
        played.tell(job)
        played.world.advance(ANSWER_S / 4)
        dispatcher = worker.child.dispatcher
        assert dispatcher.subscriptions[0].engaged and not dispatcher.away
        worker.doubt(0)
        played.world.advance(HURRIED_S + 0.01)
        assert dispatcher.away == [dispatcher.routes[0]]
        played.go_on()
        played.let_pass(1)
        played.holds()
        assert job.ends == ["none"] and not dispatcher.away and not played.unended()
    finally:
        played.teardown()


def test_who_leaves_while_it_joins_a_redis_that_hangs_waits_for_it_and_no_longer(
    machine: type[Machine],
) -> None:
    """Twice: for what is under way, and for its good-bye."""
    played = machine()
    try:
        played.begin(queues=2, spec={"async_slots": 0}, rare=False, apart=True)
        played.holds()
        registers(played, 1)
        (worker,) = played.living
        (joining, _) = worker.child.dispatcher.subscriptions
        assert joining.engaged and not joining.term
        worker.ask(DRAIN)
        played.world.advance(2 * ANSWER_S + 0.1)
        assert worker.ended
    finally:
        played.teardown()


def test_who_leaves_two_queues_that_hang_waits_once_and_releases_the_rest_first(
    machine: type[Machine],
) -> None:
    played = machine()
    try:
        assert leave_two_that_hang(played) <= ANSWER_S + 0.2
    finally:
        played.teardown()


def test_what_a_job_reports_arrives_before_its_end(machine: type[Machine]) -> None:
    played = machine()
    try:
        settle_behind_a_report(played)
    finally:
        played.teardown()


def test_who_hears_nothing_of_a_queue_any_more_is_told(machine: type[Machine]) -> None:
    """It waits for jobs in both of two queues; one of them does not know it."""
    played = machine()
    try:
        played.begin(queues=2, spec={}, rare=False, apart=True)
        played.holds()
        (worker,) = played.living
        played.take_back(worker, {}, [1])
        played.enqueue(pick=1, many=[("sync", 0.0, [], 0)], alone=False)
        played.let_pass(0.1)
        (job,) = played.world.jobs
        assert not job.begins
        played.let_pass(LEASE_MS / 1000)
        played.holds()
        assert job.ends == ["none"]
        assert (worker.page.rejoins(0), worker.page.rejoins(1)) == (0, 1)
    finally:
        played.teardown()


SPECS = ({"async_slots": 0}, {"threads": 2}, {"threads": 0})
CALLS = (settles, reports, recalls, registers, joins, acks_early)
HANGING = [
    pytest.param(when, spec, marks=[] if (number + place) % len(SPECS) == 0 else [pytest.mark.long])
    for number, when in enumerate(CALLS)
    for place, spec in enumerate(SPECS)
]
"""Each call with each kind of worker; by turns with one of them unless tests of minutes run."""


@pytest.mark.parametrize(("when", "spec"), HANGING)
def test_a_queue_whose_redis_hangs_delays_no_other(
    machine: type[Machine], spec: dict[str, int], when: When
) -> None:
    played = machine()
    try:
        stall = stall_beside_one_that_hangs(played, spec, when)
    finally:
        played.teardown()
    assert stall <= AT_ONCE_S
