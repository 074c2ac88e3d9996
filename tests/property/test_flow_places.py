"""Which members of a workflow have ended is read off their ids, many in a call: each counts for its
place and for no other, in whatever order they come, and nothing counts that only looks like one."""

from random import Random
from typing import Any

import pytest
import redis

from rqueue.model.parents import Parents
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import SCRIPTS, Scripts
from rqueue.transport.redis_client import execute
from tests.property.planted import Fault, each
from tests.property.sources import sound
from tests.support.profiles import examples
from tests.support.run_script import run

SEEDS = examples(3, 60)
KIND = Kind.of(["flows"])
MEMBERS = {"w": 230, "w.1": 30}
"""How many members wait for which job; the second is a member of the first itself."""

STRANGERS = ("w.01", "w.007", "w.230", "w.1e1", "w.x", "w.-1", "w.1.30", "w." + "9" * 400)
"""Jobs that count for nobody."""

HEARD, MEMBER, PLACES, WAITS = (
    f"include/flow/{name}.lua" for name in ("heard", "member", "places", "waits")
)
PARENTS = "policies/flows/parents.lua"


class Places:
    """The calls of one queue. lua: the scripts, which may have a fault."""

    def __init__(self, client: redis.Redis, name: str, lua: Scripts, seed: int) -> None:
        self.client, self.keys, self.lua = client, QueueKeys(name), lua
        self.random = Random(seed)
        client.delete(*(client.keys(self.keys.base + "*") or ["none"]))
        execute(client, commands.configure(self.keys, {"v": KIND.stamp}), queue=name)

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, KIND)
        return call.read(run(self.client, script, call.keys, call.args_for(KIND.policies)))

    def in_some_order(self, ids: list[str]) -> list[str]:
        """As they are made but for some pieces, or one here and one there."""
        draw = self.random
        if not draw.randrange(3):
            return draw.sample(ids, len(ids))
        for _ in range(draw.randrange(8)):
            at, many = draw.randrange(len(ids)), draw.randrange(1, 25)
            piece, ids = ids[at : at + many], ids[:at] + ids[at + many :]
            at = draw.randrange(len(ids))
            ids = ids[:at] + piece + ids[at:]
        return ids

    def play(self) -> None:
        """All members come, and end; what is noted is looked at after each call."""
        ids = [f"{job}.{place}" for job, many in MEMBERS.items() for place in range(many)]
        ids = [id_ for id_ in ids if id_ not in MEMBERS]
        puts = [Put("w", b"{}", waits=Parents(230, "nothing").text)]
        puts += [Put("w.1", b"{}", waits=Parents(30, "nothing").text, counts=True)]
        puts += [Put(id_, b"{}", counts=True) for id_ in self.in_some_order(ids)]
        for stranger in STRANGERS:
            puts.insert(self.random.randrange(2, len(puts)), Put(stranger, b"{}"))
        self.run(commands.enqueue(self.keys, puts))
        window, ended = Window(400), set[str]()
        term = self.run(commands.register(self.keys, "c", window=window, lease_ms=10**9)).term
        for _ in range(3):  # the members, then w.1, then w
            pulled = self.run(commands.pull(self.keys, "c", term, window)).jobs[::2]
            held = [raw.decode() for raw in pulled]
            while held:
                many = self.random.randrange(1, 101)
                some, held = held[:many], held[many:]
                self.run(commands.settle(self.keys, "c", term, None, ack=some))
                ended.update(some)
                self.check(ended)
        assert {*ids, *STRANGERS, *MEMBERS} == ended

    def check(self, ended: set[str]) -> None:
        """Each job that waits has heard of its members that have ended, and of no others."""
        for job, many in MEMBERS.items():
            places = {place for place in range(many) if f"{job}.{place}" in ended}
            bits = "".join(f"{byte:08b}" for byte in self.client.get(self.keys.heard(job)) or b"")
            noted = {place for place, bit in enumerate(bits) if bit == "1"}
            assert noted == (places if len(places) < many else set()), job


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_member_counts_for_its_place(client: redis.Redis, queue_name: str, seed: int) -> None:
    Places(client, queue_name, SCRIPTS, seed).play()


FAULTS = [
    Fault("a place may be said in two ways", MEMBER, "string.byte(digits) == 48", "false"),
    Fault("a place of another job counts", PLACES, "ids[i + 1] == stem .. digit", "ids[i + 1]"),
    Fault("ten count unseen", PLACES, " and places_lines(ids, i) == places_ten(stem)", ""),
    Fault("of ten the last one counts not", PLACES, "place + 9, nil", "place + 8, nil"),
    Fault("a ten that was read is another one", PLACES, "= place - digit, job", "= place, job"),
    Fault(
        "of a run the first one counts alone", PLACES, "= first, place, at", "= first, first, at"
    ),
    Fault("runs that are apart are one", PLACES, "merged[n] == first - 1", "true"),
    Fault(
        "who has so many members has more",
        PLACES,
        "if first < total then firsts[#firsts + 1], lasts[first] = "
        "first, math.min(runs[i + 1], total - 1) end",
        "firsts[#firsts + 1], lasts[first] = first, runs[i + 1]",
    ),
    Fault("of a long run the first places count alone", HEARD, "first + bits\n", "last + 1\n"),
    Fault("with the last one all have ended", WAITS, " and heard_all(key, total)", ""),
    Fault("no ten follows", PARENTS, "if job and not digit then", "if not stem then"),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis, queue_name: str) -> None:
    lua = sound().changed(fault.piece)
    with pytest.raises((AssertionError, redis.ResponseError)) as found:
        for seed in range(40):
            Places(client, queue_name, lua, seed).play()
    assert "compiling script" not in str(found.value), "what is planted is no fault but a slip"
