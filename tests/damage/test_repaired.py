"""A key of another type: what every job takes names it and has changed nothing, or goes its way,
and `rqueue doctor --repair` leaves a sound queue with every job in it once.

`make fuzz` searches for longer.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from rqueue.errors import QueueDamaged, RQueueError
from rqueue.inspector import Doctor, Finding
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.damage.damages import ALL, KINDS, mistaken
from tests.damage.refusals import digest
from tests.damage.steps import MAKERS
from tests.damage.world import KEYS, World, named
from tests.support.profiles import examples
from tests.support.snapshot import Snapshot, take_snapshot

HOT = ["enqueue", "pull", "settle"]
EXAMPLES = int(os.environ.get("RQUEUE_FUZZ", examples(2, 16)))
"""For each key."""


def heal(client: redis.Redis) -> tuple[list[Finding], list[Finding]]:
    """Repair the queue; what was done, and what is left."""
    doctor = Doctor(client, KEYS.namespace, wait=lambda _seconds: None)
    done: list[Finding] = []
    left = doctor.heal(KEYS.queue, done.append)
    return done, [finding for finding in left if finding.severity == "problem"]


def alive(snapshot: Snapshot) -> Counter[str]:
    """How often each job is in a place."""
    return Counter(
        id for id, _place in snapshot.places if not snapshot.jobs.get(id, b"!").startswith(b"!")
    )


def ended(snapshot: Snapshot) -> set[str]:
    return named(snapshot.keys, "ended") | named(snapshot.keys, "ended:old")


def wrong(before: Snapshot, after: Snapshot, key: str, settled: set[str]) -> list[str]:
    """Jobs that are not in one place. settled: of these the call said that they have ended."""
    found = [f"{id} is in {times} places" for id, times in alive(after).items() if times > 1]
    if key == "jobs":
        return found  # what the jobs are is gone
    gone = set(alive(before)) - set(alive(after)) - ended(after) - settled
    return found + [f"{id} is lost" for id in sorted(gone)]


@pytest.mark.parametrize("key", ALL)
def test_a_repair_brings_all_jobs_back(worlds: dict[str, World], key: str) -> None:
    @settings(
        max_examples=EXAMPLES,
        derandomize="RQUEUE_FUZZ" not in os.environ,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(
        st.data(),
        st.sampled_from(sorted(worlds)),
        st.sampled_from(HOT),
        st.sampled_from(KINDS),
    )
    def tries(data: st.DataObject, which: str, name: str, kind: str) -> None:
        world = worlds[which]
        before = world.restore()
        call: Any = MAKERS[name](world, data.draw)
        mistaken(key, kind).do(world.client)
        assume(execute(world.client, commands.check_types(KEYS, [key])))
        damaged = digest(world.client)
        try:
            execute(world.client, call)
        except QueueDamaged as error:
            assert error.key == KEYS.base + key
            assert error.found == kind
            assert digest(world.client) == damaged
        except RQueueError:
            pass  # refused for another reason, or before it met the key
        settled = {text(arg) for arg in call.args} if name == "settle" else set()
        done, left = heal(world.client)
        how = f"{which}: {key} is a {kind}, {name} {call.args}; repaired: {done}"
        assert left == [], how
        after = take_snapshot(world.client, KEYS)
        assert wrong(before, after, key, settled) == [], how

    tries()


def text(arg: Any) -> str:
    return arg.decode("utf-8", "replace") if isinstance(arg, bytes) else str(arg)
