"""The terms of a job: what the queue itself must know of it, as text that jobs side by side share.

`<priority>,<when>,<max deliveries>[:<max crashes>][~<ttl ms>][|g<group>][|k<key>][|h] [|s<sort
key>][|u<unique>][|w<parents>][|p][|t<dependant>...][|l<limit>:<most>...][|f][|e<share>],`, where
`when` is nothing (now), `+<ms>` (from now, by Redis's clock) or `@<ms>` (since the epoch), group,
key, limits and share are escaped (`rqueue.model.names.group_text`), the sort key is as
`rqueue.model.sort_keys` writes it, unique is a `rqueue.model.unique_key.UniqueKey`, parents and
dependants are `Parents` and `Dependant` of `rqueue.model.parents`. The enqueue script reads it, and
signatures cover it. What stands behind `~` and `|` is a policy's: a queue without it takes it on.
"""

from __future__ import annotations

from typing import NamedTuple

from rqueue.model.job import DEFAULT_LEVEL
from rqueue.model.names import group_of, group_text

__all__ = ["NORMAL_TERMS", "Terms"]


class Terms(NamedTuple):
    """On which terms a job is enqueued.

    priority: as in JMS, 4 is normal (Q-11). delay_ms: from now, by Redis's clock. at_ms: an
    absolute time instead, ms since the epoch. max_deliveries, max_crashes: 0 = the queue's. ttl_ms:
    how long from its enqueue it may be delivered; 0 = as long as the queue says. group, key: "" =
    none. hold: whether it keeps, until it is due, the place that it takes when it is enqueued;
    without a due time that says nothing. sort: a sort key, see `sort_key_text`; "" = none.
    unique: a `UniqueKey` as text; "" = none. waits: `Parents` as text, for which the job waits;
    "" = none. counts: the job that its id is derived from waits for it. limits: of each that it
    names the text, escaped, and how many jobs it allows at a time, "crm=acme:5". front: whether it
    comes before all that waits in its level. dependants: the text of each `Dependant`: jobs that
    wait for it.
    share: whose turn it takes; "" = nobody's.
    """

    priority: int = DEFAULT_LEVEL
    delay_ms: int = 0
    at_ms: int = 0
    max_deliveries: int = 0
    max_crashes: int = 0
    ttl_ms: int = 0
    group: str = ""
    key: str = ""
    hold: bool = False
    sort: str = ""
    unique: str = ""
    waits: str = ""
    counts: bool = False
    limits: tuple[str, ...] = ()
    front: bool = False
    dependants: tuple[str, ...] = ()
    share: str = ""

    @property
    def text(self) -> str:
        """The terms as text."""
        most = f"{self.max_deliveries}"
        if self.max_crashes:
            most += f":{self.max_crashes}"
        if self.ttl_ms:
            most += f"~{self.ttl_ms}"
        if self.group:
            most += f"|g{group_text(self.group)}"
        if self.key:
            most += f"|k{group_text(self.key)}"
        if self.hold and (self.at_ms > 0 or self.delay_ms > 0):
            most += "|h"
        if self.sort:
            most += f"|s{self.sort}"
        if self.unique:
            most += f"|u{self.unique}"
        if self.waits:
            most += f"|w{self.waits}"
        if self.counts:
            most += "|p"
        for one in self.dependants:
            most += f"|t{one}"
        for limit in self.limits:
            most += f"|l{limit}"
        if self.front:
            most += "|f"
        if self.share:
            most += f"|e{group_text(self.share)}"
        if self.at_ms > 0:
            return f"{self.priority},@{self.at_ms},{most},"
        if self.delay_ms > 0:
            return f"{self.priority},+{self.delay_ms},{most},"
        return f"{self.priority},,{most},"

    @classmethod
    def parse(cls, text: str) -> Terms:
        """The terms whose text this is. Raises ValueError."""
        priority, when, most, _ = text.split(",")
        kind, number = when[:1], int(when[1:] or 0)
        due, delay = (number, 0) if kind == "@" else (0, number)
        most, *tags = most.split("|")
        most, _, ttl = most.partition("~")
        deliveries, _, crashes = most.partition(":")
        said = {tag[:1]: group_of(tag[1:]) for tag in tags if tag[:1] not in "hwpft"}
        waits = next((tag[1:] for tag in tags if tag[:1] == "w"), "")
        limits = int(deliveries), int(crashes or 0), int(ttl or 0)
        group, key, sort, unique = (said.get(letter, "") for letter in "gksu")
        named = tuple(tag[1:] for tag in tags if tag[:1] == "l")
        dependants = tuple(tag[1:] for tag in tags if tag[:1] == "t")
        held, counts, front = "h" in tags, "p" in tags, "f" in tags
        return cls(
            *(int(priority), delay, due, *limits, group, key, held, sort, unique, waits, counts),
            limits=named,
            front=front,
            dependants=dependants,
            share=said.get("e", ""),
        )


NORMAL_TERMS = Terms().text
"""Of nearly all jobs."""
