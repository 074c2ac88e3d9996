"""Tests of the test: faults in what a worker does on one of several routes, found by plays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RegistrationLost, ServerError
from rqueue_workers.worker.dispatcher import Dispatcher
from rqueue_workers.worker.reporter import Reporter
from rqueue_workers.worker.route import Route
from rqueue_workers.worker.under_way import ANSWER_S, UnderWay
from tests.property.sources import sound
from tests.workers.loop.machine import Machine
from tests.workers.loop.two_queues import (
    AT_ONCE_S,
    When,
    acks_early,
    joins,
    leave_two_that_hang,
    lose_one_of_two,
    recalls,
    settle_behind_a_report,
    settles,
    stall_beside_one_that_hangs,
)

Patch = pytest.MonkeyPatch


@pytest.fixture
def machine(client: redis.Redis, server: EmbeddedRedis) -> type[Machine]:
    parts = {"client": client, "url": server.url, "scripts": sound()}
    return type("Machine", (Machine,), parts)


def _dropped_in_all(patch: Patch) -> None:
    rejoin = Dispatcher.rejoin

    def dropped(self: Dispatcher, error: RegistrationLost) -> None:
        for one in self.subscriptions:
            if one.term and one.queue != error.queue:
                self._drop(one)
        rejoin(self, error)

    patch.setattr(Dispatcher, "rejoin", dropped)


def test_it_is_found_that_all_registrations_go_with_one_that_is_lost(
    machine: type[Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Played, as all of what concerns two routes: the search would need hundreds of tries."""
    _dropped_in_all(monkeypatch)
    played = machine()
    try:
        with pytest.raises(AssertionError):
            lose_one_of_two(played, apart=True)
    finally:
        played.sound = False
        played.teardown()


def _waited_for(patch: Patch) -> None:
    go_on = Route.go_on
    patch.setattr(Route, "go_on", lambda self, within=0.0: go_on(self, ANSWER_S))


def _forgotten(patch: Patch) -> None:
    left = []  # else what was to be restored is, when nobody has it any more

    def forget(self: UnderWay, error: ServerError) -> None:
        left.append(self)
        raise error

    patch.setattr(UnderWay, "_fail", forget)


@pytest.mark.parametrize(
    ("plant", "when"),
    [
        (_waited_for, settles),
        (_waited_for, recalls),
        (_waited_for, joins),
        (_waited_for, acks_early),
        (_forgotten, settles),
    ],
)
def test_it_is_found_that_a_call_without_an_answer_is(
    plant: Callable[[Patch], None],
    when: When,
    machine: type[Machine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    played = machine()
    try:
        with pytest.raises(AssertionError):
            assert stall_beside_one_that_hangs(played, {"threads": 2}, when) <= AT_ONCE_S
    finally:
        played.sound = False
        played.teardown()


def _not_paused(patch: Patch) -> None:
    patch.setattr(Reporter, "pause", lambda self, within: True)
    patch.setattr(Reporter, "resume", lambda self: None)


@pytest.mark.parametrize(
    ("plant", "play"),
    [(_waited_for, leave_two_that_hang), (_not_paused, settle_behind_a_report)],
)
def test_it_is_found_that_routes_wait_for_each_other_and_an_end_not_for_its_report(
    plant: Callable[[Patch], None],
    play: Callable[[Machine], object],
    machine: type[Machine],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(monkeypatch)
    played = machine()
    try:
        with pytest.raises(AssertionError):
            play(played)
    finally:
        played.sound = False
        played.teardown()
