"""Workflows in workflows, drawn at random, and what should become of each of their calls.

Nothing here knows of ids, or of what the queue keeps: each call has those that it waits for, and a
rule of what it does when they have ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue.tasks.workflow import Signature, Workflow, chain, chord, group

POLICIES: tuple[Any, ...] = ("stop", "continue", "wait")
Fate = Literal["done", "late", "dead"]
"""Of a call that runs the first time: it is done; done at its second attempt; dead, and done when
it is requeued."""


@task(name="trees.call", registry=Registry())
def call(*_: Any) -> None:
    """Run by the test itself."""


@dataclass
class Parents:
    """For whom a call waits; whether it gets a list of what they made; what it does where one
    failed. failed: it runs only then."""

    calls: list[Call]
    many: bool
    policy: Literal["stop", "continue", "wait", "failed"]


@dataclass
class Call:
    """One call. state: as the queue should say it; given: what it gets, where it runs."""

    name: str
    fate: Fate
    immutable: bool
    success: Call | None = None
    error: Call | None = None
    parents: Parents | None = None
    state: str = ""
    given: list[Any] = field(default_factory=list)
    first: str = ""
    """The state in which it ended first: those that took that for an end hear of no other."""

    @property
    def value(self) -> list[Any]:
        """What it returns."""
        return [self.name, self.given]

    def signature(self) -> Signature[Any]:
        made = call.si(self.name) if self.immutable else call.s(self.name)
        if self.success is not None:
            made = made.on_success(self.success.signature())
        return made if self.error is None else made.on_error(self.error.signature())


@dataclass
class Node:
    """A workflow: a call, or a combination of `parts`; of a chord the last part is the callback."""

    kind: Literal["call", "chain", "group", "chord"]
    parts: list[Node] = field(default_factory=list)
    call: Call | None = None
    policy: Any = "stop"

    @property
    def many(self) -> bool:
        """Whether it makes a list."""
        return self.kind == "group" or (self.kind == "chain" and self.parts[-1].many)

    def workflow(self) -> Workflow[Any]:
        """As users write it."""
        if self.call is not None:
            return self.call.signature()
        made: list[Any] = [part.workflow() for part in self.parts]
        if self.kind == "chain":
            return chain(*made, on_failure=self.policy)
        return (
            group(made)
            if self.kind == "group"
            else chord(made[:-1], made[-1], on_failure=self.policy)
        )

    def wired(self, before: Parents | None) -> list[Call]:
        """Its last calls; each of its calls knows for whom it waits."""
        if self.call is not None:
            self.call.parents = before
            return [self.call]
        if self.kind == "chain":
            ends: list[Call] = []
            for part in self.parts:
                ends = part.wired(before)
                before = Parents(ends, part.many, self.policy)
            return ends
        members = self.parts if self.kind == "group" else self.parts[:-1]
        ends = [end for member in members for end in member.wired(before)]
        if self.kind == "group":
            return ends
        return self.parts[-1].wired(Parents(ends, True, self.policy))

    def calls(self) -> list[Call]:
        """All of its calls, those that others wait for first, with their callbacks."""
        if self.call is None:
            return [one for part in self.parts for one in part.calls()]
        found = [self.call]
        if self.call.success is not None:
            self.call.success.parents = Parents([self.call], False, "stop")
            found.append(self.call.success)
        if self.call.error is not None:
            self.call.error.parents = Parents([self.call], False, "failed")
            found.append(self.call.error)
        return found


class Drawing:
    """Draws trees."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._count = 0

    def tree(self, depth: int, *, alone: bool = False) -> Node:
        """A workflow of at most this depth. alone: it makes one result, as members have to."""
        kinds = ["call", "chain", "chord"] if alone else ["call", "chain", "group", "chord"]
        kind: Any = self._random.choice(kinds) if depth else "call"
        if kind == "call":
            return Node("call", call=self.call(callbacks=True))
        count = self._random.choice([1, 2, 2, 3])
        policy = self._random.choice(POLICIES)
        if kind == "chain":
            parts = [self.tree(depth - 1) for _ in range(count)]
            return Node("chain", [*parts, self.tree(depth - 1, alone=alone)], policy=policy)
        parts = [self.tree(depth - 1, alone=True) for _ in range(count)]
        if kind == "group":
            return Node("group", parts)
        callback = Node("call", call=self.call(callbacks=True))
        return Node("chord", [*parts, callback], policy=policy)

    def call(self, *, callbacks: bool) -> Call:
        self._count += 1
        draw = self._random
        made = Call(
            f"n{self._count}",
            draw.choice(["done", "done", "done", "done", "late", "dead"]),
            draw.random() < 0.2,
        )
        if callbacks and draw.random() < 0.15:
            made.success, made.error = self.callback(), self.callback()
        return made

    def callback(self) -> Call:
        made = self.call(callbacks=False)
        made.fate = "done"
        return made


def expect_first(calls: list[Call]) -> None:
    """What should have become of each where nothing was requeued yet."""
    for one in calls:
        _begin(one)
        if one.state == "live":
            one.state = "dead" if one.fate == "dead" else "done"
        one.first = one.state


def expect_requeued(calls: list[Call]) -> None:
    """What should have become of each once all dead ones are requeued and done."""
    for one in calls:
        if one.state == "dead":
            one.state = "done"
        elif one.state == "deferred":
            _begin(one)
            if one.state == "live":
                one.state = "done"
            one.first = one.state


def _begin(one: Call) -> None:
    parents = one.parents
    one.state = "live"
    if parents is None:
        return
    # who runs for a failure hears of no other end; in the list of who still waits for others, what
    # was requeued and is done takes the place of its failure
    counted = parents.policy == "failed"
    states = [each.first if counted else each.state for each in parents.calls]
    ends = {"dead", "cancelled"} if parents.policy == "stop" else {"cancelled"}
    if parents.policy == "failed":
        ends = {"done"}
    waits = {"deferred", "dead"} if parents.policy == "wait" else {"deferred"}
    if parents.policy != "continue" and ends & {*states}:
        one.state = "cancelled"
    elif waits & {*states}:
        one.state = "deferred"
    elif not one.immutable:
        left: list[Any] = [
            each.value if state == "done" else ["failed", state]
            for each, state in zip(parents.calls, states, strict=True)
        ]
        one.given = [left] if parents.many else left
