"""Ready jobs that nobody takes: those whose labels no registered consumer selects, and those that
all of them have refused."""

from __future__ import annotations

from collections.abc import Iterable

from rqueue.inspector.consumers import ConsumerInfo
from rqueue.inspector.queues import QueueInfo
from rqueue.model.job import JobState
from rqueue.model.job_info import JobInfo
from rqueue.model.selector import class_shown, class_text

__all__ = ["REFUSED", "why_unheard"]

REFUSED = class_shown("!")
"""Among `QueueInfo.unheard`: jobs that all registered consumers have refused."""


def why_unheard(job: JobInfo, queue: QueueInfo, consumers: Iterable[ConsumerInfo]) -> str:
    """Why no registered consumer takes this job, in words; "" where one may, where there are none,
    and where the job is not ready."""
    if job.state is not JobState.READY or not queue.unheard or not queue.acquiring:
        return ""
    if job.refused_by:
        taking = [one.term for one in consumers if one.mode == "acquire"]
        if set(taking) <= set(job.refused_by):
            return "all registered consumers have refused it, and it waits for another one"
        return ""
    labels = class_shown(class_text(job.opts.get("labels") or {}))
    if labels in queue.unheard:
        return f"no registered consumer selects its labels ({labels})"
    return ""
