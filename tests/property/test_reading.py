"""Direct delivery and pull interleaved, read in any order, with losses; and faults that must be
found."""

from dataclasses import dataclass
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from rqueue.model.job import Delivery
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.wake import Wake
from rqueue_workers.worker.hearing import Hearing
from rqueue_workers.worker.settle_calls import CHUNK
from tests.property.reading import LoneReading, Reading, WorkerReading
from tests.property.sources import sound
from tests.support.profiles import examples

SEARCH = settings(
    max_examples=250,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
PLANTED = settings(SEARCH, phases=[Phase.generate])

WRONG = r"begins behind|of \d+ jobs"

BOTH = pytest.mark.parametrize("kind", [LoneReading, WorkerReading])


def machine(kind: type[Reading], client: redis.Redis, lua: Any) -> Any:
    return type(kind.__name__, (kind,), {"client": client, "lua": lua})


@BOTH
def test_what_comes_is_begun_in_order(kind: type[Reading], client: redis.Redis) -> None:
    how = settings(SEARCH, max_examples=examples(25, SEARCH.max_examples))
    run_state_machine_as_test(machine(kind, client, sound()), settings=how)


@BOTH
def test_a_reply_that_does_not_say_behind_what_it_comes_is_found(
    kind: type[Reading], client: redis.Redis
) -> None:
    right = "if held > 0 then behind = redis.call('LINDEX', held_key, '-1') end"
    lua = sound().changed(
        ("include/pull/pull.lua", right, ""),
        ("pull.lua", "redis.call('LINDEX', held, -1) or ''", "''"),
    )
    with pytest.raises(AssertionError, match=WRONG):
        run_state_machine_as_test(machine(kind, client, lua), settings=PLANTED)


@dataclass(frozen=True)
class Fault:
    name: str
    kind: type[Reading]
    owner: type
    method: str
    wrong: Any
    course: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Where only a rare one shows it; without the fault it is played too."""


ONE, TWO = ("enqueue", {"count": 1}), ("enqueue", {"count": 2})
ARRIVE, POST, STEP = ("arrive", {}), ("post", {}), ("step", {})
HEAR = ("hear", {"timeout": 0})
RUN = ("run_some", {"count": 4})
LATE = ("lose", {"loss": "reply"})


FAULTS = [
    Fault("nobody asks", LoneReading, ConsumerState, "overtakes", False),
    Fault("nobody looks", WorkerReading, ConsumerState, "overtakes", False),
    Fault(
        "an old wake-up is news",
        WorkerReading,
        ConsumerState,
        "delivered",
        lambda state, element: hold(state, Wake("", element).job),
        # a recall names the job while its wake-up is on its way; it has ended when that is heard
        (ONE, LATE, STEP, ARRIVE, STEP, RUN, STEP, HEAR, RUN),
    ),
]


def hold(state: ConsumerState, job: Delivery) -> tuple[bytes, bytes]:
    """It is held, whatever is known of it."""
    held = job.id.encode(), job.value
    state._hold(*held)
    return held


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found(
    fault: Fault, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = machine(fault.kind, client, sound())
    # a wake-up that was long on its way is not believed, which would hide these faults
    monkeypatch.setattr(Hearing, "_is_new", staticmethod(lambda *_: True))
    if fault.course:
        play(kind, fault.course)
    monkeypatch.setattr(fault.owner, fault.method, fault.wrong)
    with pytest.raises(AssertionError, match=WRONG):
        if fault.course:
            play(kind, fault.course)
        else:
            run_state_machine_as_test(kind, settings=PLANTED)


def play(kind: Any, course: tuple[tuple[str, dict[str, Any]], ...]) -> None:
    played = kind()
    try:
        played.join(window=100)
        for name, arguments in course:
            getattr(played, name)(**arguments)
    finally:
        played.teardown()


def test_what_is_to_be_passed_on_does_not_hold_up_what_ended(client: redis.Redis) -> None:
    """More of it than one call names, where what is held has to be asked for."""
    played = machine(WorkerReading, client, sound())()
    try:
        played.join(window=1000)
        played.enqueue(count=CHUNK + 1)
        played.step()
        played.step()
        subscription, begin = played.subscription, played.connection.begin
        subscription.passing.extend((id_, value) for id_, value, _ in subscription.todo)
        assert len(subscription.passing) == CHUNK + 1
        subscription.todo.clear()
        calls: list[Any] = []

        def counted(call: Any) -> None:
            calls.append(call)
            assert len(calls) < 10, "it calls and calls"
            begin(call)

        played.connection.begin = counted
        subscription.settle(None)
        assert len(calls) == 1
        played.connection.begin = begin
        played.listener.lose()
        while subscription.passing:
            played.step()
        played.work_off()
    finally:
        played.teardown()


def test_what_receive_keeps_is_not_lost_where_a_settle_asks_what_is_held(
    client: redis.Redis,
) -> None:
    once: dict[str, Any] = {"timeout": 0.01}
    course: tuple[tuple[str, dict[str, Any]], ...] = (
        *(("receive", once), ("enqueue", {"count": 5}), ("receive", once)),
        *(("enqueue", {"count": 1}), ("arrive", {}), ("enqueue", {"count": 1})),
        ("settle", {"count": 3, "pull": True}),
    )
    played = machine(LoneReading, client, sound())()
    try:
        played.join(window=100, managed=False)
        for name, arguments in course:
            getattr(played, name)(**arguments)
    finally:
        played.teardown()
