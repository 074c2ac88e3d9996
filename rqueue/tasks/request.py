"""What a call of a task asks for, on its way to the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.tasks.options import Options

__all__ = ["JobRequest"]


class JobRequest(NamedTuple):
    """One job to be enqueued. `parameters`: the names of its positional arguments, for errors.
    `queue`: "" for the queue that is asked."""

    task: str
    args: Sequence[Any]
    kwargs: dict[str, Any]
    options: Options
    parameters: Sequence[str] = ()
    queue: str = ""
