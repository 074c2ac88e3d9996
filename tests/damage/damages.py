"""What strangers, bugs and bit rot do to a queue's keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import redis
from hypothesis import strategies as st

from tests.damage.world import KEYS, World

VALUES = [
    b"",
    b"5",
    b";",
    b"abc,def;[",
    b'abc,def;["x",[],{"a":"b"}]',
    b"1,2",
    b"1,2,3;[]",
    b"1,2,4,0,0,0,x;[]",
    b"1,2,4,0,0,0,0,0,0,0,0,0;[]",
    b"9" * 400 + b",1;[]",
    b"1," + b"9" * 400 + b";[]",
    b"1,2,99999999999999999999,0,0,0,0;[]",
    b"-1,2;[]",
    b"1e5,2;[]",
    b"nan,inf;[]",
    b"!",
    b"!x,y",
    b"!7",
    b"\xff\x00\n;\xfe",
    b"1,2;",
    b"7,8;[[",
]
"""Of jobs: no header, half of one, absurd numbers, marks that are none, envelopes that are none."""

WORDS = [b"", b"x", b"-1", b"1.5", b"nan", b"1e400", b"9" * 30, b"\n", b"0", b"\xff"]
"""Where a number, a name or JSON belongs."""

SCORES = ["inf", "-inf", "1e300", "1.5", "-7", "0"]

HASHES = [
    *("meta", "consumer:c2", "consumer:c3", "causes", "errors", "ended", "ended:old", "parked"),
    *("returns_to", "awaited", "byte_waiters", "write:run", "latest", "unique"),
    *("permits", "claims", "limits", "declared"),
    *("strands", "lined", "turns", "weights"),
]
LISTS = ["ready:4", "ready:9", "due:6", "held:c2", "held:c3", "wake:c2", "wake:c3", "wake:b1"]
ZSETS = ["scheduled", "heads", "periods", "dead", "consumers", "interested", "notified", "blocked"]
ZSETS += ["rates", "tokens_due"]
SETS = ["not_interested", "browsers", "reopened"]
OTHERS = ["jobs", "history", "written:run:1:0"]
ALL = [*HASHES, *LISTS, *ZSETS, *SETS, *OTHERS, "ready:0", "due:4", "result:r3", "consumer:c4"]
META = [
    *("v", "seq", "tailed", "promoted", "levels", "paused", "marked", "turn", "term", "timer"),
    *("ranked", "browsing", "ended_since", "history_rows", "history_trimmed", "history_gone"),
    *("acked", "retried", "rejected", "released", "cancelled", "purged", "requeued", "priorities"),
    *("max_deliveries", "keep_ms", "history_rows_max", "clock", "oom", "window"),
]
ROW = ["term", "state", "priority", "mode", "jobs", "bytes", "held_bytes", "slots", "worker"]
IDS = [
    *("r0", "r1", "r3", "a0", "a1", "a3", "big", "huge", "d0", "d1", "s0", "s1", "p0", "t0"),
    *("x0", "x1", "e0", "m0", "k0", "k1", "w0", "v0", "v3", "v4", "l0", "s2"),
    *("q0", "q1", "q2", "q3", "q5", "h0", "h2"),
]
NAMES = ["c2", "c3", "b1", "ghost"]
KINDS = ["string", "list", "hash", "zset", "set", "stream"]


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong, and the ids and keys of which nothing can be expected any more."""

    says: str
    do: Callable[[redis.Redis], object]
    ids: frozenset[str] = field(default=frozenset())
    keys: frozenset[str] = field(default=frozenset())
    mistakes: bool = False
    """Whether a key is of another type then."""


def value(id: str, garbage: bytes) -> Damage:
    return Damage(
        f"the value of {id} is {garbage[:40]!r}",
        lambda client: client.hset(KEYS.jobs, id, garbage),
        frozenset({id}),
    )


def lost(id: str) -> Damage:
    return Damage(f"{id} is lost", lambda client: client.hdel(KEYS.jobs, id), frozenset({id}))


def pushed(key: str, element: str) -> Damage:
    return Damage(
        f"{element!r} is in {key}",
        lambda client: client.rpush(KEYS.base + key, element),
        frozenset({element}),
    )


def scored(key: str, member: str, score: str) -> Damage:
    return Damage(
        f"{member!r} is in {key} at {score}",
        lambda client: client.execute_command("ZADD", KEYS.base + key, score, member),
        frozenset({member[16:], member}),
    )


def spoilt(key: str, name: str, garbage: bytes) -> Damage:
    return Damage(
        f"{key} says {name} = {garbage!r}",
        lambda client: client.hset(KEYS.base + key, name, garbage),
    )


def deleted(key: str) -> Damage:
    return Damage(
        f"{key} is gone", lambda client: client.delete(KEYS.base + key), keys=frozenset({key})
    )


def mistaken(key: str, kind: str) -> Damage:
    """A key of another type; where it happens to be the right one, it holds nonsense."""

    def do(client: redis.Redis) -> None:
        name = KEYS.base + key
        client.delete(name)
        if kind == "string":
            client.set(name, "7")
        elif kind == "list":
            client.rpush(name, "7")
        elif kind == "hash":
            client.hset(name, "7", "7")
        elif kind == "zset":
            client.zadd(name, {"7": 7})
        elif kind == "set":
            client.sadd(name, "7")
        else:
            client.xadd(name, {"7": "7"})

    return Damage(f"{key} is a {kind}", do, frozenset({"7"}), frozenset({key}), mistakes=True)


def row(fields: dict[str, str]) -> Damage:
    return Damage(
        f"history has an entry {fields}",
        lambda client: client.xadd(KEYS.history, dict(fields)),
    )


words = st.sampled_from(WORDS)
ids = st.sampled_from(IDS)
others = st.sampled_from([*IDS, "", "ghost"])
damages = st.one_of(
    st.builds(value, ids, st.sampled_from(VALUES)),
    st.builds(value, ids, st.sampled_from(VALUES)),
    st.builds(value, ids, st.sampled_from(VALUES)),
    st.builds(value, ids, st.sampled_from(VALUES)),
    st.builds(lost, ids),
    st.builds(pushed, st.sampled_from(LISTS), others),
    st.builds(
        scored,
        st.sampled_from(ZSETS),
        st.one_of(
            others,
            st.sampled_from(["9500000000000001r0", "xx", "95x", *NAMES, "99" + "9" * 14 + "s0"]),
        ),
        st.sampled_from(SCORES),
    ),
    st.builds(spoilt, st.just("meta"), st.sampled_from(META), words),
    st.builds(spoilt, st.sampled_from(["consumer:c2", "consumer:c3"]), st.sampled_from(ROW), words),
    st.builds(spoilt, st.sampled_from(HASHES[3:]), others, words),
    st.builds(deleted, st.sampled_from(ALL)),
    st.builds(mistaken, st.sampled_from(ALL), st.sampled_from(KINDS)),
    st.builds(row, st.sampled_from([{"n": "x"}, {"n": "-5"}, {"b": "?"}, {"x": "y"}])),
)


def apply(world: World, some: list[Damage]) -> None:
    """Do them all; what meets a key that another one has spoilt is left out."""
    for one in some:
        try:
            one.do(world.client)
        except redis.ResponseError as error:
            if "WRONGTYPE" not in str(error) and "not a valid" not in str(error):
                raise
