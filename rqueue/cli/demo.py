"""`rqueue demo`: the whole system at work."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option(
    "--modules",
    type=click.IntRange(min=20),
    metavar="N",
    help="Only N modules; default: all of them, 500 with --spark.",
)
@click.option("--spark", is_flag=True, help="Show the data pipeline; needs rqueue[spark] and Java.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="With --spark: where the report's page and the lake go; default: a new temporary one.",
)
def demo(modules: int | None, spark: bool, folder: Path | None) -> int:
    """Show the whole system doing real work here.

    Starts a private Redis server and a pool of two workers, enqueues one job for every module of
    Python's standard library, each of which measures that module, kills a worker half way, and
    checks the totals against a plain loop. Needs no setup and leaves nothing behind.

    With --spark two tenants' jobs fail, and are tried again, while their history is archived into a
    lake of Parquet files by an archiver that is killed and started again. Then: a report, a replay
    of what failed, and a comparison of lake, history and jobs, row by row.

    Exits with 0 only if every job finished and the totals are right; with --spark: if every row of
    history is in the lake once, and every job ended once.
    """
    if spark:
        from rqueue.demo import pipeline

        return pipeline.run(files=modules or pipeline.FILES, folder=folder)
    if folder is not None:
        raise click.UsageError("--folder goes with --spark")
    from rqueue.demo import run

    return run(limit=modules)
