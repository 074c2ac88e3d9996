"""The three tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import migrations, models


class Migration(migrations.Migration):
    """As `rqueue.contrib.django.outbox.models` says."""

    initial = True
    dependencies: Sequence[Any] = ()
    operations: Sequence[Any] = (
        migrations.CreateModel(
            name="OutboxBatch",
            fields=[
                ("queue", models.TextField(primary_key=True, serialize=False)),
                ("source", models.TextField()),
                ("number", models.BigIntegerField()),
            ],
            options={
                "db_table": "rqueue_outbox_batches",
            },
        ),
        migrations.CreateModel(
            name="DoneJob",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("queue", models.TextField()),
                ("job_id", models.TextField()),
                ("finished_ms", models.BigIntegerField(db_index=True)),
                ("result", models.BinaryField(null=True)),
            ],
            options={
                "db_table": "rqueue_done",
                "constraints": [
                    models.UniqueConstraint(fields=("queue", "job_id"), name="rqueue_done_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="OutboxJob",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("queue", models.TextField()),
                ("job_id", models.TextField()),
                ("terms", models.TextField()),
                ("envelope", models.BinaryField()),
                ("enqueued_ms", models.BigIntegerField()),
                ("batch", models.BigIntegerField(null=True)),
                ("problem", models.TextField(null=True)),
            ],
            options={
                "db_table": "rqueue_outbox",
                "indexes": [models.Index(fields=["queue", "batch"], name="rqueue_outbox_batch")],
            },
        ),
    )
