"""Which jobs people mean: by task and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rqueue.errors import Undecodable
from rqueue.model.envelope import unpack
from rqueue.model.job import Delivery
from rqueue.model.labels import labels_of

__all__ = ["ANY", "JobFilter"]


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs; what is left empty says nothing.

    task: its name. labels: those that a job has to have, with their values as text.
    """

    task: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def fits(self, job: Delivery) -> bool:
        """Whether this job is one of them; of a job that cannot be read nothing is known."""
        if self.task and _task_of(job) != self.task:
            return False
        return not self.labels or self.labels.items() <= _labels_of(job).items()


def _task_of(job: Delivery) -> str:
    try:
        return unpack(job.body)[0]
    except Undecodable:
        return ""


def _labels_of(job: Delivery) -> dict[str, str]:
    return labels_of(job.value)


ANY = JobFilter()
"""All of them."""
