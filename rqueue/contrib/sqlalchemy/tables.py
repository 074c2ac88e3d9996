"""The three tables that rqueue keeps in an application's database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from rqueue.contrib.outbox.store import NOW_MS

__all__ = ["OutboxTables", "now_ms"]

_NUMBER = BigInteger().with_variant(Integer, "sqlite")
_TIME = BigInteger()
"""Milliseconds since the epoch, by the database's clock."""


class now_ms(FunctionElement[int]):
    """The database's clock, in ms since the epoch."""

    type = BigInteger()
    inherit_cache = True


@compiles(now_ms, "postgresql")
@compiles(now_ms, "sqlite")
def _written(element: Any, compiler: Any, **kw: Any) -> str:
    return NOW_MS[compiler.dialect.name]


@dataclass(frozen=True, slots=True)
class OutboxTables:
    """outbox: the jobs that wait to be sent. batches: of each queue the number of the last batch
    that was sent. done: the jobs whose effects are in this database."""

    outbox: Table
    batches: Table
    done: Table

    @classmethod
    def of(cls, metadata: MetaData, schema: str | None) -> OutboxTables:
        """The tables, as part of `metadata`."""
        outbox = Table(
            "rqueue_outbox",
            metadata,
            Column("seq", _NUMBER, primary_key=True, autoincrement=True),
            Column("queue", Text, nullable=False),
            Column("job_id", Text, nullable=False),
            Column("terms", Text, nullable=False),
            Column("envelope", LargeBinary, nullable=False),
            Column("enqueued_ms", _TIME, nullable=False),
            Column("batch", BigInteger),
            Column("problem", Text),
            schema=schema,
        )
        Index("rqueue_outbox_batch", outbox.c.queue, outbox.c.batch)
        batches = Table(
            "rqueue_outbox_batches",
            metadata,
            Column("queue", Text, primary_key=True),
            Column("source", Text, nullable=False),
            Column("number", BigInteger, nullable=False),
            schema=schema,
        )
        done = Table(
            "rqueue_done",
            metadata,
            Column("queue", Text, primary_key=True),
            Column("job_id", Text, primary_key=True),
            Column("finished_ms", _TIME, nullable=False),
            Column("result", LargeBinary),
            schema=schema,
        )
        Index("rqueue_done_finished", done.c.finished_ms)
        return cls(outbox, batches, done)
