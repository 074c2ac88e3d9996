"""The server in memory against a real one: the same commands, at random, are answered alike; and so
are scripts that convert, refuse and fail. Faults that are planted are found."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rqueue.transport.memory import (
    hash_commands,
    list_commands,
    sorted_set_commands,
)
from rqueue.transport.memory.all_commands import COMMANDS
from rqueue.transport.memory.keyspace import Keyspace
from rqueue.transport.memory.sorted_set import SortedSet
from tests.transport.memory.both_servers import BothServers, Command, comparable

EXAMPLES = int(os.environ.get("RQUEUE_FUZZ", "60"))

SMALL = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)

names = st.sampled_from(["a", "b", "c", "10", "9", "\xe9", "B", ""])
keys = st.sampled_from(["hash", "list", "zset", "set", "stream", "text", "none"])
whole = st.sampled_from([0, 1, 2, 3, -1, -2, -5, 7, 100]).map(str)
numbers = st.one_of(
    whole, st.sampled_from(["x", "1.5", "+1", "01", " 1", "9223372036854775807", "-0"])
)
scores = st.sampled_from(
    [
        "0",
        "1",
        "1",
        "2",
        "-3",
        "1.5",
        "0.1",
        "1e3",
        "inf",
        "-inf",
        "1700000000000",
        "x",
        "nan",
        "1e20",
        "12345678901234568",
        "-0",
        "3.0",
    ]
)
bounds = st.one_of(scores, scores.map(lambda text: f"({text}"))
lexical = st.one_of(
    st.sampled_from(["-", "+", "x"]), names.map(lambda n: f"[{n}"), names.map(lambda n: f"({n}")
)
many = st.lists(names, min_size=1, max_size=4)
limits = st.one_of(st.just([]), st.tuples(st.just("LIMIT"), whole, whole).map(list))
with_scores = st.sampled_from([[], ["WITHSCORES"]])


def calls(name: str, *parts: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """A command: its arguments one by one, and lists of them spread out."""

    def flat(values: tuple[Any, ...]) -> list[Any]:
        words = [name]
        for value in values:
            words += value if isinstance(value, list) else [value]
        return words

    return st.tuples(*parts).map(flat)


pairs = st.lists(st.tuples(names, names), min_size=1, max_size=3).map(
    lambda found: [word for pair in found for word in pair]
)
scored = st.lists(st.tuples(scores, names), min_size=1, max_size=4).map(
    lambda found: [word for pair in found for word in pair]
)
options = st.sampled_from([[], ["NX"], ["XX"], ["NX", "XX"]])
some = st.sampled_from([[], ["COUNT", "1"]])
count = st.one_of(st.just([]), numbers.map(lambda n: [n]))

offsets = st.one_of(st.integers(0, 40).map(str), st.sampled_from(["-1", "x", "01", "4294967296"]))
widths = st.sampled_from(["u1", "u1", "u2", "u8", "u13", "u50", "u63"])
looks = st.tuples(widths, offsets).map(lambda one: ["GET", *one])
set_to = st.sampled_from(["0", "1", "5", "8191", "1125899906842623", "-1"])
bits = st.tuples(widths, offsets, set_to).map(lambda one: ["SET", *one])


def joined(parts: list[list[Any]]) -> list[Any]:
    return [word for part in parts for word in part]


ANY: dict[str, list[st.SearchStrategy[Any]]] = {
    "HSET": [pairs],
    "HSETNX": [names, names],
    "HGET": [names],
    "HMGET": [many],
    "HDEL": [many],
    "HEXISTS": [names],
    "HLEN": [],
    "HSTRLEN": [names],
    "HKEYS": [],
    "HVALS": [],
    "HGETALL": [],
    "HINCRBY": [names, numbers],
    "HSCAN": [st.just("0"), st.just(["COUNT", "100"])],
    "HRANDFIELD": [
        whole.filter(lambda n: n[0] != "-"),
        st.sampled_from([[], ["WITHVALUES"], ["withvalues"], ["x"]]),
    ],
    "RPUSH": [many],
    "LPUSH": [many],
    "LLEN": [],
    "LRANGE": [numbers, numbers],
    "LTRIM": [whole, whole],
    "LINDEX": [numbers],
    "LSET": [numbers, names],
    "LINSERT": [st.sampled_from(["BEFORE", "after", "x"]), names, names],
    "LREM": [numbers, names],
    "LPOS": [names, st.sampled_from([[], ["COUNT", "0"], ["COUNT", "1"], ["COUNT", "-1"]])],
    "LPOP": [count],
    "RPOP": [count],
    "SADD": [many],
    "SREM": [many],
    "SCARD": [],
    "SISMEMBER": [names],
    "SMEMBERS": [],
    "SRANDMEMBER": [whole.filter(lambda n: n[0] != "-")],
    "ZADD": [options, scored],
    "ZREM": [many],
    "ZCARD": [],
    "ZSCORE": [names],
    "ZMSCORE": [many],
    "ZRANK": [names],
    "ZRANGE": [numbers, numbers, with_scores],
    "ZREVRANGE": [numbers, numbers, with_scores],
    "ZREMRANGEBYRANK": [whole, whole],
    "ZPOPMIN": [count],
    "ZCOUNT": [bounds, bounds],
    "ZRANGEBYSCORE": [bounds, bounds, with_scores, limits],
    "ZREVRANGEBYSCORE": [bounds, bounds, with_scores, limits],
    "ZSCAN": [st.just("0")],
    "XADD": [st.just("*"), pairs],
    "XLEN": [],
    "XDEL": [st.sampled_from(["0-1", "5", "x", "1-x"])],
    "XRANGE": [st.just("-"), st.sampled_from(["+", "0", "x", "(0"]), some],
    "XREVRANGE": [st.just("+"), st.sampled_from(["-", "0", "(9"]), some],
    "DEL": [],
    "UNLINK": [],
    "EXISTS": [],
    "TYPE": [],
    "PTTL": [],
    "PERSIST": [],
    "PEXPIRE": [st.sampled_from(["0", "-1", "x"])],
    "GET": [],
    "SET": [names],
    "APPEND": [names],
    "STRLEN": [],
    "GETRANGE": [numbers, numbers],
    "SETRANGE": [st.sampled_from(["0", "1", "7", "-1", "x"]), names],
    "GETBIT": [offsets],
    "BITCOUNT": [],
    "BITPOS": [st.sampled_from(["0", "1", "2", "x"])],
    "BITFIELD": [st.lists(bits | looks, max_size=4).map(joined)],
    "BITFIELD_RO": [st.lists(looks, max_size=4).map(joined)],
}  # fmt: skip
"""Arguments behind the key, for each command that takes one."""


@st.composite
def sequences(draw: st.DrawFn) -> list[tuple[list[Any], str]]:
    """Commands with the names of their keys: most of them fit the type, some do not."""
    fitting = {"H": "hash", "L": "list", "R": "list", "S": "set", "Z": "zset", "X": "stream"}
    found = []
    for _ in range(draw(st.integers(4, 25))):
        name = draw(st.sampled_from(sorted(ANY)))
        words = draw(calls(name, *ANY[name]))
        own = fitting.get(name[0], "text")
        if name in ("SET", "SETRANGE", "APPEND", "STRLEN"):
            own = "text"
        key = own if draw(st.integers(0, 5)) else draw(keys)
        found.append((words, key))
    return found


def made(both: BothServers, words: list[Any], key: str) -> Command:
    return (words[0], both.key(key), *words[1:])


@SMALL
@given(steps=sequences())
def test_the_same_commands_have_the_same_replies(
    both: BothServers, steps: list[tuple[list[Any], str]]
) -> None:
    both.begin()
    commands = [made(both, words, key) for words, key in steps]
    difference = both.difference(commands)
    assert not difference, difference


LEX = calls("ZRANGEBYLEX", lexical, lexical, limits) | calls(
    "ZREVRANGEBYLEX", lexical, lexical, limits
)


@SMALL
@given(members=many, wanted=st.lists(LEX, max_size=6))
def test_members_of_one_score_go_by_their_bytes(
    both: BothServers, members: list[str], wanted: list[list[Any]]
) -> None:
    """In others the order by name means nothing, in Redis too."""
    both.begin()
    words = [word for member in members for word in ("0", member)]
    commands = [made(both, ["ZADD", *words], "zset")]
    commands += [made(both, one, "zset") for one in wanted]
    difference = both.difference(commands)
    assert not difference, difference


# -- what takes two keys, or none ------------------------------------------------------------------


def test_keys_are_renamed_joined_and_found(both: BothServers) -> None:
    a, b = both.key("a"), both.key("b")
    difference = both.difference(
        [
            *[("RENAME", a, b), ("ZADD", a, 1, "x", 2, "y"), ("ZUNIONSTORE", b, 1, a)],
            *[("ZRANGE", b, 0, -1, "WITHSCORES"), ("RENAME", a, b), ("RENAME", b, b)],
            *[("EXISTS", a, b, b), ("ZUNIONSTORE", b, 1, a), ("TYPE", b), ("PEXPIRE", b, 10_000)],
            *[("RPUSH", a, "1"), ("PEXPIRE", a, 100_000), ("RENAME", a, b), ("PERSIST", b)],
            *[("PERSIST", b), ("PTTL", b), ("SET", a, "1"), ("ZUNIONSTORE", b, 1, a)],
            *[("KEYS", both.key("*")), ("DEL", a, b, a), ("PING",), ("HSET", a, "x")],
            *[("GET",), ("BLPOP", a, "x"), ("BLPOP", a, "-1"), ("XADD", a, "*", "f")],
        ]
    )
    assert not difference, difference


# -- scripts ---------------------------------------------------------------------------------------

SCRIPTS = {
    "numbers are truncated": "return {1, 2.9, -2.9, 1e15, 3 == 3, false, 'x', {1, {2.5}}, nil, 4}",
    "nothing is nil": "return nil",
    "a status": "return redis.status_reply('FINE')",
    "a status of a command": "return redis.call('SET', KEYS[1], 1)",
    "the type as a table": "return redis.call('TYPE', KEYS[1]).ok",
    "an error that is returned": "return redis.error_reply('KIND x')",
    "an error of a command that is returned": "return redis.pcall('HSET', KEYS[1])",
    "numbers are arguments": """redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], 1, 1.5, 1e20, 9007199254740993, 2^53)
return redis.call('LRANGE', KEYS[1], 0, -1)""",
    "a nil in a reply is false": "return redis.call('HMGET', KEYS[2], 'a')[1] == false and 1 or 2",
    "bits are joined": "return {bit.bor(5, 3), bit.bor(0, 0), bit.bor(128, 255), bit.bor(64, 1)}",
    "sha1": "return redis.sha1hex('rqueue')",
    "json of numbers": "return cjson.encode({1, 1.5, 1e20, -3, 0.1, 2^53})",
    "json of text": r"return cjson.encode('a\"\\/\n\t\0\127\200' .. string.char(1))",
    "json of a hole": "return cjson.encode({1, nil, 3})",
    "json of nothing": "return {cjson.encode({}), cjson.encode({a = cjson.null})}",
    "json of a number as a key": "return cjson.encode({x = {[2.5] = true}})",
    "json that is too sparse": "return select(2, pcall(cjson.encode, {[1000] = 1}))",
    "json of infinity": "return select(2, pcall(cjson.encode, 1/0))",
    "json is read": r"""
local a = cjson.decode('{"a": [1, 2.5, null, true, "\\u00e9\\ud83d\\ude00x"], "b": {}}')
return {a.a[1], tostring(a.a[2]), a.a[3] == cjson.null and 1 or 0, a.a[4], a.a[5], type(a.b)}""",
    "json that is none": """local found = {}
for i, text in ipairs({ '[1,', '', '[1]x', '{a:1}', 'tru', '[01]', '{"a" 1}', '"\\x"' }) do
  found[i] = pcall(cjson.decode, text) and 1 or 0
end
return found""",
    "struct": "return {struct.pack('>I4', 305419896), struct.unpack('>I4', 'abcd')}",
    "a table is no argument": "return redis.pcall('GET', {})",
    "a wrong type": """redis.call('DEL', KEYS[1])
redis.call('SADD', KEYS[1], 'x')
return redis.call('GET', KEYS[1])""",
    "a type error": "local x = nil return x + 1",
    "an error of its own": "error('mine')",
    "a global": "x = 1",
    "no global": "return x",
}


def call_of(both: BothServers, source: str) -> Command:
    return ("EVAL", source, 2, both.key("k"), both.key("never"), "arg")


def _of_script(reply: Any) -> Any:
    """Where a script was, some versions say and others do not."""
    if isinstance(reply, bytes):
        return re.sub(rb"^user_script:[0-9]+: ", b"", reply)
    return comparable(("EVAL",), reply)


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_convert_and_fail_alike(both: BothServers, name: str) -> None:
    command = call_of(both, SCRIPTS[name])
    (real,), (fake,) = both.really([command]), both.in_memory([command])
    assert _of_script(fake) == _of_script(real)


# -- faults that are planted -----------------------------------------------------------------------

Fault = tuple[str, Callable[..., Any], list[list[Any]]]


def _by_name_only(db: Keyspace, key: bytes, *words: bytes) -> int:
    """A sorted set that forgets that members of one score go by their bytes."""
    added = _zadd(db, key, *words)
    found = db.find(key, SortedSet)
    if found is not None:
        found.order.sort(key=lambda pair: pair[0])
        found.order.reverse()
        found.order.sort(key=lambda pair: pair[0])
    return int(added)


_zadd = COMMANDS[b"ZADD"][0]
_hdel = COMMANDS[b"HDEL"][0]


def _keeps_empty(db: Keyspace, key: bytes, *fields: bytes) -> int:
    gone = _hdel(db, key, *fields)
    if gone and db.get(key) is None:
        db.put(key, {})
    return int(gone)


def _any_type(db: Keyspace, key: bytes, *items: bytes) -> int:
    db.values[key] = list(items)
    return len(items)


def _from_the_head(db: Keyspace, key: bytes, most: bytes, item: bytes) -> int:
    return int(list_commands._lrem(db, key, most.lstrip(b"-"), item))


def _lax(db: Keyspace, key: bytes, field: bytes, by: bytes) -> int:
    return int(hash_commands._hincrby(db, key, field, b"%d" % int(float(by))))


def _included(db: Keyspace, key: bytes, least: bytes, most: bytes, *rest: bytes) -> list[bytes]:
    found: list[bytes] = sorted_set_commands._zrangebyscore(
        db, key, least.lstrip(b"("), most, *rest
    )
    return found


FAULTS: dict[str, Fault] = {
    "members of one score in the order of their coming": (
        "ZADD", _by_name_only, [["ZADD", "k", "1", "a", "1", "b"], ["ZRANGE", "k", "0", "-1"]],
    ),
    "a hash that is empty and there": (
        "HDEL", _keeps_empty, [["HSET", "k", "a", "1"], ["HDEL", "k", "a"], ["EXISTS", "k"]],
    ),
    "a push that looks at no type": (
        "RPUSH", _any_type, [["HSET", "k", "a", "1"], ["RPUSH", "k", "x"]],
    ),
    "from the tail is from the head": (
        "LREM", _from_the_head,
        [["RPUSH", "k", "a", "b", "a"], ["LREM", "k", "-1", "a"], ["LRANGE", "k", "0", "-1"]],
    ),
    "a number that is none": ("HINCRBY", _lax, [["HINCRBY", "k", "a", "1.5"]]),
    "a bound that is left out is in": (
        "ZRANGEBYSCORE", _included, [["ZADD", "k", "1", "a"], ["ZRANGEBYSCORE", "k", "(1", "2"]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(
    both: BothServers, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    command, faulty, steps = FAULTS[name]
    played = [made(both, [words[0], *words[2:]], words[1]) for words in steps]
    assert not both.difference(played)
    both.begin()
    played = [made(both, [words[0], *words[2:]], words[1]) for words in steps]
    monkeypatch.setitem(COMMANDS, command.encode(), (faulty, COMMANDS[command.encode()][1]))
    assert both.difference(played)


def test_each_command_of_a_key_is_compared() -> None:
    """What scripts may call is in the search, or takes two keys and has a test of its own."""
    others = {"RENAME", "ZUNIONSTORE", "KEYS", "SCAN", "DBSIZE", "FLUSHDB", "FLUSHALL", "TIME"}
    others |= {"ZRANGEBYLEX", "ZREVRANGEBYLEX"}
    assert {name.decode() for name in COMMANDS} - set(ANY) == others
