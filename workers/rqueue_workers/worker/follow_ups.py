"""What jobs enqueue by the step that acks them, from when they said it until it is done."""

from __future__ import annotations

from functools import partial

from orjson import dumps

from rqueue.errors import ConfigError, RQueueError
from rqueue.logs import logger
from rqueue.model.job import parse_value
from rqueue.protocol.commands.enqueue import BATCH_MAX, Put
from rqueue.protocol.commands.settle import Retried
from rqueue.protocol.job_packer import JobPacker, as_put
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.sharding import refuse_spread
from rqueue.settings import Settings
from rqueue.tasks.job_transaction import JobTransaction
from rqueue.tasks.request import JobRequest
from rqueue_workers.worker.outcome import Ack, Done, Unfinished

__all__ = ["FollowUps", "Follower", "failed_commit"]

log = logger("rqueue.worker")

Follower = tuple[str, Put]
"""A queue, "" for that of the job which it follows, and a job."""


class FollowUps:
    """Of one subscription: jobs to be enqueued, by the id of the job that they follow. Jobs add to
    it in their own threads, each for itself."""

    def __init__(self, keys: QueueKeys, settings: Settings) -> None:
        self._keys = keys
        self._settings = settings
        self._packer = JobPacker(keys, settings)
        self.jobs: dict[bytes, list[Follower]] = {}
        """To be looked at: a question that every batch asks is no call."""

    def __contains__(self, id: bytes) -> bool:
        return id in self.jobs

    def transaction(self, id: bytes) -> JobTransaction:
        """For the job with this id, which runs."""
        return JobTransaction(self._pack, partial(self._keep, id))

    def _pack(self, request: JobRequest) -> tuple[str, Follower]:
        id_, body, _, options = self._packer.pack(request)
        queue = "" if request.queue == self._keys.queue else request.queue
        if queue:
            refuse_spread(QueueKeys(queue, self._keys.namespace))
        return id_, (queue, as_put(id_, body, options))

    def _keep(self, id: bytes, jobs: list[Follower]) -> None:
        known = self.jobs.get(id, [])
        if len(known) + len(jobs) > BATCH_MAX:
            raise ConfigError("transaction", f"more than {BATCH_MAX} jobs follow one")
        self.jobs[id] = [*known, *jobs]

    def take(self, id: bytes) -> list[Follower]:
        """The jobs that follow this one, which are forgotten."""
        return self.jobs.pop(id, [])

    def restore(self, id: bytes, jobs: list[Follower]) -> None:
        """They are to be enqueued still."""
        self.jobs[id] = jobs

    def signed(self, jobs: list[Follower]) -> tuple[list[Put], list[Follower]]:
        """As they are to be sent now: those of this queue, and those of others."""
        here = self._packer.signed_puts([put for queue, put in jobs if not queue])
        elsewhere = []
        for queue, put in jobs:
            if queue:
                packer = JobPacker(QueueKeys(queue, self._keys.namespace), self._settings)
                elsewhere.append((queue, packer.signed_puts([put])[0]))
        return list(here), elsewhere

    def clear(self) -> None:
        """Nothing is enqueued: the jobs that they follow are others' now."""
        self.jobs.clear()


def failed_commit(row: Ack | Done, error: RQueueError) -> Unfinished:
    """The row of a job that is done, where what follows it is not taken: it is tried again."""
    log.error("job %s is not done, since what follows it is refused: %s", row[0], error)
    cause = {"kind": "exception", "type": type(error).__name__, "message": str(error)}
    retried = Retried(row[0], 1000, "head", True, dumps(cause), parse_value(row[1])[0].deliveries)
    id_, value, head, task, acquired, started, finished, *_ = row
    return Unfinished(
        id_, value, head, task, acquired, started, finished, "retry", type(error).__name__, retried
    )
