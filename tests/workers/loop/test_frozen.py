"""No worker begins a job that is others', cancelled or expired by then, as far as it can know: also
one that was frozen; and faults of that, planted in the worker's code, are found."""

from collections.abc import Callable
from math import inf

import pytest
import redis
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from rqueue.embedded.server import EmbeddedRedis
from rqueue_workers.worker.flight import Flight
from rqueue_workers.worker.hearing import Hearing
from rqueue_workers.worker.subscription import Subscription
from tests.property.sources import sound
from tests.support.profiles import examples
from tests.workers.loop.frozen import Frozen
from tests.workers.loop.test_loop import PROFILE
from tests.workers.loop.test_planted import SEARCH


@pytest.fixture
def machine(client: redis.Redis, server: EmbeddedRedis) -> type[Frozen]:
    return type("Machine", (Frozen,), {"client": client, "url": server.url, "scripts": sound()})


def test_nothing_begins_that_is_not_its_workers(machine: type[Frozen]) -> None:
    run_state_machine_as_test(machine, settings=settings(PROFILE, max_examples=examples(8, 80)))


Patch = pytest.MonkeyPatch


def what_is_old_is_believed(patch: Patch) -> None:
    patch.setattr(Subscription, "is_old", lambda *_: False)


def what_was_long_on_its_way_is_believed(patch: Patch) -> None:
    patch.setattr(Hearing, "_is_new", staticmethod(lambda *_: True))


def what_is_held_never_expires(patch: Patch) -> None:
    patch.setattr(Subscription, "expires", lambda *_: False)


def a_late_reply_sets_the_clock_back(patch: Patch) -> None:
    prepare = Subscription._prepare

    def forgetful(self: Subscription, window: int | None) -> Flight:
        flight = prepare(self, window)
        self.asked_at = inf
        return flight

    patch.setattr(Subscription, "_prepare", forgetful)


FAULTS: tuple[Callable[[Patch], None], ...] = (
    what_is_old_is_believed,
    what_was_long_on_its_way_is_believed,
    what_is_held_never_expires,
    a_late_reply_sets_the_clock_back,
)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_search_finds(
    fault: Callable[[Patch], None], machine: type[Frozen], monkeypatch: Patch
) -> None:
    fault(monkeypatch)
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(machine, settings=SEARCH)
