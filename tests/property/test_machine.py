"""Random interleavings of everything that producers, consumers and people do, against the model.

How many there are: `tests.support.profiles`.
"""

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.bounded import BoundedMachine
from tests.property.machine import Machine
from tests.property.selecting import SelectingMachine
from tests.property.sources import sound
from tests.property.timed import TimedMachine
from tests.property.unique import UniqueMachine
from tests.support.profiles import THOROUGH, examples


def search(usual: int, full: int) -> settings:
    """How this run of the tests searches: so many examples, under `make test-all` more."""
    return settings(
        max_examples=examples(usual, full, thorough=3000, brief=6),
        stateful_step_count=80 if THOROUGH else 40,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


SEARCHES: dict[type[Machine], settings] = {
    Machine: search(14, 200),
    TimedMachine: search(14, 200),
    SelectingMachine: search(14, 200),
    # every planted fault of these is found in few
    BoundedMachine: search(9, 60),
    UniqueMachine: search(9, 60),
}


@pytest.mark.each_server
@pytest.mark.timeout(3600 if THOROUGH else 240)
def test_the_queue_does_what_the_model_says(client: redis.Redis) -> None:
    play(Machine, client)


@pytest.mark.each_server(oldest_if_long=True)
@pytest.mark.timeout(3600 if THOROUGH else 240)
@pytest.mark.parametrize("kind", [kind for kind in SEARCHES if kind is not Machine])
def test_a_queue_of_a_kind_does_what_the_model_says(
    kind: type[Machine], client: redis.Redis
) -> None:
    play(kind, client)


def play(kind: type[Machine], client: redis.Redis) -> None:
    """Search, as far as this run does."""
    machine = type("Machine", (kind,), {"client": client, "lua": sound()})
    run_state_machine_as_test(machine, settings=SEARCHES[kind])
