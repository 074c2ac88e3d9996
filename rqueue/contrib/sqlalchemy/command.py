"""The command line of the outbox: `python -m rqueue.contrib.sqlalchemy`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import click
from sqlalchemy import Engine, MetaData, create_engine
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from rqueue.cli.output import echo
from rqueue.contrib.outbox.command import print_status, run_relay
from rqueue.contrib.outbox.command import retry as retry_refused
from rqueue.contrib.outbox.relay import BATCH, KEEP_S, POLL_S, problem_of
from rqueue.contrib.outbox.store import require_database
from rqueue.contrib.sqlalchemy.outbox import Outbox
from rqueue.contrib.sqlalchemy.store import EngineStore
from rqueue.errors import RQueueError
from rqueue.model.times import parse_duration

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Jobs that an application writes into its own database, in the transactions that they follow
    from: move them into their queues, and see what waits.

    DATABASE is SQLAlchemy's URL, such as postgresql+psycopg://shop@localhost/shop, or
    sqlite:///shop.db; without it the variable RQUEUE_OUTBOX says which. The queues are where
    RQUEUE_URL says.
    """


def with_engine(command: Callable[..., None]) -> Callable[..., None]:
    """The arguments that all commands have; what goes wrong ends in one line and exit code 2."""

    @click.argument("database", metavar="[DATABASE]", envvar="RQUEUE_OUTBOX", required=False)
    @click.option("--schema", metavar="NAME", help="Where the tables are; default: the database's.")
    @wraps(command)
    def run(database: str | None, schema: str | None, **options: Any) -> None:
        if not database:
            raise click.UsageError("no database: pass DATABASE, or set RQUEUE_OUTBOX")
        try:
            engine = create_engine(database)
            try:
                require_database(engine.dialect.name)
                outbox = Outbox(MetaData(), schema=schema)
                command(engine, outbox, **options)
            except SQLAlchemyError as error:
                problem = problem_of(error, EngineStore(engine, outbox.tables))
            else:
                return
            finally:
                engine.dispose()
        except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
            problem = f"DATABASE: {error}"
        except RQueueError as error:
            problem = str(error).partition("\n")[0]
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
    seconds = parse_duration(poll, "--poll"), parse_duration(keep, "--keep")
    mover = outbox.relay(engine, batch=batch, poll=seconds[0], keep=seconds[1])
    run_relay(mover, once=once)


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
    sys.exit(print_status(EngineStore(engine, outbox.tables)))


@main.command()
@click.option("--drop", is_flag=True, help="Delete them instead: they are never enqueued.")
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@with_engine
def retry(engine: Engine, outbox: Outbox, jobs: tuple[str, ...], drop: bool) -> None:
    """Let refused jobs be sent again: these, or all. Exit code 1 where there is none."""
    sys.exit(retry_refused(EngineStore(engine, outbox.tables), jobs, drop=drop))
