"""An application that pays orders in a database, and dies while it does; see
`test_outbox_kills.py`."""

import os
import random
import signal

from sqlalchemy import Column, Integer, Table, create_engine, insert
from sqlalchemy.orm import Session

from rqueue import RetryPolicy, current_job, task
from rqueue.contrib.sqlalchemy import Outbox

OUTBOX = Outbox()
PAYMENTS = Table("payments", OUTBOX.metadata, Column("number", Integer), Column("what", Integer))
ENGINE = create_engine(os.environ["TEST_DATABASE"])
QUEUE = os.environ["TEST_QUEUE"]
AT_ONCE = RetryPolicy(max_deliveries=1000, delay=0)


@task(queue=QUEUE, max_crashes=1000, retry=AT_ONCE)
def pay(number: int) -> None:
    """Pay an order, and have it shipped."""
    _once(number, 1)


@task(queue=QUEUE, max_crashes=1000, retry=AT_ONCE)
def ship(number: int) -> None:
    _once(number, 2)


def _once(number: int, what: int) -> None:
    with Session(ENGINE) as session, session.begin():
        OUTBOX.run_once(session, _book, session, number, what)
        _perhaps_die(f"before the commit of {number} {what}")
    _perhaps_die(f"after the commit of {number} {what}")


def _book(session: Session, number: int, what: int) -> None:
    session.execute(insert(PAYMENTS).values(number=number, what=what))
    if what == 1:
        OUTBOX.enqueue(session, ship, number)


def _perhaps_die(moment: str) -> None:
    job = current_job()
    assert job is not None
    if random.Random(f"{moment}, delivery {job.delivery}").random() < 0.15:
        os.kill(os.getpid(), signal.SIGKILL)
