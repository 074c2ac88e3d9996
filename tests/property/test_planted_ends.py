"""How queues end, and where their dead letters go, in courses that are played; and faults of that,
planted, are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import redis
from redis.exceptions import ResponseError

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, ScriptCall, Window
from rqueue.protocol.commands.consumers import Mode
from rqueue.protocol.commands.outgoing import outgoing_done, outgoing_take
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.protocol.scripts import Scripts
from tests.property.sources import sound
from tests.support.run_script import run

KEYS = QueueKeys("ends", "property")
HOUR_MS = 3_600_000


@dataclass
class Play:
    """One queue, and what is seen in a course of steps."""

    client: redis.Redis
    lua: Scripts
    kind: Kind = PLAIN
    terms: dict[str, str] = field(default_factory=dict)
    seen: list[object] = field(default_factory=list)

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, self.kind)
        return call.read(run(self.client, script, list(call.keys), list(call.args)))

    def put(self, id: str, body: bytes = b'["t"]') -> None:
        self.run(commands.enqueue(KEYS, [Put(id, body)]))

    def join(self, name: str, mode: Mode = "acquire", slots: int = 1) -> None:
        call = commands.register(
            KEYS, name, mode=mode, slots=slots, window=Window(0), lease_ms=HOUR_MS
        )
        self.terms[name] = self.run(call).term

    def leave(self, name: str) -> None:
        self.run(commands.unregister(KEYS, name, self.terms[name]))

    def take(self, name: str) -> list[str]:
        """All that waits."""
        found = self.run(commands.pull(KEYS, name, self.terms[name], Window(100))).jobs[::2]
        return [id_.decode() for id_ in found]

    def goes(self) -> bool:
        """Whether Redis ends the queue by itself."""
        left: Any = self.client.pttl(KEYS.meta)
        return bool(left > 0)

    def refused(self, call: ScriptCall[Any]) -> str:
        """The first word of the error, "" where there is none."""
        try:
            self.run(call)
        except ResponseError as error:
            return str(error).partition(" ")[0]
        return ""


def by_itself(play: Play) -> list[object]:
    """Q-60, A-37, Q-25."""
    play.kind = Kind.of(["lifetime"])
    options = {"v": play.kind.stamp, "delete_if": 2, "delete_after_ms": HOUR_MS}
    play.run(commands.configure(KEYS, options))
    play.put("A")
    for name, mode, slots in (
        ("got before any came", "acquire", 0),
        ("first", "acquire", 1),
        ("got meanwhile", "acquire", 0),
    ):
        play.join(name, mode, slots)  # type: ignore[arg-type]
        play.leave(name)
        play.seen.append(play.goes())
    play.put("B")
    play.seen.append(play.goes())
    for name, mode, slots in (("looks", "browse", 1), ("gets", "acquire", 0)):
        play.join(name, mode, slots)  # type: ignore[arg-type]
        play.leave(name)
        play.seen.append(play.goes())
    play.join("one")
    play.join("two")
    for name in ("one", "two"):
        play.leave(name)
        play.seen.append(play.goes())
    play.run(commands.configure(KEYS, {"delete_if": 1}))
    play.join("last")
    play.leave("last")
    play.seen.append(play.goes())
    return [False, True, True, False, False, False, False, True, False]


def deleted(play: Play) -> list[object]:
    """Q-61."""
    play.put("A")
    play.join("c")
    for jobs, consumers in ((False, False), (True, False), (True, True)):
        call = commands.delete(KEYS, jobs=jobs, consumers=consumers)
        play.kind = Kind.of(["deleting"])
        play.seen.append(play.run(call).word)
        play.kind = PLAIN if play.seen[-1] != "deleting" else play.kind
    play.seen.append(play.refused(commands.enqueue(KEYS, [Put("B", b'["t"]')])))
    play.seen.append(play.run(commands.delete_end(KEYS)))
    play.leave("c")
    play.run(commands.purge(KEYS))
    play.seen.append(play.run(commands.delete_end(KEYS)))
    play.kind = PLAIN
    play.seen.append(play.refused(commands.enqueue_one(KEYS, "C", b'["t"]', mandatory=True)))
    play.join("later")
    play.seen.append(int(play.terms["later"]) > int(play.terms["c"]))
    play.seen.append(play.refused(commands.enqueue_one(KEYS, "C", b'["t"]', mandatory=True)))
    words = ["jobs", "consumers", "deleting", "DELETING", "left", "deleted", "NOQUEUE"]
    return [*words, True, ""]


def elsewhere(play: Play) -> list[object]:
    """Q-66: dead letters leave in the step in which they die, and are sent once."""
    play.kind = Kind.of(["alternate", "outbox"])
    play.run(commands.configure(KEYS, {"v": play.kind.stamp, "dead_to": "dead"}))
    play.put("A")
    play.put("passed", b'["t",[],{},{"origin":{"via":["dead"]}}]')
    play.put("far", b'["t",[],{},{"origin":{"via":["1","2","3","4","5","6","7","8"]}}]')
    play.join("c")
    causes = [(id_, b'{"kind":"rejected"}') for id_ in play.take("c")]
    play.run(commands.settle(KEYS, "c", play.terms["c"], None, reject=causes))
    play.seen.append(play.client.zrange(KEYS.dead, 0, -1))
    first = play.run(outgoing_take(KEYS))
    again = play.run(outgoing_take(KEYS))
    play.seen += [(first.size, len(first.jobs)), (again.size, len(again.jobs))]
    play.client.hincrby(KEYS.meta, "clock", 5001)
    later = play.run(outgoing_take(KEYS))
    play.seen.append([(job.target, job.id) for job in later.jobs])
    play.seen.append(play.run(outgoing_done(KEYS, [job.member for job in later.jobs])))
    play.seen.append(play.run(outgoing_take(KEYS)).size)
    return [[b"far", b"passed"], (1, 1), (1, 0), [("dead", "A")], 1, 0]


Course = Callable[[Play], list[object]]

FAULTS: dict[str, tuple[Course, str, str, str]] = {
    "a browser is a last consumer": (
        by_itself,
        "policies/lifetime.lua",
        "if mode == 'browse' then return nil end",
        "",
    ),
    "who gets a job is a last consumer": (
        by_itself,
        "policies/lifetime.lua",
        "'slots') == '0' then",
        "'slots') == '?' then",
    ),
    "who gets a job keeps a queue that goes": (
        by_itself,
        "policies/lifetime.lua",
        "had = goes and 'g' or nil",
        "had = nil",
    ),
    "a job that comes keeps nothing": (
        by_itself,
        "policies/lifetime/stays.lua",
        "redis.call('PERSIST', key)",
        "redis.call('EXISTS', key)",
    ),
    "a queue goes under its consumers": (
        by_itself,
        "policies/lifetime/gone.lua",
        "== 'acquire' then return true end",
        "== 'acquire' then return false end",
    ),
    "jobs do not keep a queue that is to go when it is empty": (
        by_itself,
        "policies/lifetime/gone.lua",
        "if row[1] == '1' and",
        "if false and",
    ),
    "jobs are deleted unasked": (
        deleted,
        "delete.lua",
        "left + outgoing > 0 and jobs ~= '1'",
        "left + outgoing > 9 and jobs ~= '1'",
    ),
    "consumers are taken off unasked": (
        deleted,
        "delete.lua",
        "#names > 0 and consumers ~= '1'",
        "#names > 9 and consumers ~= '1'",
    ),
    "what is being deleted takes jobs": (
        deleted,
        "policies/deleting.lua",
        "return redis.error_reply('DELETING the queue is being deleted')",
        "return nil",
    ),
    "keys go with jobs that are left": (
        deleted,
        "delete_end.lua",
        "base .. 'outgoing') == 0 then",
        "base .. 'outgoing') >= 0 then",
    ),
    "terms begin anew": (
        deleted,
        "delete_end.lua",
        "string.format('%d', term), 'deleted'",
        "'0', 'deleted'",
    ),
    "a deleted queue is there": (
        deleted,
        "include/queue/there.lua",
        "if not row[2] then return true end",
        "do return true end",
    ),
    "a queue that has consumers is not there": (
        deleted,
        "include/queue/there.lua",
        "or redis.call('EXISTS', base .. 'consumers') == 1",
        "",
    ),
    "a job comes again where it was": (
        elsewhere,
        "policies/alternate.lua",
        "if name == target then return true end",
        "",
    ),
    "a job goes on for ever": (
        elsewhere,
        "policies/alternate.lua",
        "return #via >= ALTERNATE_MOST",
        "return false",
    ),
    "two send the same": (
        elsewhere,
        "outgoing_take.lua",
        "redis.call('ZADD', base .. 'outgoing', 'XX', unpack(taken))",
        "",
    ),
    "what was not said to be there is lost": (
        elsewhere,
        "outgoing_take.lua",
        "redis.call('ZADD', base .. 'outgoing', 'XX', unpack(taken))",
        "redis.call('ZREM', base .. 'outgoing', unpack(members))",
    ),
    "what is there is sent for ever": (
        elsewhere,
        "outgoing_done.lua",
        "redis.call('ZREM', base .. 'outgoing', ARGV[i])",
        "1",
    ),
}


def _is_right(client: redis.Redis, lua: Scripts, course: Course) -> bool:
    client.delete(*(client.keys(KEYS.base + "*") or ["none"]))
    play = Play(client, lua)
    try:
        must = course(play)
    except ResponseError as error:
        assert "compiling script" not in str(error), "what is planted is no fault but a slip"
        return False
    return play.seen == must


@pytest.mark.parametrize("course", [by_itself, deleted, elsewhere], ids=lambda one: one.__name__)
def test_queues_end_as_they_should(course: Course, client: redis.Redis) -> None:
    assert _is_right(client, sound(), course)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_is_found(fault: str, client: redis.Redis) -> None:
    course, *piece = FAULTS[fault]
    assert not _is_right(client, sound().changed(tuple(piece)), course)
