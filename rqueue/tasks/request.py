"""What a call of a task asks for, on its way to the queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    def with_headers(self, headers: Mapping[str, str]) -> JobRequest:
        """The same request with more headers, which take the place of those of their names."""
        return self._replace(options=self.options.merged(headers=headers))
