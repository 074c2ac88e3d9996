"""Everything that Redis holds of one queue, read in one step, to be checked or compared."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha1
from typing import Any

import redis
from redis.exceptions import NoScriptError

from rqueue.errors import Undecodable
from rqueue.model.history_batch import read_entry
from rqueue.model.job import Header, is_mark, parse_value
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.lua_folder import find_lua

_READ = """
local readers = {
  hash = function(key) return redis.pcall('HGETALL', key) end,
  list = function(key) return redis.pcall('LRANGE', key, 0, -1) end,
  zset = function(key) return redis.pcall('ZRANGE', key, 0, -1, 'WITHSCORES') end,
  set = function(key) return redis.pcall('SMEMBERS', key) end,
  stream = function(key) return redis.pcall('XRANGE', key, '-', '+') end,
  string = function(key) return redis.pcall('GET', key) end,
}
local out = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local name = string.sub(key, tonumber(ARGV[2]) + 1)
  local kind = KEY_TYPES[name] or KEY_TYPES_OF_POLICIES[name]
  kind = kind or KEY_TYPES_NAMED[string.match(name, '^(%a+):') or '']
  local body = kind and readers[kind](key)
  -- one of another type, or none of rqueue's own
  if not body or (type(body) == 'table' and body.err) then
    kind = redis.call('TYPE', key).ok
    body = readers[kind](key)
  end
  out[#out + 1] = { key, kind, body }
end
return { redis.call('TIME')[1], redis.call('TIME')[2], out }
"""
"""Behind the table of all keys' types: to ask Redis for each one's takes as long as to read it."""


@cache
def _reading() -> tuple[str, str]:
    """The script that reads all keys, and its name in Redis."""
    types = find_lua() / "include" / "queue" / "key_types.lua"
    source = types.read_text(encoding="utf-8") + _READ
    return source, sha1(source.encode()).hexdigest()


MEMBER_PREFIX = 16
"""Digits before the id in a member of the schedule: two of 99 - level, the others a position."""


def id_in(member: bytes) -> bytes:
    """The id in a member of a sorted set of jobs; of one with a sort key it stands behind that."""
    if member[:1] != b"s":
        return member[MEMBER_PREFIX:]
    return member.partition(b"\0")[2][MEMBER_PREFIX - 2 :]


@dataclass
class Snapshot:
    """All keys of a queue: hash -> dict, list -> list, zset -> list of (member, score) in its
    order, set -> set, stream -> list of (id, fields). Names are without the queue's base."""

    queue: str
    read_ms: int
    """Redis's clock when it was read, not moved by the queue's test offset."""
    keys: dict[str, Any]

    def hash(self, name: str) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = self.keys.get(name, {})
        return found

    def ids(self, name: str) -> list[str]:
        """The elements of a list."""
        return [element.decode() for element in self.keys.get(name, [])]

    def scores(self, name: str) -> dict[str, float]:
        """A sorted set, in its order."""
        return {member.decode(): score for member, score in self.keys.get(name, [])}

    def members(self, name: str) -> set[str]:
        return {member.decode() for member in self.keys.get(name, ())}

    def named(self, prefix: str) -> list[str]:
        """What follows `prefix` in the names of keys."""
        return [key.removeprefix(prefix) for key in self.keys if key.startswith(prefix)]

    @cached_property
    def meta(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.hash("meta").items()}

    @cached_property
    def now(self) -> int:
        """The queue's clock, ms."""
        clock = self.meta.get("clock", "0")
        return int(clock[1:]) if clock.startswith("@") else self.read_ms + int(clock)

    @cached_property
    def jobs(self) -> dict[str, bytes]:
        """id -> stored value; a value that begins with "!" is the mark of a cancelled job."""
        return {id.decode(): value for id, value in self.hash("jobs").items()}

    @cached_property
    def lists(self) -> dict[str, list[str]]:
        """The waiting lists, "due:<level>" and "ready:<level>", as they are."""
        return {key: self.ids(key) for key in self.keys if re.fullmatch(r"(due|ready):\d+", key)}

    @cached_property
    def ready_heads(self) -> list[tuple[str, float, int, int]]:
        """(id, score, level, position) of the ready jobs with groups, in the queue's order."""
        return self._placed("heads")

    @cached_property
    def behind(self) -> dict[str, list[tuple[str, float, int, int]]]:
        """group -> (id, score, level, position) of those behind others of it, by position."""
        return {group: self._placed(f"group:{group}") for group in self.named("group:")}

    @cached_property
    def classes(self) -> dict[str, list[tuple[str, float, int, int]]]:
        """number of a class -> (id, score, level, position) of its ready jobs, in order."""
        return {number: self._placed(f"class:{number}") for number in self.named("class:")}

    @cached_property
    def refused(self) -> dict[str, list[tuple[str, float, int, int]]]:
        """terms of consumers -> (id, score, level, position) of what they refused, in order."""
        return {terms: self._placed(f"refused:{terms}") for terms in self.named("refused:")}

    @cached_property
    def own(self) -> dict[str, list[tuple[str, float, int, int]]]:
        """consumer -> (id, score, level, position) of what is ready for it alone, in order."""
        return {name: self._placed(f"own:{name}") for name in self.named("own:")}

    @cached_property
    def ready_sets(self) -> list[tuple[str, float, int, int]]:
        """The ready jobs of all sorted sets, in the queue's order."""
        sets = [*self.classes.values(), *self.refused.values(), *self.own.values()]
        every = [*self.ready_heads, *(one for some in sets for one in some)]
        if not sets:
            return every
        return sorted(every, key=lambda one: (one[1], self._sort_key(one[0]), one[3]))

    def _sort_key(self, id: str) -> bytes:
        head = self.jobs.get(id, b"").partition(b";")[0]
        return head.partition(b"|s")[2].partition(b"|")[0]

    def header(self, id: str) -> Header | None:
        """The header of a live job; None for a mark, or where there is no readable value."""
        value = self.jobs.get(id)
        return None if value is None else _header(value)

    @cached_property
    def places(self) -> list[tuple[str, str]]:
        """(id, place) of every element that stands for a job."""
        return list(self._each_place())

    def _each_place(self) -> Iterator[tuple[str, str]]:
        for key, ids in self.lists.items():
            for id in ids:
                yield id, key
        yield from ((id, "heads") for id, *_ in self.ready_heads)
        sets = {"group": self.behind, "class": self.classes}
        sets |= {"refused": self.refused, "own": self.own}
        for kind, named in sets.items():
            for name, members in named.items():
                yield from ((id, f"{kind}:{name}") for id, *_ in members)
        for id, *_ in self.scheduled:
            yield id, "scheduled"
        for consumer, ids in self.held.items():
            for id in ids:
                yield id, f"held:{consumer}"
        for id in self.scores("dead"):
            yield id, "dead"
        for id in self.hash("deferred"):
            yield id.decode(), "deferred"

    def _placed(self, key: str) -> list[tuple[str, float, int, int]]:
        found = []
        for member, score in self.keys.get(key, []):
            if member[:1] == b"s":  # by its sort key
                rest = member.partition(b"\0")[2]
                cut, level = MEMBER_PREFIX - 2, 9 - int(score // 10**14)
                found.append((rest[cut:].decode(), score, level, int(rest[:cut])))
                continue
            cut = MEMBER_PREFIX
            place = 99 - int(member[:2]), int(member[2:cut])
            found.append((member[cut:].decode(), score, *place))
        return found

    @cached_property
    def scheduled(self) -> list[tuple[str, int, int, int]]:
        """(id, due ms, level, position), in due order."""
        cut = MEMBER_PREFIX
        return [
            (member[cut:].decode(), int(score), 99 - int(member[:2]), int(member[2:cut]))
            for member, score in self.keys.get("scheduled", [])
        ]

    @cached_property
    def held(self) -> dict[str, list[str]]:
        """consumer -> ids that it holds, in the order it acquired them."""
        return {name: self.ids(f"held:{name}") for name in self.named("held:")}

    @cached_property
    def consumers(self) -> dict[str, dict[str, str]]:
        """consumer -> its fields."""
        return {
            name: {f.decode(): v.decode() for f, v in self.hash(f"consumer:{name}").items()}
            for name in self.named("consumer:")
        }

    @cached_property
    def wakes(self) -> dict[str, list[bytes]]:
        """consumer -> the words in its wake list, which it has not read."""
        return {name: self.keys[f"wake:{name}"] for name in self.named("wake:")}

    @cached_property
    def records(self) -> dict[str, bytes]:
        """id -> record of an ended job, of both generations."""
        both = {**self.hash("ended:old"), **self.hash("ended")}
        return {id.decode(): record for id, record in both.items()}

    @cached_property
    def history(self) -> list[dict[str, Any]]:
        """The rows of all entries, oldest first; refused ones are left out."""
        return [
            row
            for _, fields in self.keys.get("history", [])
            for row in _rows(tuple(fields.items()), self.queue)
        ]


@lru_cache(100_000)  # of fewer than a queue has none would be found again
def _header(value: bytes) -> Header | None:
    """Many checks look at each job after each step, and most of them have not changed."""
    try:
        return None if is_mark(value) else parse_value(value)[0]
    except Undecodable:
        return None


@lru_cache(10_000)
def _rows(fields: tuple[tuple[bytes, bytes], ...], queue: str) -> list[dict[str, Any]]:
    """What was written once is in each snapshot from then on."""
    return read_entry(dict(fields), queue)


def _pairs(flat: list[bytes]) -> list[tuple[bytes, bytes]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def _body(kind: bytes, body: Any) -> Any:
    if kind == b"hash":
        return dict(_pairs(body))
    if kind == b"zset":
        return [(member, float(score)) for member, score in _pairs(body)]
    if kind == b"set":
        return set(body)
    if kind == b"stream":
        return [(id, dict(_pairs(fields))) for id, fields in body]
    return body


def take_snapshot(client: redis.Redis, keys: QueueKeys) -> Snapshot:
    """Read all keys of a queue in one step. For tests: it looks through the whole keyspace."""
    pattern = re.sub(r"([\[\]?*\\])", r"\\\1", keys.base) + "*"
    cut = len(keys.base.encode())
    source, name = _reading()
    arguments = (1, keys.meta, pattern, cut)
    try:
        seconds, micros, found = client.execute_command("EVALSHA", name, *arguments)
    except NoScriptError:
        seconds, micros, found = client.execute_command("EVAL", source, *arguments)
    content = {key[cut:].decode(): _body(kind, body) for key, kind, body in found}
    return Snapshot(keys.queue, int(seconds) * 1000 + int(micros) // 1000, content)
