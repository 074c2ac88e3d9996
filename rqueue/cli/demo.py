"""`rqueue demo`: the whole system at work."""

from __future__ import annotations

import click


@click.command()
@click.option(
    "--modules",
    type=click.IntRange(min=20),
    metavar="N",
    help="Measure only the first N modules; default: all of them.",
)
def demo(modules: int | None) -> int:
    """Show the whole system doing real work here.

    Starts a private Redis server and a pool of two workers, enqueues one job for every module of
    Python's standard library, each of which measures that module, kills a worker half way, and
    checks the totals against a plain loop. Needs no setup and leaves nothing behind.

    Exits with 0 only if every job finished and the totals are right.
    """
    from rqueue.demo import run

    return run(limit=modules)
