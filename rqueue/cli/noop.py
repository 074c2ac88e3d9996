"""The task that `rqueue bench` runs."""

from __future__ import annotations

from rqueue.tasks.decorator import task


@task(name="rqueue.noop")
def noop() -> None:
    """Do nothing: what is measured is the queue."""
