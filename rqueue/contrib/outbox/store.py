"""What the relay asks of a database that has an outbox."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from rqueue.errors import ConfigError
from rqueue.protocol.commands.enqueue import Put

__all__ = [
    "LEADER",
    "NOTICE",
    "NOW_MS",
    "Bell",
    "Counts",
    "Held",
    "OutboxStore",
    "Taken",
    "Written",
    "require_database",
]

NOTICE = "rqueue_outbox"
"""The channel on which PostgreSQL says, at a commit, that the outbox has jobs."""

LEADER = 0x7271756575  # "rqueu": of PostgreSQL's advisory locks
"""The lock of the relay that moves the jobs of a database."""

KNOWN = ("postgresql", "sqlite")
NOW_MS = {
    "postgresql": "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)",
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
}
"""The database's clock in SQL, in ms since the epoch."""


class Written(NamedTuple):
    """A job in the outbox: as it was packed, and when, ms by the database's clock."""

    id: str
    terms: str
    envelope: bytes
    enqueued_ms: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A batch that has its number. `source`: who sends it, the same for all of a queue."""

    queue: str
    source: str
    number: int
    jobs: Sequence[Written]
    now_ms: int

    @property
    def aged_puts(self) -> list[tuple[Put, int]]:
        """Its jobs, each with the ms that have passed since it was written."""
        return [
            (
                Put.of_terms(job.id, job.envelope, job.terms),
                max(0, self.now_ms - job.enqueued_ms),
            )
            for job in self.jobs
        ]


class Held(NamedTuple):
    """A job that its queue refuses, and why."""

    queue: str
    id: str
    problem: str


class Counts(NamedTuple):
    """What is in the outbox: jobs to be sent, by queue, and those that are refused."""

    waiting: Sequence[tuple[str, int]]
    refused: Sequence[Held]


class Bell(Protocol):
    """A connection that lasts as long as its relay runs."""

    def leads(self) -> bool:
        """Whether this is the relay that moves the jobs; False: ask again later."""
        ...

    @property
    def listens(self) -> bool:
        """Whether `wait` hears of new jobs."""
        ...

    def wait(self, seconds: float) -> bool:
        """Wait for new jobs, where it listens; True where there may be some."""
        ...


class OutboxStore(Protocol):
    """The statements of a relay. Each method is a transaction of its own."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What is raised where the database cannot be used."""
        ...

    @property
    def missing(self) -> str:
        """What to do where the database has no tables of an outbox."""
        ...

    def bell(self) -> AbstractContextManager[Bell]:
        """Open the connection that lasts."""
        ...

    def take(self, limit: int, most: Callable[[str], int], not_of: Collection[str]) -> list[Taken]:
        """Give numbers to the oldest of at most `limit` jobs, at most one batch of each queue and
        of `most(queue)` jobs. What has a number from before comes first, and its queue gets no
        other."""
        ...

    def delete(self, batch: Taken) -> None:
        """Delete the jobs of a batch."""
        ...

    def release(self, batch: Taken, problem: str | None) -> None:
        """Take the number from the jobs of a batch; with a problem, never send them again."""
        ...

    def done_before(self, age_ms: int, after: tuple[str, str], limit: int) -> list[tuple[str, str]]:
        """Queue and id of jobs whose effects happened longer ago, in order, behind `after`."""
        ...

    def forget(self, queue: str, id: str) -> None:
        """Forget that a job's effects have happened."""
        ...

    def counts(self) -> Counts:
        """What is in the outbox."""
        ...

    def retry(self, ids: Sequence[str], *, drop: bool) -> int:
        """Let refused jobs be sent again (none named: all), or delete them; how many."""
        ...


def require_database(name: str) -> str:
    """The same name of a database, where it is one that the outbox is made for. Raises
    ConfigError."""
    if name not in KNOWN:
        known = " and ".join(KNOWN)
        raise ConfigError("database", f"the outbox knows {known}, and this is {name}")
    return name
