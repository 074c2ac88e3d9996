"""`python -m benchmarks`: measure rows, show and write what came out."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from benchmarks.lab.bench import SIZES, Bench
from benchmarks.lab.processes import Died
from benchmarks.peers import compare, environment
from benchmarks.peers.catalogue import PEERS
from benchmarks.peers.losses import losses
from benchmarks.profiles import job_way, redis_side, worker
from benchmarks.report import page, plot, results, table
from benchmarks.rows import ROWS
from benchmarks.rows.row import Outcome, Row, Unmeasured

ORDER = (
    *("drain-2", "drain-10", "one-by-one", "enqueue-many", "background-puts", "enqueue-one"),
    *(
        "enqueue-confirmed",
        "start-latency",
        "result-latency",
        "idle",
        "commands",
        "due-at-once",
        "hold-scheduled",
    ),
    *(
        "memory",
        "cost-alone",
        "groups",
        "limits",
        "rates",
        "shares",
        "sharded",
        "selectors",
        "workflows",
        "waiting",
        "policies",
        "short-jobs",
        "async-jobs",
        "hooks",
        "reports",
        "steps",
        "ticks",
        "long-among-short",
        "scale",
        "hosts",
        "start",
    ),
    "floor-history",
)
SPARK = (
    *("spark-archive", "spark-lag", "spark-write", "spark-read", "history-memory"),
    "spark-kill",
)
"""Rows that are measured only when they are named, or all of them by `spark`: they need Java."""
PARTS = ("drain-2", "drain-10", "record-2", "memory", "idle", "losses")


def measure(row: Row, bench: Bench) -> Outcome:
    """Measure one row; what keeps it from being measured is its outcome then."""
    outcome = Outcome(row.name, row.what)
    begin = time.perf_counter()
    try:
        outcome.figures = row.measure(bench)
    except (Unmeasured, Died) as error:
        outcome.failure = str(error)
    except Exception as error:
        traceback.print_exc()
        outcome.failure = f"{type(error).__name__}: {error}"
    outcome.seconds = time.perf_counter() - begin
    return outcome


@click.group(invoke_without_command=True)
@click.pass_context
def main(context: click.Context) -> None:
    """Measure rqueue against what bare Redis and CPython do, and against its peers."""
    if context.invoked_subcommand is None:
        context.invoke(rows)


SHARED = (
    click.option("--size", type=click.Choice(SIZES), default="quick", show_default=True),
    click.option("--rounds", type=click.IntRange(1), default=3, show_default=True),
    click.option(
        "--server",
        default="newest",
        show_default=True,
        help="newest, a name such as redis70, or the path of a server program.",
    ),
    click.option("--aof/--no-aof", default=False, help="The server's append-only file."),
)


def shared(function: Callable[..., None]) -> Callable[..., None]:
    """Options of all commands that measure."""
    for option in reversed(SHARED):
        function = option(function)
    return function


def kept(function: Callable[..., None]) -> Callable[..., None]:
    """And of those whose results may be kept."""
    summary = "Put the run into the summary that is kept."
    return shared(click.option("--summary", is_flag=True, help=summary)(function))


@main.command()
@click.argument("names", nargs=-1, metavar="[ROW]...")
@click.option("--list", "listed", is_flag=True, help="Name the rows and end.")
@kept
def rows(
    names: tuple[str, ...] = (),
    listed: bool = False,
    size: str = "quick",
    rounds: int = 3,
    server: str = "newest",
    aof: bool = False,
    summary: bool = False,
) -> None:
    """Measure rows (default: all but those of Spark, which `spark` stands for): rqueue against the
    floors."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    if listed:
        for name in (*ORDER, *SPARK):
            console.print(f"{name:18} {ROWS[name].what}")
        return
    wanted = [one for name in names for one in (SPARK if name == "spark" else (name,))]
    if unknown := [name for name in wanted if name not in ROWS]:
        raise click.UsageError(f"no such row: {', '.join(unknown)}; see --list")
    outcomes = []

    def say(line: str) -> None:
        console.print(f"[dim]  {line}[/]")

    with Bench(size, rounds, server=server, aof=aof, say=say) as bench:
        facts = results.about(bench.about, size, rounds)
        for name in wanted or ORDER:
            console.print(f"[dim]{name} ...[/]")
            outcomes.append(measure(ROWS[name], bench))
    table.show(console, facts, outcomes)
    written = results.write(facts, outcomes, "rqueue")
    if summary:
        results.summarize(facts, outcomes, "rqueue")
    console.print(
        f"[dim]{written.name}; {escape(plot.plot(outcomes, written.with_suffix('.svg')))}[/]"
    )
    if any(outcome.failure for outcome in outcomes):
        raise SystemExit(1)


@main.command()
@click.argument("names", nargs=-1, metavar="[PEER]...")
@click.option(
    "--part",
    "parts",
    type=click.Choice(PARTS),
    multiple=True,
    help="What to compare; default: all but losses.",
)
@kept
def peers(
    names: tuple[str, ...],
    parts: tuple[str, ...],
    size: str,
    rounds: int,
    server: str,
    aof: bool,
    summary: bool,
) -> None:
    """Measure rqueue against its peers (default: all that are installed)."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    if unknown := [name for name in names if name not in PEERS]:
        raise click.UsageError(f"no such peer: {', '.join(unknown)}; there are: {', '.join(PEERS)}")
    chosen = [PEERS[name] for name in names or PEERS]
    there = [peer for peer in chosen if environment.installed(peer)]
    missing = [peer.name for peer in chosen if peer not in there]
    outcomes = []
    with Bench(size, rounds, server=server, aof=aof) as bench:
        facts = results.about(bench.about, size, rounds)
        facts["peers"] = {peer.name: environment.version(peer) for peer in there}
        for part in parts or PARTS[:-1]:
            console.print(f"[dim]{part} ...[/]")
            if part == "losses":
                outcomes += losses(bench, there)
            elif part == "memory":
                outcomes.append(compare.memories(bench, there))
            elif part == "idle":
                outcomes.append(compare.idles(bench, there))
            else:
                task, processes = part.split("-")
                task = "record" if task == "record" else "hit"
                outcomes.append(compare.drains(bench, there, int(processes), task))
    table.show(console, facts, outcomes)
    written = results.write(facts, outcomes, "peers")
    if summary:
        results.summarize(facts, outcomes, "peers")
    console.print(f"[dim]{written.name}[/]")
    if missing:
        console.print(f"[red]not installed:[/] {', '.join(missing)} (make bench-peers installs)")
    if missing or any(outcome.failure for outcome in outcomes):
        raise SystemExit(1)


@main.group()
def profile() -> None:
    """Say where the time of a job goes."""


def _profile(side: Any, modes: Iterable[str], as_json: bool, bench: Bench) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    with bench:
        for mode in modes:
            found = side.profile(bench, mode)
            if as_json:
                console.print_json(data=found.to_json())
            else:
                side.show(console, found)


@profile.command("worker")
@click.argument("modes", nargs=-1, type=click.Choice(list(worker.MODES)))
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@shared
def profile_worker(
    modes: tuple[str, ...], as_json: bool, size: str, rounds: int, server: str, aof: bool
) -> None:
    """On the worker's side, step by step (default: every mode)."""
    _profile(worker, modes or worker.MODES, as_json, Bench(size, rounds, server=server, aof=aof))


@profile.command("redis")
@click.argument("modes", nargs=-1, type=click.Choice(list(redis_side.MODES)))
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@shared
def profile_redis(
    modes: tuple[str, ...], as_json: bool, size: str, rounds: int, server: str, aof: bool
) -> None:
    """Inside Redis: the commands of the scripts, Lua, and the rest (default: every mode)."""
    _profile(
        redis_side, modes or redis_side.MODES, as_json, Bench(size, rounds, server=server, aof=aof)
    )


@profile.command("job-way")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.option("--functions", is_flag=True, help="Name each function that is entered.")
@shared
def profile_job_way(
    as_json: bool, functions: bool, size: str, rounds: int, server: str, aof: bool
) -> None:
    """The modules and functions that one job goes through, and its round trips."""
    console = Console(width=None if sys.stdout.isatty() else 120)
    with Bench(size, rounds, server=server, aof=aof) as bench:
        found = job_way.profile(bench)
    if as_json:
        console.print_json(data=found.to_json())
    else:
        job_way.show(console, found, functions=functions)


@main.command()
def publish() -> None:
    """Put the runs that are kept into docs/performance.md."""
    page.publish()


if __name__ == "__main__":
    main()
