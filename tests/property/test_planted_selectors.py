"""Tests of the test: faults planted in the policy of selectors are found."""

import redis

from tests.property.planted import OBEY, Fault, Step, begin, each, is_found, pass_time
from tests.property.selecting import SELECTING, SelectingMachine

POLICY = "policies/selectors.lua"
TELL = "policies/selectors/tell.lua"


def labelled(delay: int) -> Step:
    """A job with two labels."""
    jobs = [((4, delay, 0, 0, 1), 3)]
    return "enqueue_labelled", {"jobs": jobs, "immediate": False}


FAULTS = [
    Fault(
        "a consumer is notified without a look at what it takes",
        TELL,
        "if selectors_hear(base, audience, class) then look(audience) end",
        "look(audience)",
    ),
    Fault(
        "no consumer is notified of what is due for others",
        "policies/selectors/closing.lua",
        "if not SELECTORS.fresh_any or queue.paused then return end",
        "do return end",
        (begin((1, 0), (2, 0)), labelled(delay=800), pass_time(900), OBEY),
    ),
    Fault(
        "the oldest of each class is taken in turn",
        "include/pull/merge.lua",
        "      if scores[key] < scores[best]\n",
        "      if false\n",
        found=(
            begin((10, 0), (2, 0), (3, 0), later=True, first=False),
            (
                "enqueue_labelled",
                {
                    "immediate": False,
                    "jobs": [
                        ((4, 0, 0, 0, 4), 3),
                        ((4, 3000, 200, 0, 0), 0),
                        ((4, 3000, 0, 0, 10), 1),
                        ((4, 0, 0, 0, 11), 2),
                    ],
                },
            ),
            (
                "enqueue_labelled",
                {"immediate": False, "jobs": [((4, 0, 200, 1, 10), 1), ((4, 800, 0, 1, 2), 2)]},
            ),
            ("pass_time", {"ms": 7000}),
            ("obey", {"pick": 5}),
        ),
    ),
    Fault(
        "who does not wait any more stays known",
        "include/consumer/wake.lua",
        "  --- @each waits(base, consumer)\n",
        "",
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, SelectingMachine, [SELECTING])
