"""All that is known of one job, for people and for JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rqueue.model.job import DEFAULT_LEVEL, JobState
from rqueue.model.progress import Progress
from rqueue.model.sort_keys import SortKey

__all__ = ["JobInfo"]


@dataclass(frozen=True, slots=True)
class JobInfo:
    """Everything that is known of one job, for people and for JSON.

    Times are ms since the epoch, 0 = not (yet). `began_ms`: when it began to run, in a list of held
    jobs; known a moment later. `holder` is the consumer that has it. `errors` are
    the attempts' errors, oldest first, with suspicions that were not charged (kind "suspected");
    `cause` says why it is dead. `position` and what else the header held are 0 once the job has
    ended and only its record is left. `problem` says why the envelope could not be read, if it
    could not. `joined`: how many jobs it waits for so far, of one that waits for a stream of them
    which goes on.
    """

    id: str
    queue: str
    state: JobState
    position: int = 0
    level: int = DEFAULT_LEVEL
    enqueued_ms: int = 0
    due_ms: int = 0
    began_ms: int = 0
    ended_ms: int = 0
    deliveries: int = 0
    attempts: int = 0
    max_deliveries: int = 0
    crashes: int = 0
    max_crashes: int = 0
    expires_ms: int = 0
    group: str = ""
    key: str = ""
    sort_key: SortKey | None = None
    unique: str = ""
    steps: dict[str, Any] = field(default_factory=dict)
    progress: Progress | None = None
    refused_by: tuple[str, ...] = ()
    waits: str = ""
    counts: bool = False
    joined: int = 0
    limits: tuple[str, ...] = ()
    share: str = ""
    holder: str = ""
    task: str = ""
    args: list[Any] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    opts: dict[str, Any] = field(default_factory=dict)
    signed_with: str = ""
    size: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    cause: dict[str, Any] | None = None
    result: Any = None
    problem: str = ""
