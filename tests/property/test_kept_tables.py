"""The table of shards is lost, or an earlier one put back, while shards come and go; what the
shards keep of it is put back, and all holds as before. Faults, planted, are found."""

from typing import Any

import pytest
import redis

from rqueue.errors import RQueueError, ShardsChanged
from rqueue.inspector.doctor.kept_tables import kept_by_shards, put_back
from rqueue.inspector.parts import Places
from rqueue.model.shard_table import ShardTable
from rqueue.protocol import commands
from rqueue.protocol.commands.shards import of_version, set_shards
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Scripts
from tests.property.planted import Fault, each
from tests.property.sharding import KEYS, KINDS, SHARDS, Course, courses
from tests.property.sources import sound
from tests.support.profiles import examples

SEEDS, STEPS = examples(2, 8), 250
TO_FIND = 8
"""Courses of each kind in which each planted fault is found."""


class LosingCourse(Course):
    """A course in which the table is lost now and then."""

    def __init__(self, client: redis.Redis, lua: Scripts, seed: int, kind: Kind) -> None:
        self.earlier: list[dict[Any, Any]] = []
        self.losses = 0
        super().__init__(client, lua, seed, kind)
        self.places = Places(client, KEYS.namespace, lambda _url: client)

    def step(self) -> None:
        chance = self.random.random()
        if chance < 0.03 or (chance < 0.3 and self.now_table().version > self.known()):
            self.lose()
        super().step()

    def known(self) -> int:
        """The newest version that a shard knows."""
        versions = [
            self.client.hget(self.at(number).meta, "shard_version") for number in range(SHARDS)
        ]
        return max(int(version or 0) for version in versions)

    def lose(self) -> None:
        """The table is gone, with its queue or without, or an earlier one is there. A client may
        have read it before."""
        self.learn()
        known = self.known()
        self.earlier.append(self.client.hgetall(KEYS.shards))
        older = [table for table in self.earlier if int(table[b"version"]) < known]
        self.client.delete(KEYS.shards)
        if older and self.random.random() < 0.5:
            self.client.hset(KEYS.shards, mapping=self.random.choice(older))
        elif self.random.random() < 0.5:
            self.client.delete(KEYS.meta)
        assert put_back(self.places, KEYS), kept_by_shards(self.places, KEYS)
        self.advance()  # who puts it back tells the shards
        self.losses += 1


def search(client: redis.Redis, lua: Scripts, seeds: int) -> None:
    """Courses of both kinds."""
    played = courses(LosingCourse, client, lua, seeds=seeds, steps=STEPS)
    assert sum(course.losses for course in played) > seeds


def test_a_lost_table_is_put_back(client: redis.Redis) -> None:
    search(client, sound(), SEEDS)


FAULTS = [
    Fault(
        "a shard learns of a version without its table",
        "policies/shard/informed.lua",
        "if not fields[1] then return 'lacks' end",
        "if not fields[1] then fields = { 'moving', '' } end",
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    with pytest.raises((AssertionError, RQueueError)):
        search(client, sound().changed(fault.piece), TO_FIND)


def drained(course: Course, number: int) -> ShardTable:
    """The table in which an operator drains a shard, who is killed before any shard knows."""
    table = course.now_table()
    changing = table.shards[number]._replace(state="draining")
    fields = {str(number): changing.text, "moving": f"drain {number}"}
    fields |= {"version": str(table.version + 1), "past": table.past_with([changing])}
    assert course.run(set_shards(KEYS, table.version, fields))
    return course.now_table()


def test_who_has_read_what_was_lost_is_refused(client: redis.Redis) -> None:
    """Of a version that no shard knows yet a client may know: what is put back is another one."""
    course = LosingCourse(client, sound(), 0, KINDS[0])
    read = drained(course, 1)
    course.lose()
    table = course.now_table()
    assert table.version > read.version and not table.moving
    for shard in table.open:
        call = commands.enqueue(course.at(shard.number), [commands.Put("a", b"[]")])
        with pytest.raises(ShardsChanged):
            course.run(of_version(call, read.version))


def test_a_move_goes_on_where_it_was(client: redis.Redis) -> None:
    """What waits goes on to wait; what has moved does not begin anew."""
    course = LosingCourse(client, sound(), 0, KINDS[0])
    call = commands.enqueue(course.at(1), [commands.Put("a", b"[]")])
    course.run(of_version(call, course.table.version))
    drained(course, 1)
    assert course.advance().moving
    client.delete(KEYS.shards)
    assert put_back(course.places, KEYS)
    assert course.advance().moving == "drain 1"
    course.run(commands.cancel(course.at(1), "a"))
    course.pull()
    client.hdel(course.at(1).meta, "fence")
    table = course.advance()
    assert (table.moving, table.shards[1].state) == ("", "closed")
    client.delete(KEYS.shards, KEYS.meta)
    assert put_back(course.places, KEYS)
    assert not course.now_table().moving
    table = course.advance()
    assert (table.moving, table.shards[1].state) == ("", "closed")
    for number in (0, 2):
        assert not client.hmget(course.at(number).meta, "fences", "paused")[0]


def test_tables_that_contradict_are_for_people(client: redis.Redis) -> None:
    course = LosingCourse(client, sound(), 0, KINDS[0])
    client.delete(KEYS.shards)
    client.hset(f"{course.at(1).base}kept_shards", "0", "open 9 ")
    assert not put_back(course.places, KEYS)
    assert "several tables of version 1" in kept_by_shards(course.places, KEYS).problem
    client.delete(f"{course.at(1).base}kept_shards")
    assert not kept_by_shards(course.places, KEYS).problem
    client.hset(course.at(1).meta, "shard_version", 7)
    assert "knows version 7" in kept_by_shards(course.places, KEYS).problem
