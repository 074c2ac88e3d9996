"""A job that was cancelled while a consumer held it is cancelled again, with any force: all of
it is walked through and compared with a model; faults of that, planted, are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
import redis

from rqueue.protocol import commands
from rqueue.protocol.commands import Put, ScriptCall, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN
from rqueue.protocol.scripts import Scripts
from tests.property.sources import sound
from tests.support.run_script import run

KEYS = QueueKeys("stops", "property")
HOUR_MS = 3_600_000
HOLDER, OTHER = "c", "d"
CALLS: dict[str, ScriptCall[Any]] = {
    "cancel": commands.cancel(KEYS, "A"),
    "stop": commands.cancel(KEYS, "A", force="stop"),
    "kill": commands.cancel(KEYS, "A", force="kill"),
    "delivered": commands.note_stop(KEYS, HOLDER, "delivered", ["A"]),
    "ended": commands.note_stop(KEYS, HOLDER, "ended", ["A"]),
    "another says ended": commands.note_stop(KEYS, OTHER, "ended", ["A"]),
}
NOTICES = {"cancel": b"XA", "stop": b"SA", "kill": b"KA"}
CANCELS = tuple(NOTICES)
STEPS = (*CALLS, "reads", "is older", "leaves")
"""What may happen: a cancel, without force or with; the holder, or another consumer, says how far
that is; the holder reads its notices; the records' generations turn over; the holder leaves."""

OF_THE_HOLDER = ("delivered", "ended", "reads", "leaves")


@dataclass(frozen=True)
class Stop:
    """What must be so: how far the stopping of the job is, and what its holder has not read."""

    stage: str = ""
    unread: tuple[bytes, ...] = ()
    cancelled: bool = False
    here: bool = True
    old: bool = False
    kill: bool = False

    def after(self, step: str) -> Stop:
        if step in CANCELS:
            return self._asked(step) if self.here else self
        if step in ("delivered", "ended"):
            known = self.stage and self.stage != "ended"
            return replace(self, stage=step) if known else self
        if step == "reads":
            return replace(self, unread=())
        if step == "is older":
            return replace(self, old=True)
        if step == "leaves":
            return replace(self, unread=(), here=False)
        return self

    def _asked(self, step: str) -> Stop:
        notice = NOTICES[step]
        if not self.cancelled:
            stage = "" if step == "cancel" else "requested"
            return replace(self, cancelled=True, stage=stage, unread=(notice,), kill=step == "kill")
        heard = notice in self.unread or self.stage == "ended"
        if step == "cancel" or heard or (step == "stop" and self.stage):
            return self
        return replace(
            self, stage=self.stage or "requested", unread=(*self.unread, notice),
            kill=self.kill or step == "kill",
        )  # fmt: skip

    @property
    def said(self) -> tuple[str, bool, bool]:
        """What Redis answers: how far it was, though its holder may be gone; who must be killed."""
        return (self.stage, not self.here, self.kill) if self.stage else ("", False, False)


def _walks() -> Iterator[tuple[str, ...]]:
    """The shortest way to everything that can be so, and each step from there."""
    ways: dict[Stop, tuple[str, ...]] = {Stop().after(first): (first,) for first in CANCELS}
    waiting = list(ways)
    for state in waiting:
        for step in STEPS:
            if (state.old and step == "is older") or (not state.here and step in OF_THE_HOLDER):
                continue
            walk = (*ways[state], step)
            yield walk
            after = state.after(step)
            if after not in ways:
                ways[after] = walk
                waiting.append(after)


WALKS = tuple(_walks())


class Play:
    """One job, and the consumer that holds it."""

    def __init__(self, client: redis.Redis, lua: Scripts) -> None:
        self.client = client
        self.lua = lua
        client.delete(*(client.keys(KEYS.base + "*") or ["none"]))
        for name in (HOLDER, OTHER):
            call = commands.register(KEYS, name, window=Window(0), lease_ms=HOUR_MS)
            term = self.run(call).term
            if name == HOLDER:
                self.term = term
        self.run(commands.enqueue(KEYS, [Put("A", b'["t"]')]))
        self.run(commands.pull(KEYS, HOLDER, self.term, Window(10)))
        client.delete(KEYS.wake(HOLDER))

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, PLAIN)
        return call.read(run(self.client, script, list(call.keys), list(call.args)))

    def step(self, step: str) -> None:
        if step in CALLS:
            self.run(CALLS[step])
        elif step == "reads":
            self.client.delete(KEYS.wake(HOLDER))
        elif step == "is older":
            self.client.rename(KEYS.base + "ended", KEYS.base + "ended:old")
        else:
            self.run(commands.unregister(KEYS, HOLDER, self.term))

    def holds(self, must: Stop) -> bool:
        unread: Any = self.client.lrange(KEYS.wake(HOLDER), 0, -1)
        waits = self.client.exists(KEYS.base + "stop:A")
        stage = self.run(commands.read_stop(KEYS, "A"))
        said = waits == (must.stage == "ended")
        return stage[:3] == must.said and unread == list(must.unread) and said


def wrong(client: redis.Redis, lua: Scripts) -> tuple[str, ...]:
    """The first walk after which it is not as it must be."""
    for walk in WALKS:
        play, must = Play(client, lua), Stop()
        for step in walk:
            play.step(step)
            must = must.after(step)
        if not play.holds(must):
            return walk
    return ()


CANCEL, RECORD, NOTE, READ = (
    "cancel.lua",
    "include/stop/record.lua",
    "note_stop.lua",
    "read_stop.lua",
)

FAULTS = {
    "who held what was cancelled without force is not known": (
        CANCEL,
        "elseif holder and letter == 'C' then",
        "elseif false then",
    ),
    "only the first cancel says anything": (
        CANCEL,
        "or said.stop and notice == 'S' then",
        "or said.stop then",
    ),
    "who is to stop is notified again": (CANCEL, "or said.stop and notice == 'S' then", "then"),
    "who said that it ended is notified": (CANCEL, "or said.stop == 'ended' or", "or"),
    "who is gone is notified": (
        CANCEL,
        "holder, 'term') == 0 then return fault end",
        "holder, 'term') == 9 then return end",
    ),
    "who does not listen finds many": (
        CANCEL,
        "if not redis.call('LPOS', base .. wake, notice .. id) then",
        "if true then",
    ),
    "nobody can see that it is to stop": (CANCEL, "if not said.stop or", "if false or"),
    "what was interrupted is no more so": (
        CANCEL,
        "stop = said.stop or 'requested'",
        "stop = 'requested'",
    ),
    "nobody can see that it is to be killed": (CANCEL, "or notice == 'K' and not said.kill", ""),
    "who says how far it is takes a kill back": (NOTE, ", kill = said.kill", ""),
    "a kill is said as a stop": (
        CANCEL,
        "RPUSH', base .. wake, notice .. id)",
        "RPUSH', base .. wake, 'S' .. id)",
    ),
    "an old record is not looked for": (RECORD, "{ 'ended', 'ended:old' }", "{ 'ended' }"),
    "another consumer says that it ended": (NOTE, "said.by == consumer and", ""),
    "what ended is interrupted": (NOTE, "said.stop ~= 'ended' and", ""),
    "who waits does not hear of the end": (NOTE, "redis.call('RPUSH', list, stage)", ""),
    "who is gone is waited for": (READ, "1 - here", "0"),
    "who is only frozen has ended": (
        READ,
        "tostring(said.stop)",
        "here == 0 and 'ended' or tostring(said.stop)",
    ),
}


def test_more_force_is_passed_on_once(client: redis.Redis) -> None:
    assert len(WALKS) > 200
    assert wrong(client, sound()) == ()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_is_found(fault: str, client: redis.Redis) -> None:
    assert wrong(client, sound().changed(FAULTS[fault])) != ()
