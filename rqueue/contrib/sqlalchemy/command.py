"""The command line of the outbox: `python -m rqueue.contrib.sqlalchemy`."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any

import click
from sqlalchemy import Engine, MetaData, create_engine, delete, func, select, update
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from rqueue.cli.output import echo
from rqueue.contrib.sqlalchemy.outbox import Outbox, require_known
from rqueue.contrib.sqlalchemy.relay import BATCH, KEEP_S, POLL_S, Relay
from rqueue.errors import RQueueError
from rqueue.model.times import parse_duration
from rqueue.text.numbers import many

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Jobs that an application writes into its own database, in the transactions that they follow
    from: move them into their queues, and see what waits.

    DATABASE is SQLAlchemy's URL, such as postgresql+psycopg://shop@localhost/shop, or
    sqlite:///shop.db. The queues are where RQUEUE_URL says.
    """


def with_engine(command: Callable[..., None]) -> Callable[..., None]:
    """The arguments that all commands have; what goes wrong ends in one line and exit code 2."""

    @click.argument("database", metavar="DATABASE", envvar="RQUEUE_OUTBOX")
    @click.option("--schema", metavar="NAME", help="Where the tables are; default: the database's.")
    @wraps(command)
    def run(database: str, schema: str | None, **options: Any) -> None:
        try:
            engine = create_engine(database)
            try:
                require_known(engine.dialect.name)
                command(engine, Outbox(MetaData(), schema=schema), **options)
            finally:
                engine.dispose()
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            problem = f"DATABASE: {error}"
        except (SQLAlchemyError, RQueueError) as error:
            problem = str(error).partition("\n")[0]
        else:
            return
        echo(f"outbox: {problem}", err=True)
        sys.exit(2)

    return run


@main.command()
@click.option("--once", is_flag=True, help="Move what is there, and end.")
@click.option(
    "--batch",
    type=click.IntRange(1, 1000),
    default=BATCH,
    show_default=True,
    metavar="N",
    help="Jobs that go into a queue in one step.",
)
@click.option(
    "--poll",
    default=f"{POLL_S:g}s",
    show_default=True,
    metavar="DURATION",
    help="Between two looks; PostgreSQL with psycopg tells of jobs by itself.",
)
@click.option(
    "--keep",
    default=f"{KEEP_S / 86400:g}d",
    show_default=True,
    metavar="DURATION",
    help="How long run_once remembers jobs that have ended.",
)
@with_engine
def relay(engine: Engine, outbox: Outbox, once: bool, batch: int, poll: str, keep: str) -> None:
    """Move jobs into their queues, until it is stopped (Ctrl-C, SIGTERM).

    It may be killed at any time, and started again: each job gets into its queue once. A second
    one stands by (PostgreSQL); with SQLite run one.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    seconds = parse_duration(poll, "--poll"), parse_duration(keep, "--keep")
    mover = Relay(engine, outbox, batch=batch, poll=seconds[0], keep=seconds[1])
    if once:
        echo(f"{many(mover.move_all(), 'job')} moved")
        return
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    mover.run(stop)


@main.command()
@click.option("--create", is_flag=True, help="Make those that are not there.")
@with_engine
def tables(engine: Engine, outbox: Outbox, create: bool) -> None:
    """Print the SQL of the tables, for a migration; or make them."""
    if create:
        outbox.create_tables(engine)
        echo("the tables are there")
        return
    for table in outbox.metadata.sorted_tables:
        indexes = sorted(table.indexes, key=lambda index: str(index.name))
        statements: list[DDLElement] = [CreateTable(table), *map(CreateIndex, indexes)]
        for statement in statements:
            for line in f"{str(statement.compile(engine)).strip()};\n".splitlines():
                echo(line.expandtabs(4).rstrip())


@main.command()
@with_engine
def status(engine: Engine, outbox: Outbox) -> None:
    """Say how many jobs wait for each queue, and which are refused. Exit code 1 where some are."""
    table = outbox.tables.outbox
    with engine.connect() as connection:
        counts = select(table.c.queue, func.count()).where(table.c.problem.is_(None))
        waiting = connection.execute(counts.group_by(table.c.queue).order_by(table.c.queue)).all()
        put_aside = select(table).where(table.c.problem.is_not(None)).order_by(table.c.seq)
        refused = connection.execute(put_aside).all()
    for queue, count in waiting:
        echo(f"{queue}: {many(count, 'job')} to be sent")
    for row in refused:
        echo(f"{row.queue}: job {row.job_id} is refused: {row.problem}")
    if not waiting and not refused:
        echo("the outbox is empty")
    sys.exit(1 if refused else 0)


@main.command()
@click.option("--drop", is_flag=True, help="Delete them instead: they are never enqueued.")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@with_engine
def retry(engine: Engine, outbox: Outbox, jobs: tuple[str, ...], drop: bool) -> None:
    """Let refused jobs be sent again: these, or all. Exit code 1 where there is none."""
    table = outbox.tables.outbox
    these = [table.c.problem.is_not(None)]
    if jobs:
        these.append(table.c.job_id.in_(jobs))
    statement = delete(table) if drop else update(table).values(problem=None)
    with engine.begin() as connection:
        count = connection.execute(statement.where(*these)).rowcount
    echo(f"{many(count, 'job')} {'dropped' if drop else 'to be sent again'}")
    sys.exit(0 if count else 1)
