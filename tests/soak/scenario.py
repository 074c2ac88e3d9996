"""A scenario: one feature of rqueue under faults, and what has to hold of it.

A file of `tests.soak.scenarios` has one, with the tasks that it needs beside `soak.step`. All of
them run at once, in the same pools, on the same server, under the same faults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tests.soak.causes import Causes
    from tests.soak.evidence import Evidence, Job
    from tests.soak.field import Field
    from tests.soak.publisher import Publisher

Rule = Callable[["Evidence", "Causes"], Iterator[str]]
"""Yields for each case what is wrong with it; "" if nothing is."""

Served = Literal["pools", "line", "shards"]
"""By two pools with several processes, with old and with new code; by one process with one slot, so
that jobs begin in the order of their delivery; by a pool of its own."""


def nothing(_: Any) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Scenario:
    """`queues`: name to its options. `enqueue`: one step of the producer, called `rate` times a
    second in the mean. `judge`: rules by their names. `prepare`: called with the field before
    anything runs; `resume`: by each life of the producer, and at the end, with what earlier lives
    left half done; `finish`: when producers have ended and faults are over; `look`: then too, when
    all jobs have ended, writes down what stands elsewhere. `may`: outcomes other than `ack` that
    its jobs may have."""

    name: str
    queues: Mapping[str, Mapping[str, Any]]
    enqueue: Callable[[Publisher], None]
    judge: Mapping[str, Rule]
    rate: float = 1.0
    served: Served = "pools"
    may: tuple[str, ...] = ()
    prepare: Callable[[Field], None] = nothing
    resume: Callable[[Publisher], None] = nothing
    finish: Callable[[Field], None] = nothing
    look: Callable[[Field], None] = nothing

    def jobs(self, evidence: Evidence) -> list[Job]:
        """Its jobs, those of each publisher in their order."""
        return [job for job in evidence.jobs.values() if job.scenario == self.name]
