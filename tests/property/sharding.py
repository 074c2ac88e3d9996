"""A queue over shards, as clients with old tables, operators that are killed between two calls, and
consumers meet it, in steps of chance; and a model that says what must hold.

Of each key the jobs are delivered in the order in which they were accepted, also where the key
moves: one in another shard than the job before it waits until that one has ended. Nothing is lost,
nothing ends twice, and once everybody has done what is to be done no shard waits any more. An id
that is enqueued once more while its job lives is known, also where its key has moved meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import redis

from rqueue.errors import QueueSharded, ShardsChanged
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.commands.settle import Retried
from rqueue.protocol.commands.shards import find_known, of_version, read_shards, set_shards
from rqueue.protocol.error_mapping import translate
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Scripts
from rqueue.protocol.sharding import Steps, advancing
from tests.support.run_script import run

KEYS = QueueKeys("spread", "property")
PARENT = Kind.of(["sharded"])
LEASE_MS, SHARDS, NAMES = 3_600_000, 5, 6
RETRIES = 5
KEEP_MS = 250
"""How long records last: what a shard knows of a job that has ended it soon forgets."""


@dataclass
class One:
    """A job as the model knows it: accepted by `shard`."""

    id: str
    key: str
    shard: int
    delivered: bool = False
    ended: bool = False
    retries: int = 0
    aside: bool = False
    """It has left the order of its key: it waits to be tried again, and has no group."""


class Course:
    """One course of random steps. kind: of the shards."""

    def __init__(self, client: redis.Redis, lua: Scripts, seed: int, kind: Kind) -> None:
        self.client = client
        self.lua = lua
        self.random = random.Random(seed)
        self.kind = kind
        self.grouped = "groups" in kind.policies
        client.delete(*(client.keys("property:{spread*") or ["none"]))
        self.jobs: dict[str, One] = {}
        self.by_key: dict[str, list[One]] = {}
        self.operators: list[Steps] = []
        self.asked: dict[int, tuple[Shard | None, ScriptCall[Any]]] = {}
        self.terms: dict[int, str] = {}
        self.held: dict[int, list[str]] = {}
        self.clock = 0
        self.given = 0
        self.intended: list[tuple[int, dict[str, str]]] = []
        self.configure()
        first = {str(number): Shard(number).text for number in range(3)}
        assert self.run(set_shards(KEYS, 0, {**first, "version": "1", "moving": ""}))
        self.table = self.advance()
        self.clients = [self.table] * 3
        self.unknown: list[tuple[str, str, ShardTable]] = []

    # -- calls -------------------------------------------------------------------------------------

    def run(self, call: ScriptCall[Any]) -> Any:
        kind = PARENT if call.key == KEYS.meta else self.kind
        script = self.lua.script(call.script, kind)
        try:
            return call.read(run(self.client, script, list(call.keys), list(call.args)))
        except redis.ResponseError as error:
            raise translate(error, queue=call.key) from error

    def at(self, number: int) -> QueueKeys:
        return QueueKeys(f"spread~{number}", "property")

    def now_table(self) -> ShardTable:
        table: ShardTable = self.run(read_shards(KEYS))
        return table

    def configure(self) -> None:
        """Records are short-lived in all shards."""
        for number in range(SHARDS):
            self.client.hset(self.at(number).meta, "keep_ms", KEEP_MS)

    def advance(self) -> ShardTable:
        """All that an operator does who is not killed."""
        steps = advancing(KEYS)
        _, call = next(steps)
        while True:
            try:
                _, call = steps.send(self.run(call))
            except StopIteration as end:
                table: ShardTable = end.value
                return table

    # -- steps -------------------------------------------------------------------------------------

    def enqueue(self) -> None:
        """A client enqueues by the table that it knows; where it is refused it learns, or helps."""
        who = self.random.randrange(len(self.clients))
        table = self.clients[who]
        key = f"k{self.random.randrange(NAMES)}"
        shard = table.shard_of(key)
        id_ = f"j{len(self.jobs)}"
        put = Put(id_, b"[]", group=key if self.grouped else "")
        call = of_version(commands.enqueue(self.at(shard.number), [put]), table.version)
        try:
            accepted = self.run(call)
        except ShardsChanged as error:
            if self.random.random() < 0.5:
                self.clients[who] = self.now_table()
            elif error.known < error.named:
                self.begin_advance()
            return
        assert accepted.accepted == 1
        self.accepted(id_, key, shard.number, accepted.handed_to)

    def accepted(self, id_: str, key: str, shard: int, handed_to: str) -> None:
        """A shard has taken a job."""
        assert id_ not in self.jobs, f"{id_} is accepted once more, by shard {shard}"
        one = self.jobs[id_] = One(id_, key, shard)
        self.by_key.setdefault(key, []).append(one)
        if handed_to:
            self.delivered(shard, [id_])

    def ask(self) -> None:
        """A client has an id of its own: a new one, that of another client, or one that it has
        enqueued before. It asks the shards that the key belonged to."""
        table = self.clients[self.random.randrange(len(self.clients))]
        live = [one for one in self.jobs.values() if not one.ended]
        moved = [one for one in live if one.shard != table.shard_of(one.key).number]
        others = [(id_, key) for id_, key, _ in self.unknown]
        chance = self.random.random()
        if others and chance < 0.4:
            id_, key = self.random.choice(others)
        elif live and chance < 0.8:
            one = self.random.choice(moved or live)
            id_, key = one.id, one.key
        else:
            self.given += 1
            id_, key = f"g{self.given}", f"k{self.random.randrange(NAMES)}"
        for shard in table.earlier(key):
            known = self.run(find_known(self.at(shard.number), [id_]))
            if known.version < table.version and shard.state != "closed":
                self.begin_advance()
                return
            if known.places:
                assert id_ in self.jobs
                return
        self.unknown.append((id_, key, table))

    def enqueue_unknown(self) -> None:
        """A client that has asked enqueues, by the table by which it asked."""
        if not self.unknown:
            return
        id_, key, table = self.unknown.pop(self.random.randrange(len(self.unknown)))
        if id_ in self.jobs and self.jobs[id_].ended:
            return  # its record may be gone by now
        shard = table.shard_of(key)
        put = Put(id_, b"[]", group=key if self.grouped else "")
        call = of_version(commands.enqueue(self.at(shard.number), [put]), table.version)
        try:
            accepted = self.run(call)
        except ShardsChanged:
            return
        if accepted.accepted:
            self.accepted(id_, key, shard.number, accepted.handed_to)
        else:
            assert id_ in self.jobs

    def change(self) -> None:
        """An operator changes the table as it looked a while ago, and may be killed behind it."""
        if len(self.intended) == 2 or (self.intended and self.random.random() < 0.5):
            before, fields = self.intended.pop(self.random.randrange(len(self.intended)))
            self.run(set_shards(KEYS, before, fields))
            return
        table = self.now_table()
        if table.moving:
            return
        opened = [n for n in range(SHARDS) if n not in [s.number for s in table.served]]
        drained = [shard.number for shard in table.open]
        if opened and (len(drained) < 2 or self.random.random() < 0.6):
            number = self.random.choice(opened)
            fields = {str(number): Shard(number).text, "moving": f"open {number}"}
        elif len(drained) > 1:
            number = self.random.choice(drained)
            fields = {str(number): Shard(number, "draining").text, "moving": f"drain {number}"}
        else:
            return
        fields["version"] = str(table.version + 1)
        changed = Shard.parse(str(number), fields[str(number)])
        fields["past"] = table.past_with([changed])
        self.intended.append((table.version, fields))

    def begin_advance(self) -> None:
        """Another one begins to do what the table asks for."""
        steps = advancing(KEYS)
        self.asked[id(steps)] = next(steps)
        self.operators.append(steps)

    def go_on(self) -> None:
        """One of those sends one call."""
        if not self.operators:
            return self.begin_advance()
        steps = self.random.choice(self.operators)
        reply = self.run(self.asked[id(steps)][1])
        try:
            self.asked[id(steps)] = steps.send(reply)
        except StopIteration:
            self.operators.remove(steps)

    def kill(self) -> None:
        """One of those is killed between two calls."""
        if self.operators:
            self.operators.remove(self.random.choice(self.operators))

    def learn(self) -> None:
        """A client reads the table."""
        self.clients[self.random.randrange(len(self.clients))] = self.now_table()

    def pull(self) -> None:
        """The consumer of a shard pulls."""
        number = self.random.randrange(SHARDS)
        keys = self.at(number)
        window = Window(3)
        if number not in self.terms:
            if not self.client.hget(keys.meta, "shard_version"):
                return
            call = commands.register(keys, "c", window=window, lease_ms=LEASE_MS)
            self.terms[number] = self.run(call).term
            self.held[number] = []
        jobs = self.run(commands.pull(keys, "c", self.terms[number], window)).jobs
        self.delivered(number, [id_.decode() for id_ in jobs[::2]])

    def settle(self) -> None:
        """A job ends, goes back, or is to be tried again later."""
        number = self.random.choice([n for n, ids in self.held.items() if ids] or [-1])
        if number < 0:
            return
        ids = self.held[number]
        id_ = ids.pop(self.random.randrange(len(ids)))
        said: dict[str, Any] = {"ack": [id_]}
        chance = self.random.random()
        if chance < 0.1:
            said = {"release": [id_]}
        elif chance < 0.35 and self.jobs[id_].retries < RETRIES:
            self.jobs[id_].retries += 1
            delay = self.random.choice([500, 500, 4000])
            said = {"retry": [Retried(id_.encode(), delay, "old", True, b"{}")]}
            self.jobs[id_].aside = not self.grouped
        else:
            assert not self.jobs[id_].ended, f"{id_} ends twice"
            self.jobs[id_].ended = True
        call = commands.settle(self.at(number), "c", self.terms[number], None, **said)
        assert not self.run(call).refused

    def pass_time(self) -> None:
        """Half a second."""
        self.clock += 500
        for number in range(SHARDS):
            if self.client.exists(self.at(number).meta):
                self.client.hset(self.at(number).meta, "clock", self.clock)

    # -- what must hold ----------------------------------------------------------------------------

    def delivered(self, number: int, ids: list[str]) -> None:
        """Jobs came to the consumer of a shard: none before those of its key that came before."""
        self.held.setdefault(number, []).extend(ids)
        for id_ in ids:
            one = self.jobs[id_]
            assert one.shard == number and not one.ended
            for earlier in self.by_key[one.key]:
                if earlier is one:
                    break
                if earlier.shard != number or self.grouped:
                    over = earlier.ended or earlier.aside
                    assert over, f"{id_} of {one.key} overtakes {earlier.id}"
                else:
                    assert earlier.delivered or earlier.aside, f"{id_} overtakes {earlier.id}"
            one.delivered = True

    def step(self) -> None:
        """One step of chance."""
        steps = [self.enqueue] * 7 + [self.go_on] * 6 + [self.pull] * 5 + [self.settle] * 5
        steps += [self.learn, self.kill, self.pass_time, self.change, self.change]
        steps += [self.ask] * 4 + [self.enqueue_unknown] * 3
        self.random.choice(steps)()

    def end(self) -> None:
        """All that is to be done is done: each job has ended, once, and nobody waits."""
        self.operators.clear()
        for _ in range(400):
            self.pass_time()
            self.advance()
            for _ in range(SHARDS):
                self.pull()
            self.settle()
            self.settle()
            if all(one.ended for one in self.jobs.values()):
                break
        left = [one for one in self.jobs.values() if not one.ended]
        assert not left, f"lost, or held up: {left[:3]}"
        table = self.advance()
        assert not table.moving
        for _ in range(4):
            self.pass_time()
            table = self.advance()
        assert not table.past, "nothing is left from before, and it is remembered"
        assert {shard.state for shard in table.shards.values()} <= {"open", "closed", "gone"}
        for shard in table.shards.values():
            meta = self.client.hgetall(self.at(shard.number).meta)
            assert not {b"fences", b"fence", b"paused"} & meta.keys(), (shard, meta)
        try:
            self.run(commands.enqueue(KEYS, [Put("x", b"[]")]))
        except QueueSharded:
            return
        raise AssertionError("the name itself took a job")


KINDS = (Kind.of(["shard"]), Kind.of(["shard", "groups"]))
"""Of the shards of a search: without order, and with order by key."""

C = TypeVar("C", bound=Course)


def courses(
    kind_of: type[C], client: redis.Redis, lua: Scripts, *, seeds: int, steps: int
) -> Iterator[C]:
    """Courses of both kinds, each played to its end."""
    for seed in range(seeds):
        for kind in KINDS:
            course = kind_of(client, lua, seed, kind)
            for _ in range(steps):
                course.step()
            course.end()
            yield course
