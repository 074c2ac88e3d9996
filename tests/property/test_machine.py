"""Random interleavings of everything that producers, consumers and people do, against the model.

`RQUEUE_TEST_PROFILE=thorough` runs many more and longer ones, `brief` a few.
"""

import os
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.bounded import BoundedMachine
from tests.property.machine import Machine
from tests.property.selecting import SelectingMachine
from tests.property.sources import frozen
from tests.property.timed import TimedMachine
from tests.property.unique import UniqueMachine

QUICK = settings(
    max_examples=200,
    stateful_step_count=40,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
THOROUGH = settings(QUICK, max_examples=3000, stateful_step_count=80)
BRIEF = settings(QUICK, max_examples=20)
PROFILE = {"thorough": THOROUGH, "brief": BRIEF}.get(
    os.environ.get("RQUEUE_TEST_PROFILE", ""), QUICK
)


@pytest.mark.each_server
@pytest.mark.timeout(3600 if PROFILE is THOROUGH else 240)
@pytest.mark.parametrize(
    "kind", [Machine, TimedMachine, SelectingMachine, BoundedMachine, UniqueMachine]
)
def test_the_queue_does_what_the_model_says(
    kind: type[Machine], client: redis.Redis, tmp_path: Path
) -> None:
    machine = type("Machine", (kind,), {"client": client, "lua": frozen(tmp_path)})
    # every planted fault of bounds and of unique jobs is found in much fewer
    few = kind in (BoundedMachine, UniqueMachine) and PROFILE is QUICK
    run_state_machine_as_test(
        machine, settings=settings(PROFILE, max_examples=60) if few else PROFILE
    )
