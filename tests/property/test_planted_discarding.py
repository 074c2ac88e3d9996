"""Tests of the test: faults planted where a queue keeps no dead letters are found."""

import redis
from hypothesis import strategies as st
from hypothesis.stateful import rule

from rqueue.protocol import commands
from rqueue.protocol.policies import PLAIN, Kind
from tests.property.planted import (
    HEAR,
    PULL,
    Fault,
    Step,
    begin,
    crash,
    each,
    enqueue,
    is_found,
    settle,
)
from tests.property.timed import TimedMachine

DEAD_LETTER = "include/finish/dead_letter.lua"
NONE: Step = ("set_dead_letters", {"kept": False})
KEPT: Step = ("set_dead_letters", {"kept": True})
REJECT = settle("reject")


class DiscardingMachine(TimedMachine):
    """A queue that keeps no dead letters, and keeps them again."""

    kinds = (PLAIN, Kind.of(["groups"]))

    @rule(kept=st.booleans())
    def set_dead_letters(self, kept: bool) -> None:
        self.run(commands.configure(self.keys, {"dead_letters": int(kept)}))
        self.model.discards = not kept


FAULTS = [
    Fault(
        "what failed for good stays in the queue",
        DEAD_LETTER,
        "if final then",
        "if final == 'then' then",
        (begin((2, 0), ready=2), PULL, NONE, REJECT),
    ),
    Fault(
        "errors outlive their job",
        DEAD_LETTER,
        "redis.call('HDEL', base .. 'errors', job.id)",
        "",
        (begin((1, 0)), enqueue(limit=2), HEAR, settle("retry"), PULL, NONE, settle("retry")),
    ),
    Fault(
        "a queue that keeps them again ends them",
        "policies/discarding.lua",
        "redis.call('HGET', base .. 'meta', 'dead_letters') == '0'",
        "redis.call('HEXISTS', base .. 'meta', 'dead_letters') == 1",
        (begin((2, 0), ready=2), PULL, NONE, KEPT, REJECT),
    ),
    Fault(
        "a crash too many makes a dead letter all the same",
        "include/finish/unfinished.lua",
        "dead_letter_store(batch.base, queue.now, job, error_)",
        "dead_letter_store(crash and '' or batch.base, queue.now, job, error_)",
        (begin((1, 0)), NONE, enqueue(limit=1), HEAR, crash(0)),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, DiscardingMachine)
