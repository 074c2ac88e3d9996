"""Servers of shards are lost for good while shards come and go, and given up: what they had
is gone, of all else the order of each key holds. Faults, planted, are found."""

from __future__ import annotations

from typing import Any

import pytest
import redis

from rqueue.errors import ConnectionLost, RQueueError
from rqueue.model.shard_table import ShardTable
from rqueue.protocol import sharding
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.shards import set_shards
from rqueue.protocol.keys import queue_of
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import Scripts
from tests.property.sharding import KEYS, SHARDS, Course, courses
from tests.property.sources import sound
from tests.support.profiles import examples

SEEDS, STEPS, TO_FIND = examples(2, 12), 250, 12


class ForgettingCourse(Course):
    """A course in which servers are lost now and then, each with one shard."""

    def __init__(self, client: redis.Redis, lua: Scripts, seed: int, kind: Kind) -> None:
        self.lost: set[int] = set()
        self.forgotten = 0
        super().__init__(client, lua, seed, kind)

    def run(self, call: ScriptCall[Any]) -> Any:
        if queue_of(call.key) in {f"spread~{number}" for number in self.lost}:
            raise ConnectionLost(f"nobody answers for {call.key}")
        return super().run(call)

    def step(self) -> None:
        chance = self.random.random()
        table = self.now_table()
        if chance < 0.01:
            self.lose(table)
        elif chance < 0.1:
            self.forget(table)
        try:
            super().step()
        except ConnectionLost:
            self.learn()  # as clients do

    def lose(self, table: ShardTable) -> None:
        """One of the servers is gone, where others are left."""
        left = [shard for shard in table.served if shard.number not in self.lost]
        if len([shard for shard in left if shard.state == "open"]) < 2:
            return
        leaving = [shard for shard in left if shard.state == "draining"]
        number = self.random.choice(leaving or left).number
        self.lost.add(number)
        self.client.delete(*(self.client.keys(f"{self.at(number).base}*") or ["none"]))
        self.terms.pop(number, None)
        self.held.pop(number, None)
        for one in self.jobs.values():
            one.ended |= one.shard == number

    def forget(self, table: ShardTable) -> None:
        """An operator gives one of them up, and may be killed behind it."""
        gone = [shard for shard in table.served if shard.number in self.lost]
        if gone and table.open != gone:
            number = self.random.choice(gone).number
            assert self.run(set_shards(KEYS, table.version, table.without(number)))
            self.forgotten += 1

    def change(self) -> None:
        """As all do, but for shards whose servers are gone."""
        super().change()
        opened = {f"open {number}" for number in self.lost}
        self.intended = [one for one in self.intended if one[1]["moving"] not in opened]

    def go_on(self) -> None:
        """One of the operators sends a call, and hears that nobody answers."""
        try:
            super().go_on()
        except ConnectionLost as error:
            for steps in [one for one in self.operators if self._asks_the_lost(one)]:
                try:
                    self.asked[id(steps)] = steps.throw(error)
                except (StopIteration, ConnectionLost):
                    self.operators.remove(steps)

    def _asks_the_lost(self, steps: Any) -> bool:
        shard, _ = self.asked[id(steps)]
        return shard is not None and shard.number in self.lost

    def end(self) -> None:
        while {shard.number for shard in self.now_table().served} & self.lost:
            self.forget(self.now_table())
        super().end()
        for number in self.lost:
            assert not self.client.exists(self.at(number).meta), "it was spoken to"

    def pull(self) -> None:
        """Nobody pulls from a server that is gone."""
        try:
            super().pull()
        except ConnectionLost:
            assert self.lost

    def pass_time(self) -> None:
        super().pass_time()
        assert len(self.lost) < SHARDS


def search(client: redis.Redis, lua: Scripts, seeds: int = SEEDS) -> None:
    """Courses of both kinds."""
    played = courses(ForgettingCourse, client, lua, seeds=seeds, steps=STEPS)
    assert sum(course.forgotten for course in played) > seeds


def test_what_is_left_goes_on_in_order(client: redis.Redis) -> None:
    search(client, sound())


def _waited_for(patch: pytest.MonkeyPatch) -> None:
    """What moves from a shard that is given up goes on moving."""
    without = ShardTable.without

    def moving(table: ShardTable, number: int) -> dict[str, str]:
        return {**without(table, number), "moving": table.moving}

    patch.setattr(ShardTable, "without", moving)


def _left_waiting(patch: pytest.MonkeyPatch) -> None:
    """Who waited for a shard that is given up does so for ever."""

    def nothing(*_: object) -> Any:
        yield from ()

    patch.setattr(sharding, "_lift_left_over", nothing)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("plant", [_waited_for, _left_waiting])
def test_a_fault_is_found(plant: Any, client: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, RQueueError)):
        search(client, sound(), TO_FIND)
