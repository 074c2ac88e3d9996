"""The outbox of a database: each row that is committed becomes a job whose effect happens once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from sqlalchemy import Column, Connection, Engine, MetaData, Table, Text, create_engine, select

from rqueue import task
from rqueue.contrib.sqlalchemy import Outbox
from tests.soak.cases import said
from tests.soak.causes import Causes
from tests.soak.evidence import Evidence
from tests.soak.field import Field
from tests.soak.publisher import Publisher
from tests.soak.records import FOLDER
from tests.soak.scenario import Scenario
from tests.soak.tasks import AGAIN, note

METADATA = MetaData()
OUTBOX = Outbox(METADATA)
ORDERS = Table("orders", METADATA, Column("job", Text, primary_key=True))
EFFECTS = Table("effects", METADATA, Column("job", Text))
BUSY_S = 60
"""Seconds that one who writes waits for another."""


class RolledBack(Exception):
    """The application changed its mind."""


def database(records: str | Path) -> str:
    """The URL of a soak's database."""
    return f"sqlite:///{Path(records).parent / 'shop.db'}"


@cache
def engine(_process: int, records: str) -> Engine:
    """The database, as one process sees it."""
    return create_engine(database(records), connect_args={"timeout": BUSY_S})


def _engine() -> Engine:
    return engine(os.getpid(), os.environ[FOLDER])


def _charge(connection: Connection, job: str) -> None:
    connection.execute(EFFECTS.insert().values(job=job))


@task(name="soak.charge", queue="outbox", retry=AGAIN)
def charge(publisher: str, number: int) -> None:
    """An effect that happens once."""
    note("begin", publisher, number)
    with _engine().begin() as connection:
        OUTBOX.run_once(connection, _charge, connection, f"{publisher}-{number}")
    note("end", publisher, number)


def prepare(field: Field) -> None:
    """The tables, and the relay."""
    made = engine(os.getpid(), str(field.run.records))
    METADATA.create_all(made)
    field.relay(database(field.run.records))


def enqueue(publisher: Publisher) -> None:
    """An order and its job in one transaction; one in five is rolled back."""
    number = publisher.sent("outbox")
    its = publisher.id(number)
    try:
        with _engine().begin() as connection:
            connection.execute(ORDERS.insert().values(job=its))
            OUTBOX.enqueue(connection, charge.options(id=its), publisher.name, number)
            if publisher.random.random() < 0.2:
                raise RolledBack
    except RolledBack:
        publisher.say("refused", number)
    else:
        publisher.say("accepted", number)


def finish(field: Field) -> None:
    """What the relay left behind is moved."""
    made = engine(os.getpid(), str(field.run.records))
    Outbox(MetaData(), queue=field.queue).relay(made).move_all()


def look(field: Field) -> None:
    """What stands in the database."""
    with engine(os.getpid(), str(field.run.records)).connect() as connection:
        for what, table in (("order", ORDERS), ("charged", EFFECTS)):
            for job in connection.execute(select(table.c.job)).scalars():
                field.recorder.write(what, id=job)


def judge(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """An order that is committed was charged once, any other one never."""
    charged = Counter(record["id"] for record in evidence.records["charged"])
    orders = {record["id"] for record in evidence.records["order"]}
    for job in SCENARIO.jobs(evidence):
        wanted = int(job.id in orders)
        yield f"{said(job)}: charged {charged[job.id]} times, not {wanted}" * (
            charged[job.id] != wanted
        )


def committed(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A commit that was confirmed left no order, or one that was rolled back did."""
    orders = {record["id"] for record in evidence.records["order"]}
    for job in SCENARIO.jobs(evidence):
        if job.accepted or job.refused:
            there = job.id in orders
            yield f"{said(job)}: in the database: {there}" * (there != job.accepted)


SCENARIO = Scenario(
    "outbox",
    {"outbox": {}},
    enqueue,
    {"not charged once": judge, "commit lost": committed},
    rate=2,
    prepare=prepare,
    finish=finish,
    look=look,
)
