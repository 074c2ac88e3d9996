"""The records of a soak, put together: jobs with all that happened to each, processes, effects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.soak.records import Record

Key = tuple[str, int]
"""A job: who published it, and its number there."""

ENDS = ("end", "fail", "dies")

ALL = "all"
"""The scope of what keeps everybody from Redis."""


@dataclass
class Begin:
    """One time that a job began. `how`: "end", "fail" (as it was asked to), "dies" (took its
    process along), "" where its end is not known; `ended`: when. `facts`: the whole record."""

    at: float
    pid: int
    slot: int
    ended: float = 0.0
    how: str = ""
    facts: Record = field(default_factory=dict)


@dataclass
class Job:
    """One job, as those tell who sent and ran it, and its rows in the history. `facts`: what was
    noted when it was sent; `answered`: when it was accepted."""

    key: Key
    id: str = ""
    queue: str = ""
    scenario: str = ""
    facts: Record = field(default_factory=dict)
    answered: float = 0.0
    how: str = ""
    delay: int = 0
    sent: bool = False
    accepted: bool = False
    unknown: bool = False
    refused: bool = False
    begins: list[Begin] = field(default_factory=list)
    rows: list[Record] = field(default_factory=list)
    dead: Record | None = None
    cancelling: bool = False
    known: bool = False
    """Whether the queue has a record of its end."""

    @property
    def done(self) -> bool:
        """Whether it ran to its end."""
        return any(begin.how == "end" for begin in self.begins)

    @property
    def at(self) -> float:
        """When it was sent."""
        return float(self.facts.get("at", 0.0))

    @property
    def begun(self) -> float:
        """When it first began; 0: never."""
        return self.begins[0].at if self.begins else 0.0

    @property
    def ended(self) -> float:
        """When it first ran to its end; 0: never."""
        return min((begin.ended for begin in self.begins if begin.how == "end"), default=0.0)

    @property
    def finals(self) -> list[Record]:
        """Its rows that say that it ended."""
        return [row for row in self.rows if row["outcome"] in FINAL]


FINAL = ("ack", "dead", "cancelled", "purged", "expired", "displaced")
"""Outcomes in the history after which nothing more is to come."""


@dataclass
class Evidence:
    """All of it. Times are those of the machine's monotonic clock."""

    jobs: dict[Key, Job] = field(default_factory=dict)
    effects: list[Record] = field(default_factory=list)
    records: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    """All records, by what they say."""
    parents: dict[int, int] = field(default_factory=dict)
    programs: dict[int, str] = field(default_factory=dict)
    """The program that a process, or its parent, is."""

    def program(self, pid: int) -> str:
        """The program that a process belongs to."""
        return self.programs.get(pid) or self.programs.get(self.parents.get(pid, 0), "")


def gather(records: Iterable[Record]) -> Evidence:
    """Put records together."""
    evidence = Evidence()
    ordered = sorted(records, key=lambda record: record["at"])
    running: dict[tuple[int, int, Key], Begin] = {}
    by_id: dict[str, Job] = {}
    for record in ordered:
        what = record["what"]
        evidence.records[what].append(record)
        if what == "process":
            evidence.parents[record["pid"]] = record["parent"]
        elif what == "started":
            evidence.programs[record["process"]] = record["program"]
        elif what == "effect":
            evidence.effects.append(record)
        elif "number" in record and "publisher" in record:
            key = (record["publisher"], record["number"])
            job = evidence.jobs.setdefault(key, Job(key))
            job.id = job.id or record["id"]
            job.queue = job.queue or record.get("queue", "")
            if job.id:  # that of a call in a workflow is known when it begins
                by_id[job.id] = job
            _note(job, record, running)
    for what in ("row", "dead", "cancelling", "ended job"):
        for record in evidence.records[what]:
            if (found := by_id.get(record["id"])) is not None:
                _note_end(found, what, record)
    _add_settled(evidence, by_id)
    return evidence


def _note_end(job: Job, what: str, record: Record) -> None:
    if what == "row":
        job.rows.append(record)
    elif what == "dead":
        job.dead = record
    elif what == "cancelling":
        job.cancelling = True
    else:
        job.known = True


def _add_settled(evidence: Evidence, by_id: dict[str, Job]) -> None:
    """The outcomes of consumers of one's own that were confirmed, where they write no history."""
    for record in evidence.records["settled"]:
        job = by_id.get(record["id"])
        if job is not None and not any("written" in row for row in job.finals):
            job.rows.append({**record, "outcome": "ack"})


def _note(job: Job, record: Record, running: dict[tuple[int, int, Key], Begin]) -> None:
    what = record["what"]
    if what == "sent":
        job.sent = True
        job.facts = record
        job.scenario = record.get("scenario", "")
        job.delay = record.get("delay", 0)
        job.how = record.get("how", "")
    elif what in ("accepted", "unknown", "refused"):
        setattr(job, what, True)
        if what == "accepted":
            job.answered = record["at"]
    elif what == "begin":
        if not job.begins and not job.sent:
            job.scenario = record.get("made", "")
        begin = Begin(record["at"], record["pid"], record["slot"], facts=record)
        job.begins.append(begin)
        running[begin.pid, begin.slot, job.key] = begin
    elif what in ENDS:
        found = running.pop((record["pid"], record["slot"], job.key), None)
        if found is not None:
            found.ended, found.how = record["at"], what
