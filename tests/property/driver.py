"""The queue and the model beside each other: calls, replies, and what must hold after each step."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import redis
from hypothesis.stateful import RuleBasedStateMachine, invariant
from redis.exceptions import ResponseError

from rqueue.client._sync.queue import Queue
from rqueue.protocol.commands import ScriptCall
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.protocol.scripts import Scripts
from tests.property.agreement import differences
from tests.property.choices import KEEP_MS, KINDS
from tests.property.entities import Consumer
from tests.property.model import Model
from tests.property.sources import START_MS
from tests.support import invariants, transitions
from tests.support.run_script import run
from tests.support.snapshot import take_snapshot

RIPEN_LATER = ("commit", "enqueue", "pull")
"""Scripts of which the steps say themselves when the model makes ready what is due."""


class Driver(RuleBasedStateMachine):
    """Calls scripts, and compares what they answer and leave behind with the model."""

    client: ClassVar[redis.Redis]
    lua: ClassVar[Scripts]
    """With a frozen clock: see `tests.property.sources`."""
    kinds: ClassVar[Sequence[Kind]] = KINDS
    """What its queue may be."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(self.fresh_name(), redis=self.client)
        self.keys = self.queue.keys
        self.model = Model(keep_ms=KEEP_MS)
        self.before = take_snapshot(self.client, self.keys)
        self.names = 0
        self.mine: dict[str, dict[str, int]] = {}
        """The jobs that each consumer knows it holds: id -> bytes."""
        self.watch: dict[str, int] = {}
        """When each consumer means to pull by itself, ms."""
        self.left: list[Consumer] = []
        """Consumers whose term is over."""
        self.arrivals: int | None = 0
        self.everyday = False
        self.kind = PLAIN

    @classmethod
    def fresh_name(cls) -> str:
        """A name for its queue that no other queue has."""
        return f"model-{uuid.uuid4().hex[:12]}"

    def teardown(self) -> None:
        if found := list(self.client.scan_iter(self.keys.base + "*", count=10_000)):
            self.client.delete(*found)

    @property
    def grouped(self) -> bool:
        """Whether its jobs may have groups."""
        return "groups" in self.kind.policies

    @property
    def keyed(self) -> bool:
        """Whether they may have keys."""
        return "last_value" in self.kind.policies

    @property
    def holding(self) -> bool:
        """Whether they may keep their places until they are due."""
        return "hold" in self.kind.policies

    @property
    def fronting(self) -> bool:
        """Whether they may come to the front."""
        return "front" in self.kind.policies

    @property
    def sorted(self) -> bool:
        """Whether they may have sort keys."""
        return "sorted" in self.kind.policies

    @property
    def named(self) -> bool:
        """Whether they may have one of these."""
        return self.grouped or self.keyed or self.sorted

    @property
    def uniqued(self) -> bool:
        """Whether they may be unique."""
        return "unique" in self.kind.policies

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, self.kind.having(call.needs))
        args = call.args_for(self.kind.having(call.needs).policies)
        reply = run(self.client, script, call.keys, args)
        self.model.now = reply[0]
        if "ripen" in script.asks and call.script not in RIPEN_LATER:
            pulls = call.script == "settle" and str(call.args[2]) != "-1"
            self.ripen(self.model.consumers[str(call.args[0])] if pulls else None)
        return reply

    @property
    def ripens(self) -> bool:
        """True if its policies compare jobs: a step makes ready first what is due."""
        policies = map(self.lua.policy, self.kind.policies)
        return any("ripen" in policy.hooks for policy in policies)

    def due(self) -> int:
        """How many jobs were due before this step that it makes ready first."""
        times = self.before.scores("scheduled").values()
        return sum(due <= self.clock() for due in times) if self.ripens else 0

    def ripen(self, by: Consumer | None = None) -> None:
        if self.ripens:
            self.model.ripen(by)

    def answer(self, call: ScriptCall[Any]) -> Any:
        return call.read(self.run(call))

    def clock(self) -> int:
        return START_MS + int(self.before.meta.get("clock", "0"))

    def refuse(self, call: ScriptCall[Any], code: str) -> None:
        """The call is refused with this code, and every key stays as it was; but what was due when
        a producer came is ready."""
        before = take_snapshot(self.client, self.keys)
        ripe = call.script == "enqueue" and self.due()
        try:
            self.run(call)
        except ResponseError as error:
            assert str(error).split()[0] == code, error
        else:
            raise AssertionError(f"{call.script} was not refused")
        after = take_snapshot(self.client, self.keys)
        assert ripe or not (wrong := invariants.unchanged(before, after)), (
            f"{call.script}, refused with {code}, changed something: {wrong}"
        )

    def one(self, pick: int, among: Callable[[Consumer], bool] = lambda c: True) -> Consumer | None:
        found = [c for c in self.model.consumers.values() if among(c)]
        return found[pick % len(found)] if found else None

    def acquirer(self, pick: int) -> Consumer | None:
        return self.one(pick, lambda c: c.mode == "acquire")

    def got(self, c: Consumer, jobs: list[bytes], expected: list[str]) -> None:
        ids = [id.decode() for id in jobs[::2]]
        assert ids == expected, f"{c.name} got {ids}, should have got {expected}"
        values = [self.model.jobs[id].value for id in ids]
        assert jobs[1::2] == values
        self.mine[c.name] |= {id: len(value) for id, value in zip(ids, values, strict=True)}

    def answered(self, c: Consumer, pulled: Any, timer: int) -> None:
        assert pulled.state == c.state, f"{c.name}: the reply says {pulled.state}, it is {c.state}"
        assert pulled.timer_ms == timer, (
            f"{c.name}: the reply's timer {pulled.timer_ms}, not {timer}"
        )
        self.watch.pop(c.name, None)
        if timer >= 0:
            self.watch[c.name] = pulled.now + timer

    def gone(self, c: Consumer) -> None:
        self.left.append(c)
        self.mine.pop(c.name)
        self.watch.pop(c.name, None)

    @invariant()
    def holds(self) -> None:
        before, after = self.before, take_snapshot(self.client, self.keys)
        wrong = [
            *invariants.of_state(after, self.unforgotten()),
            *transitions.credit_kept(before, after),
            *transitions.oldest_taken(before, after),
        ]
        if self.arrivals is not None:
            waiting = sum(len(names.split(b"\n")) for names in before.hash("byte_waiters").values())
            more = self.arrivals + waiting + self.due()
            wrong += transitions.no_herd(before, after, more)
        wrong += differences(self.model, after)
        wrong += self.unwatched()
        assert not wrong, "\n  ".join(["after this step:", *wrong])
        self.before, self.arrivals = after, 0
        self.kind = Kind.parse(after.meta.get("v", PLAIN.stamp))

    def unforgotten(self) -> list[str]:
        """What was accepted and has not ended so long ago that its record is gone."""
        m = self.model
        return [id for id in m.accepted if id in m.jobs or id in m.ended or id in m.older]

    def unwatched(self) -> list[str]:
        """The consumer that holds the fleet's timer really means to look in time."""
        m = self.model
        if m.paused or not m.scheduled or m.in_state("notified") or not m.interested():
            return []
        until = self.watch.get(m.timer)
        if until is not None and until <= max(m.scheduled[0][0], m.now):
            return []
        return [f"next due at {m.scheduled[0][0]}, {m.timer} means to look at {until}"]
