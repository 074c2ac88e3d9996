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

from enum import Enum
from typing import Any, NamedTuple

from rqueue.model.job import DEFAULT_LEVEL
from rqueue.model.names import group_of, group_text

__all__ = ["NORMAL_TERMS", "TAGS", "Tag", "Terms", "TextOf", "aged"]


class TextOf(Enum):
    """What stands behind a tag's letter: a name, escaped; a text as it is, in which nothing needs
    escaping; nothing, the tag says it all; or a text of each of several, a tag for each."""

    NAME = r"[\w%-]{1,800}"
    TEXT = r"[\w%:/@-]+"
    MARK = ""
    EACH = r"[\w%:=@/+*-]+"


class Tag(NamedTuple):
    """Of a field of `Terms` that only a policy knows the meaning of: its letter, and what is
    written behind it."""

    letter: str
    field: str
    what: TextOf


TAGS = (
    Tag("g", "group", TextOf.NAME),
    Tag("k", "key", TextOf.NAME),
    Tag("h", "hold", TextOf.MARK),
    Tag("s", "sort", TextOf.TEXT),
    Tag("u", "unique", TextOf.TEXT),
    Tag("w", "waits", TextOf.TEXT),
    Tag("p", "counts", TextOf.MARK),
    Tag("l", "limits", TextOf.EACH),
    Tag("f", "front", TextOf.MARK),
    Tag("t", "dependants", TextOf.EACH),
    Tag("e", "share", TextOf.NAME),
)
"""The last fields of `Terms`, in their order: what terms say of them, what is read of that, and
what a signed stamp may hold are all made of these."""

_OF_LETTER = {tag.letter: tag for tag in TAGS}


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
        due = self.at_ms > 0 or self.delay_ms > 0
        tagged: tuple[Any, ...] = self[_FIRST:]
        for (letter, field, what), said in zip(TAGS, tagged, strict=True):
            if not said:
                continue
            if what is TextOf.NAME:
                most += f"|{letter}{group_text(said)}"
            elif what is TextOf.TEXT:
                most += f"|{letter}{said}"
            elif what is TextOf.EACH:
                most += "".join([f"|{letter}{one}" for one in said])
            elif due or field != "hold":  # without a due time there is nothing to be held
                most += f"|{letter}"
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
        said: dict[str, Any] = {}
        for written in tags:
            tag, rest = _OF_LETTER.get(written[:1]), written[1:]
            if tag is None:
                continue
            if tag.what is TextOf.EACH:
                said[tag.field] = (*said.get(tag.field, ()), rest)
            elif tag.what is TextOf.MARK:
                said[tag.field] = True
            else:
                said[tag.field] = group_of(rest) if tag.what is TextOf.NAME else rest
        limits = int(deliveries), int(crashes or 0), int(ttl or 0)
        return cls(int(priority), delay, due, *limits, **said)


_FIRST = Terms._fields.index(TAGS[0].field)


def aged(text: str, age_ms: int) -> str:
    """Terms of a job that was on its way for `age_ms` since they were made: `<when>-<age>`. The
    queue counts it as enqueued then, and its delay and its time to live from then. Every way on
    which a job waits before it reaches its queue says so by this, also of an age of 0: if another
    job has its unique key by then, its record says as which job it goes on."""
    priority, when, rest = text.split(",", 2)
    when, _, before = when.partition("-")
    return f"{priority},{when}-{int(before or 0) + max(0, age_ms)},{rest}"


NORMAL_TERMS = Terms().text
"""Of nearly all jobs."""
