"""Telling async jobs from sync ones by a look at their bytes, without decoding them."""

from __future__ import annotations

from collections.abc import Iterable

from orjson import dumps

from rqueue_workers.worker.task_plans import ASYNC, Plan

_START = b'["'


class TaskKinds:
    """Knows the names of the async tasks as they stand in envelopes. A name that it cannot find is
    taken for a sync one: the main thread finds out when it decodes the job."""

    def __init__(self, plans: Iterable[Plan]) -> None:
        self._names = {dumps(plan.name)[1:-1] for plan in plans if plan.executor == ASYNC}

    def is_async(self, value: bytes) -> bool:
        """Whether a stored job seems to be one of an async task."""
        start = value.find(_START) + 2
        return value[start : value.find(b'"', start)] in self._names
