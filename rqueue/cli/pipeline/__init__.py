"""`rqueue pipeline`: the data pipeline on Spark, and what its commands share."""

from __future__ import annotations

import importlib
from typing import Any

import click

from rqueue.cli.pipeline.history_options import PipelineFailure, spark_failure

COMMANDS = {
    "archive": "Carry history into a lake of Parquet files.",
    "report": "Write a report of the lake: times, failures, fairness.",
    "replay": "Enqueue jobs again that SQL chooses.",
    "plan": "Find how many workers hold a wait.",
    "load": "Enqueue the rows of files or a database.",
}
"""In the order of `--help`, which loads none of them; a test compares what they say themselves."""


class Pipeline(click.Group):
    """Loads a command when it is called, and turns what Spark says into one line and a code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of `--help`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command; None if there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(
            importlib.import_module(f"rqueue.cli.pipeline.{cmd_name}"), cmd_name
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()), col_spacing=4)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Raises Failure for what Spark found wrong."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            better = spark_failure(error)
            if better is None:
                raise
            raise better from (None if isinstance(better, PipelineFailure) else error)


@click.group(cls=Pipeline, no_args_is_help=True)
def pipeline() -> None:
    """Archive, report, replay, plan and load, on Spark.

    Needs the extra rqueue[spark] and a Java of 17 or newer. Runs on this machine unless --master or
    spark-submit names a cluster.
    """
