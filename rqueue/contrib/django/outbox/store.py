"""The statements of the relay, through Django."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.db import DatabaseError, connections, transaction
from django.db.models import Count, F, Q, QuerySet, Value

from rqueue.contrib.django.outbox.clock import NowMs
from rqueue.contrib.django.outbox.models import DoneJob, OutboxBatch, OutboxJob
from rqueue.contrib.outbox.store import (
    LEADER,
    NOTICE,
    Counts,
    Held,
    Taken,
    Written,
    require_database,
)
from rqueue.contrib.outbox.workflows import Fresh, Unsent, sendable

__all__ = ["DjangoStore"]


@dataclass(slots=True)
class DjangoBell:
    """A connection that lasts (`rqueue.contrib.outbox.store.Bell`): that of the relay's thread."""

    connection: Any

    @property
    def listens(self) -> bool:
        """PostgreSQL tells, and psycopg 3 hears it."""
        return hasattr(self.connection.connection, "notifies") and not isinstance(
            self.connection.connection.notifies, list
        )

    def leads(self) -> bool:
        """Where it leads it hears of jobs from now on."""
        if self.connection.vendor != "postgresql":
            return True
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_lock(%s)", [LEADER])
            found = bool(cursor.fetchone()[0])
            if found and self.listens:
                cursor.execute(f"LISTEN {NOTICE}")
        return found

    def wait(self, seconds: float) -> bool:
        """Wait for a notice."""
        driver = self.connection.connection
        return any(True for _ in driver.notifies(timeout=seconds, stop_after=1))


@dataclass(frozen=True, slots=True)
class DjangoStore:
    """An outbox in a database of the project (`rqueue.contrib.outbox.OutboxStore`)."""

    alias: str

    def __post_init__(self) -> None:
        require_database(connections[self.alias].vendor)

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """Django's, and the driver's own: it waits by itself."""
        return DatabaseError, connections[self.alias].Database.Error

    @property
    def missing(self) -> str:
        """What to do where the database has no tables of an outbox."""
        return "run 'manage.py migrate'"

    @contextmanager
    def bell(self) -> Iterator[DjangoBell]:
        """The thread's connection; its session ends with it, and so do lock and LISTEN."""
        connection = connections[self.alias]
        connection.ensure_connection()
        try:
            yield DjangoBell(connection)
        finally:
            connection.close()

    @property
    def _jobs(self) -> QuerySet[OutboxJob]:
        return OutboxJob.objects.using(self.alias)

    # -- batches -----------------------------------------------------------------------------------

    def take(self, limit: int, most: Callable[[str], int], not_of: Collection[str]) -> list[Taken]:
        """Give numbers to the oldest jobs."""
        open_ = self._jobs.filter(problem=None).exclude(queue__in=not_of)
        with transaction.atomic(using=self.alias):
            sent = open_.exclude(batch=None).values_list("queue", flat=True).distinct()
            queues = list(sent.order_by())
            fresh = open_.filter(batch=None).order_by("id")
            ready = self._ready(fresh.values_list("id", "queue", "job_id", "terms"), queues, limit)
            for queue, ids in ready.items():
                self._number(queue, ids[: most(queue)])
            return [self._batch(queue) for queue in (*queues, *ready)]

    def _ready(self, fresh: Any, sent: Sequence[str], limit: int) -> dict[str, list[int]]:
        """Of each queue the places of the oldest jobs that may be sent now. sent: queues of which
        others are under way."""
        kept = {*sent}

        def unsent(ids: Collection[str]) -> list[Unsent]:
            found = self._jobs.filter(job_id__in=ids).values_list("queue", "job_id", "problem")
            return [Unsent(queue, id_, problem is not None) for queue, id_, problem in found]

        while True:
            rows = [Fresh(*row) for row in fresh.exclude(queue__in=kept)[:limit]]
            found = sendable(rows, unsent)
            for id_, problem in found.refused.items():
                self._jobs.filter(id=id_).update(problem=problem)
            if found.ready or not (found.kept or found.refused):
                return found.ready
            kept |= found.kept

    def _number(self, queue: str, ids: list[int]) -> None:
        """Give the next number of a queue to these jobs."""
        batches = OutboxBatch.objects.using(self.alias)
        if not batches.filter(queue=queue).update(number=F("number") + 1):
            # another relay may be here for the first time too
            first = OutboxBatch(queue=queue, source=uuid4().hex, number=0)
            batches.bulk_create([first], ignore_conflicts=True)
            batches.filter(queue=queue).update(number=F("number") + 1)
        number = batches.get(queue=queue).number
        self._jobs.filter(id__in=ids, batch=None).update(batch=number)

    def _batch(self, queue: str) -> Taken:
        batches = OutboxBatch.objects.using(self.alias).annotate(now_ms=NowMs())
        batch = batches.get(queue=queue)
        mine = self._jobs.filter(queue=queue, batch=batch.number).order_by("id")
        rows = mine.values_list("job_id", "terms", "envelope", "enqueued_ms")
        jobs = [Written(id_, terms, bytes(envelope), ms) for id_, terms, envelope, ms in rows]
        return Taken(queue, batch.source, batch.number, jobs, batch.now_ms)

    def delete(self, batch: Taken) -> None:
        """Delete the jobs of a batch."""
        self._jobs.filter(queue=batch.queue, batch=batch.number).delete()

    def release(self, batch: Taken, problem: str | None) -> None:
        """Take the number from the jobs of a batch."""
        mine = self._jobs.filter(queue=batch.queue, batch=batch.number)
        mine.update(batch=None, problem=problem)

    # -- what is done ------------------------------------------------------------------------------

    def done_before(self, age_ms: int, after: tuple[str, str], limit: int) -> list[tuple[str, str]]:
        """Jobs whose effects happened long ago."""
        queue, id_ = after
        old = DoneJob.objects.using(self.alias).filter(finished_ms__lt=NowMs() - Value(age_ms))
        behind = old.filter(Q(queue__gt=queue) | Q(queue=queue, job_id__gt=id_))
        return list(behind.order_by("queue", "job_id").values_list("queue", "job_id")[:limit])

    def forget(self, queue: str, id: str) -> None:
        """Forget the effects of a job."""
        DoneJob.objects.using(self.alias).filter(queue=queue, job_id=id).delete()

    # -- people ------------------------------------------------------------------------------------

    def counts(self) -> Counts:
        """What is in the outbox."""
        waiting = self._jobs.filter(problem=None).order_by("queue").values_list("queue")
        refused = self._jobs.exclude(problem=None).order_by("id")
        rows = refused.values_list("queue", "job_id", "problem")
        counted = list(waiting.annotate(count=Count("id")))
        return Counts(counted, [Held(*row) for row in rows])

    def retry(self, ids: Sequence[str], *, drop: bool) -> int:
        """Let refused jobs be sent again, or delete them."""
        these = self._jobs.exclude(problem=None)
        if ids:
            these = these.filter(job_id__in=ids)
        return int(these.delete()[0] if drop else these.update(problem=None))
