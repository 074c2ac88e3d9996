"""Whatever is in a queue's keys and whatever is asked of it: a script that answers with an error
has changed nothing, and one that does not has kept every other job.

`make fuzz` searches for longer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rqueue.protocol import commands
from rqueue.protocol.scripts import SCRIPTS, Scripts
from tests.damage.absurd_calls import changed, changes
from tests.damage.damages import Damage, apply, damages, mistaken, scored
from tests.damage.refusals import differences, digest
from tests.damage.steps import MAKERS
from tests.damage.world import KEYS, World, named, places
from tests.property.sources import shipped
from tests.support.profiles import examples
from tests.support.run_script import run
from tests.support.snapshot import Snapshot, take_snapshot

THOROUGH = "RQUEUE_FUZZ" in os.environ
EXAMPLES = int(os.environ.get("RQUEUE_FUZZ", examples(8, 120)))
"""For each script."""


def wrong(world: World, call: Any, some: list[Damage], lua: Scripts = SCRIPTS) -> list[str]:
    """What a call does to a damaged queue that it must not do."""
    client = world.client
    before = world.restore()
    apply(world, some)
    damaged = digest(client)
    script = lua.script(call.script, world.kind.having(call.needs))
    send = partial(run, client, script, call.keys, call.args_for(world.kind.policies))
    try:
        send()
    except redis.ResponseError as error:
        if digest(client) == damaged:
            return []

        def damage() -> None:
            world.restore()
            apply(world, some)

        return [f"{error}: {one}" for one in differences(client, damage, send)]
    taken = set()
    if "take" in call.args:  # the caller is to place it; a change may have put text in front
        first = call.args[0]
        taken = {first.decode() if isinstance(first, bytes) else str(first)}
    return missing(before, take_snapshot(client, KEYS), some, taken)


def missing(before: Snapshot, after: Snapshot, some: list[Damage], taken: set[str]) -> list[str]:
    """Jobs that nobody damaged, and that are nowhere."""
    spoilt = {id for one in some for id in one.ids} | taken
    spoilt |= {id for id, value in before.jobs.items() if value.startswith(b"!")}
    keys = {key for one in some for key in one.keys}
    if keys & {"jobs", "ended"}:
        return []
    there = {id for ids in places(after.keys).values() for id in ids}
    jobs, ended = named(after.keys, "jobs"), named(after.keys, "ended")
    return [
        f"{id}, which was in {key}, is lost"
        for key, ids in places(before.keys).items()
        for id in ids
        if key not in keys and id not in spoilt
        if not ((id in jobs and id in there) or id in ended)
    ]


def search(
    worlds: dict[str, World],
    name: str,
    report: Callable[[list[str], str], None],
    lua: Scripts,
    tries: int = EXAMPLES,
    phases: Sequence[Phase] = (Phase.generate, Phase.shrink),
) -> None:
    """Try a script on damaged queues; `report` is given what is wrong, and how it came to that."""

    @settings(
        max_examples=tries,
        derandomize=not THOROUGH,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data(), st.sampled_from(sorted(worlds)), st.lists(damages, max_size=3), changes)
    def attempt(data: st.DataObject, which: str, some: list[Damage], change: Any) -> None:
        call = changed(MAKERS[name](worlds[which], data.draw), change)
        found = wrong(worlds[which], call, some, lua)
        report(found, f"{which}: {name} {call.args} where {[one.says for one in some]}")

    attempt()


def nothing_is_wrong(found: list[str], how: str) -> None:
    assert found == [], how


@pytest.mark.parametrize("name", SCRIPTS.names())
def test_all_or_nothing(worlds: dict[str, World], name: str) -> None:
    search(worlds, name, nothing_is_wrong, SCRIPTS)


def test_a_word_of_shards_where_the_schedule_has_what_is_none_of_ours(
    worlds: dict[str, World],
) -> None:
    """Found in a longer search: the script compared what was no position."""
    table = {"version": "1", "0": "open 1 "}
    call = commands.inform_shard(KEYS, "of", 1, fields=table)
    assert wrong(worlds["bounded"], call, [scored("scheduled", "r0", "-inf")]) == []


@pytest.mark.parametrize("make", [commands.expire, commands.reject])
def test_several_where_a_list_that_the_last_one_meets_is_none(
    worlds: dict[str, World], make: Callable[..., Any]
) -> None:
    """Found in a longer search: the first one had left its place by then."""
    call = make(KEYS, ["s0", "r0"])
    assert wrong(worlds["bounded"], call, [mistaken("held:c3", "string")]) == []


PLANTED = {
    "a value that cannot be read stops a purge": (
        "purge",
        "include/job/value.lua",
        "if not position or ",
        "if position and ",
    ),
    "a cancel does not look before it writes": (
        "cancel",
        "cancel.lua",
        "failure = sound_fault(base, queue.levels, { holder or nil })",
        "failure = nil",
    ),
    "what a purge takes off the lists has no record": (
        "purge",
        "include/finish/end.lua",
        "records_write(base, queue, records)",
        "",
    ),
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_is_found(worlds: dict[str, World], what: str) -> None:
    name, file, right, fault = PLANTED[what]
    lua = shipped().changed((file, right, fault))
    with pytest.raises(AssertionError):
        search(worlds, name, nothing_is_wrong, lua, 500, [Phase.generate])
