"""A key of another type: what every job takes (enqueue, pull, settle) either changes nothing, and
its error names the key, or goes its way without that key."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.lua_folder import find_lua
from rqueue.protocol.scripts import SCRIPTS, Script, Scripts
from tests.damage.damages import KINDS, Damage, mistaken
from tests.damage.refusals import differences, digest
from tests.damage.situation import SITUATIONS, make
from tests.damage.test_damage import missing
from tests.damage.world import KEYS, World
from tests.property.sources import shipped
from tests.support.profiles import examples
from tests.support.redis_server import Servers
from tests.support.run_script import run
from tests.support.snapshot import take_snapshot

for path in sorted(Path(__file__).parent.glob("situations_*.py")):
    import_module(f"tests.damage.{path.stem}")  # its situations register themselves

THOROUGH = "RQUEUE_FUZZ" in os.environ

NAMES = {
    **dict.fromkeys(("ready", "due"), ("0", "4", "6", "9")),
    **dict.fromkeys(("held", "wake", "consumer", "running", "lapsed"), ("c2", "c3", "c4", "b1")),
    **dict.fromkeys(("result", "stop", "watch", "progress", "log"), ("r0", "r1")),
    "group": (
        "g",
        "h",
        "g0",
        "g1",
        "g2",
        "g4",
        "0",
        "1",
        "crm",
        "crm=a",
        "all",
        "@r=a",
        "4.a",
        "4.b",
        "4.c",
    ),
    "served": ("4", "9"),
    "class": ("1", "2"),
    "refused": ("1", "2", "1.2", "2.3"),
    "own": ("c2", "c3", "c4"),
    "interested": ("0", "1", "2"),
    "room": ("p0", "p1"),
    "write": ("run",),
    "written": ("run:1:0",),
    "gathered": ("w0",),
    "heard": ("w0",),
}
"""What follows the keys that are followed by a name."""


def key_types() -> dict[str, str]:
    """Each key that these queues may have, and its type: from the table that the scripts use, so
    that a new key is tried too."""
    text = Path(str(find_lua() / "include" / "queue" / "key_types.lua")).read_text("utf-8")
    plain, named = text.split("local KEY_TYPES_NAMED")
    pair = re.compile(r"(?:\['([\w:]+)'\]|(\w+)) = '(\w+)'")
    found = {quoted or word: kind for quoted, word, kind in pair.findall(plain)}
    for quoted, word, kind in pair.findall(named.partition("}")[0]):
        for name in NAMES[quoted or word]:
            found[f"{quoted or word}:{name}"] = kind
    return found


TYPES = key_types()
EXPECTED = re.compile("^(WRONGTYPE|DAMAGED|GONE|NOCONSUMER)|Error running script.*WRONGTYPE")


WRONG_KINDS = {"redis62": slice(1), "newest": slice(-1, None)}
"""Which of the wrong types a key gets on a server: one on each, or all with RQUEUE_FUZZ."""

EVERYWHERE = THOROUGH or examples(0, 1) > 0
PLACES = [
    (server, name)
    for at, server in enumerate(WRONG_KINDS)
    for number, name in enumerate(SITUATIONS)
    if EVERYWHERE or number % len(WRONG_KINDS) == at
]
"""Each situation on one of the servers by turns; on both under `make test-all`."""


def wrong_kinds(key: str, server: str) -> list[str]:
    others = [kind for kind in KINDS if kind != TYPES[key]]
    return others if THOROUGH else others[WRONG_KINDS[server]]


class Damaged(NamedTuple):
    """A server whose queues get keys of other types."""

    name: str
    client: redis.Redis


@pytest.fixture(scope="module", params=list(WRONG_KINDS))
def damaged(servers: Servers, request: pytest.FixtureRequest) -> Iterator[Damaged]:
    server: EmbeddedRedis = servers.make(request.param).start()
    with redis.Redis.from_url(server.url, socket_timeout=20) as client:
        yield Damaged(request.param, client)
    server.stop()


def met(client: redis.Redis, script: Script, keys: Sequence[str], args: Any) -> list[str]:
    """The keys that a call looks at or writes. Until it meets a key it does as if that key were as
    it should be: so no other key can make a difference, whatever its type."""
    sent = ""
    with client.monitor() as monitor:
        run(client, script, keys, args)
        client.echo("done")
        while "ECHO" not in (seen := monitor.next_command())["command"].upper():
            if seen["client_type"] == "lua":
                sent += seen["command"] + "\n"
    return [key for key in TYPES if KEYS.base + key in sent]


def spoil(world: World, damage: Damage) -> None:
    """The world as it was kept, with this damage."""
    world.restore()
    damage.do(world.client)


def faults(server: Damaged, name: str, lua: Scripts = SCRIPTS) -> Iterator[str]:
    """What a call in this situation does that it must not do."""
    client = server.client
    world, call = make(client, name)
    made = call()
    sent = lua.script(made.script, world.kind.having(made.needs))
    args = made.args_for(world.kind.policies)
    send = partial(run, client, sent, made.keys, args)
    before = world.restore()
    for key in met(client, sent, made.keys, args):  # as it is, it works
        for kind in wrong_kinds(key, server.name):
            damage = mistaken(key, kind)
            spoil(world, damage)
            damaged = digest(client)
            try:
                send()
            except redis.ResponseError as error:
                wrong = []
                if digest(client) != damaged:
                    wrong = differences(client, partial(spoil, world, damage), send)
                if not EXPECTED.search(str(error)):
                    wrong.append("another error")
                yield from (f"{key} is a {kind}, {error}: {one}" for one in wrong)
            else:
                after = take_snapshot(client, KEYS)
                lost = missing(before, after, [damage], set())
                yield from (f"{key} is a {kind}, done: {one}" for one in lost)


@pytest.mark.parametrize(("damaged", "name"), PLACES, indirect=["damaged"], scope="module")
def test_nothing_is_changed(damaged: Damaged, name: str) -> None:
    assert list(faults(damaged, name)) == []


PLANTED = {
    "a lone enqueue keeps its position": (
        "enqueue of one",
        "include/enqueue/fast_path.lua",
        "    redis.call('HINCRBY', base .. 'meta', 'seq', '-1')\n    return fault",
        "    return fault",
    ),
    "a direct delivery is not taken back": (
        "enqueue to who waits",
        "include/deliver/assign.lua",
        "redis.call('RPOP', held)",
        "",
    ),
    "an enqueue does not look where producers are noted": (
        "enqueue of members of a stream",
        "policies/flows/meets.lua",
        "    found[#found + 1] = { 'unsealed', 'zset' }\n",
        "",
    ),
    "a seal does not look before it seals": (
        "seal behind the end of all",
        "seal.lua",
        "failure = sound_fault(base, queue.levels)\n",
        "failure = nil\n",
    ),
    "a pull keeps what it took": (
        "pull of all",
        "include/pull/pull.lua",
        "  undone_pull(base, consumer, taken)",
        "",
    ),
    "a lone settle keeps its record": (
        "settle of one",
        "include/settle/undone.lua",
        "redis.call('HDEL', base .. 'ended', unpack(ids))",
        "",
    ),
    "a settle does not look where jobs go back to": (
        "settle of outcomes of all kinds",
        "include/settle/unfinished.lua",
        "keys.scheduled = 'zset'",
        "",
    ),
    "an enqueue does not look before it sweeps": (
        "enqueue that sweeps",
        "include/enqueue/admission.lua",
        """  if overdue then
    --- @include "queue/sound"
    fault = sound_fault(base, step.levels)
""",
        "  if overdue then\n",
    ),
    "an enqueue does not look before it displaces": (
        "enqueue that displaces",
        "include/enqueue/admission.lua",
        "    fault = sound_fault(base, all)\n",
        "",
    ),
    "a pull does not look before it ends what expired": (
        "pull of what expired",
        "include/pull/pull.lua",
        "local fault = sound_fault(base, queue.levels, { consumer.name })\n",
        "local fault\n",
    ),
    "a pull does not look before it sweeps": (
        "pull that sweeps",
        "include/pull/pull.lua",
        "others = others or overdue",
        "",
    ),
    "what expired before the one that is too big is lost": (
        "pull of what expired and of what is too big",
        "include/pull/undone.lua",
        "if taken.back then",
        "if false then",
    ),
    "a promotion does not look where expired jobs go": (
        "pull of what is due and expired",
        "include/pull/sound.lua",
        """  -- some may not become ready, but end
  all = true
  --- @end
  --- @if overdue
  -- what is overdue then is seen to behind this, and may meet all keys
  all = true
""",
        "  --- @end\n  --- @if overdue\n",
    ),
    "an enqueue does not look at the levels that it is the first of": (
        "enqueue of levels into a full ring",
        "include/enqueue/admission.lua",
        "do all = all .. ',' .. run.level end",
        "do all = all .. '' end",
    ),
    "a promotion does not look before it displaces": (
        "pull of last values that are due",
        "include/pull/sound.lua",
        """  -- others may end
  all = true
""",
        "",
    ),
    "a lone settle meets the times to live unprepared": (
        "settle of one with the next and a ttl",
        "include/settle/fast_path.lua",
        "local met, overdue = pcall(late)",
        "local met, overdue = true, late()",
    ),
    "a settle does not look where waiting jobs are noted": (
        "settle of outcomes with a ttl",
        "include/settle/unfinished.lua",
        "for _, place in ipairs(places) do keys[place[1]] = place[2] end",
        "",
    ),
    "a full consumer moves before it looks for work": (
        "pull of a full consumer while others wait",
        "include/pull/pull.lua",
        "work, tell = notify_next_work_waits(base, queue), notify_next",
        "work, tell = nil, notify_next",
    ),
    "a pull does not put the heads of groups back": (
        "pull of all groups",
        "include/pull/undone.lua",
        "ipairs(taken.sets or {})",
        "ipairs({})",
    ),
    "a pull does not put back what it passed in the lists": (
        "pull of groups and others",
        "include/pull/merge.lua",
        "        taken.rounds = taken.rounds + 1\n",
        "",
    ),
    "an enqueue does not look at its group": (
        "enqueue behind others of a group",
        "include/enqueue/admission.lua",
        "    fault = sound_jobs(base, tags)\n",
        "",
    ),
    "a settle does not look at the groups of its jobs": (
        "settle of several of groups",
        "include/settle/sound.lua",
        "sound_jobs(base, values, queue) or ",
        "",
    ),
    "a settle of members does not look where values are": (
        "settle of a member of a stream",
        "include/settle/sound.lua",
        " or sound_type(base, 'jobs', 'hash')",
        "",
    ),
    "a promotion does not look at the groups of its jobs": (
        "pull of groups that are due",
        "include/pull/sound.lua",
        "  if fault then return fault end\n  --- @end\n  if all then",
        "  --- @end\n  if all then",
    ),
    "a settle does not look where jobs with places of their own go back to": (
        "settle of what was held",
        "include/settle/unfinished.lua",
        "  local met = sound_jobs(base, tags)\n  if met then return met end\n",
        "",
    ),
    "a settle does not look where refused jobs go": (
        "settle that refuses and pulls",
        "include/settle/unfinished.lua",
        "  local met = sound_jobs(base, tags)\n  if met then return met end\n",
        "",
    ),
    "a settle does not look where expired jobs go": (
        "settle of a release that expired",
        "include/settle/over.lua",
        "return sound_fault(base, queue.levels, { said.gathered.consumer })",
        "return nil",
    ),
}


@pytest.mark.parametrize(
    ("damaged", "what"),
    [(server, what) for server, name in PLACES for what in PLANTED if PLANTED[what][0] == name],
    indirect=["damaged"],
    scope="module",
)
def test_what_is_planted_is_found(damaged: Damaged, what: str) -> None:
    name, file, right, fault = PLANTED[what]
    assert next(faults(damaged, name, shipped().changed((file, right, fault))), None)
