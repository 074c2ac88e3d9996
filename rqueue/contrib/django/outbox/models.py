"""The tables of the outbox. Times are ms since the epoch, by the database's clock."""

from __future__ import annotations

from django.db import models

__all__ = ["DoneJob", "OutboxBatch", "OutboxJob"]


class OutboxJob(models.Model):
    """A job that waits to be sent; `id` is its place. batch: the number under which it is sent.
    problem: why its queue refuses it."""

    id = models.BigAutoField(primary_key=True)
    queue = models.TextField()
    job_id = models.TextField()
    terms = models.TextField()
    envelope = models.BinaryField()
    enqueued_ms = models.BigIntegerField()
    batch = models.BigIntegerField(null=True)
    problem = models.TextField(null=True)

    class Meta:
        """Batches are found by their queue and number."""

        db_table = "rqueue_outbox"
        indexes = (models.Index(fields=["queue", "batch"], name="rqueue_outbox_batch"),)

    def __str__(self) -> str:
        return f"{self.job_id} of {self.queue}"


class OutboxBatch(models.Model):
    """The last batch that was sent to a queue. source: who sends, as the queue knows it."""

    queue = models.TextField(primary_key=True)
    source = models.TextField()
    number = models.BigIntegerField()

    class Meta:
        """One row for each queue."""

        db_table = "rqueue_outbox_batches"

    def __str__(self) -> str:
        return f"{self.number} of {self.queue}"


class DoneJob(models.Model):
    """A job whose effects are in this database. result: of the function, as JSON."""

    id = models.BigAutoField(primary_key=True)
    queue = models.TextField()
    job_id = models.TextField()
    finished_ms = models.BigIntegerField(db_index=True)
    result = models.BinaryField(null=True)

    class Meta:
        """A job is there once: two attempts at a time wait for each other."""

        db_table = "rqueue_done"
        constraints = (
            models.UniqueConstraint(fields=["queue", "job_id"], name="rqueue_done_once"),
        )

    def __str__(self) -> str:
        return f"{self.job_id} of {self.queue}"
