"""Findings of a checkup, in words, and what a repair would do about each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from rqueue.protocol.commands import NO_MISCOUNT, Miscount

Severity = Literal["problem", "note"]

INVARIANTS = {
    "types": "every key is of the type that rqueue keeps there",
    "conservation": "every accepted job is in exactly one place, or has ended",
    "order": "due times and positions only grow along a list, and a job waits in its own list",
    "groups": "of a group one job is ready, held or waits to come back, the others stand behind it",
    "limits": "jobs that are ready or held have permits of their limits, and no others; none is"
    " free that a job waits for",
    "shares": "of a share with ready jobs the first one has the turn, the others stand behind it",
    "keys": "of a key one job waits, its latest one; a unique key is that of a job",
    "owner": "only registered consumers hold jobs, each job is held by one",
    "liveness": "where work waits and a consumer waits for it, one is notified",
    "consumers": "a consumer is in exactly one of the four lists, and says so itself",
    "credit": "no consumer holds more than it granted",
    "counters": "the counters of meta agree with the lists",
    "workflows": "who waits for other jobs waits for some that have not ended",
    "room": "what a bounded queue keeps free is kept for producers that wait, and counted",
    "records": "no ended job is alive; dead letters have causes; notes are of jobs that are there",
    "shards": "the shards of a queue know the table in force, and no other",
    "service": "where jobs wait, a worker serves their queue and knows their tasks",
    "server": "the server keeps what it is given, and is one that rqueue works with",
}
"""The invariants, by the name that findings carry."""


@dataclass(frozen=True, slots=True)
class Action:
    """The repair of a finding; see `rqueue.inspector.repairs`."""

    verb: Literal[
        "job",
        "order",
        "consumer",
        "meta",
        "leftovers",
        "look",
        "type",
        "group",
        "outbox",
        "room",
        "unique",
        "owner",
        "parents",
        "shards",
        "table",
    ]
    ids: tuple[str, ...] = ()
    member: bytes = b""
    others: tuple[str, ...] = ()
    which: str = ""
    levels: tuple[int, ...] = ()
    marked: tuple[int, int] | None = None
    highest: int = 0
    place: int = 0
    miscount: Miscount = NO_MISCOUNT


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be (`problem`), or that is worth knowing (`note`).

    `invariant`: one of `INVARIANTS`. `kind`: a word that names this sort of finding. `subject`: the
    job, consumer or list. `says`: what is wrong and what follows from it. `remedy`: what a repair
    would do; "" where only people can do something.
    """

    invariant: str
    kind: str
    queue: str
    subject: str
    says: str
    remedy: str = ""
    severity: Severity = "problem"
    action: Action | None = field(default=None, repr=False)

    @property
    def key(self) -> tuple[str, str]:
        """Equal for two looks that see the same thing."""
        return self.kind, self.subject
