"""What jobs enqueue by the step that acks them, from when they said it until it is done."""

from __future__ import annotations

from functools import partial

from rqueue.errors import ConfigError
from rqueue.protocol.commands.enqueue import BATCH_MAX, Put
from rqueue.protocol.job_packer import JobPacker, as_put
from rqueue.tasks.job_transaction import JobTransaction
from rqueue.tasks.request import JobRequest

__all__ = ["FollowUps"]


class FollowUps:
    """Of one subscription: jobs to be enqueued, by the id of the job that they follow. Jobs add to
    it in their own threads, each for itself."""

    def __init__(self, queue: str, packer: JobPacker) -> None:
        self._queue = queue
        self._packer = packer
        self._jobs: dict[bytes, list[Put]] = {}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __contains__(self, id: bytes) -> bool:
        return id in self._jobs

    def transaction(self, id: bytes) -> JobTransaction:
        """For the job with this id, which runs."""
        return JobTransaction(self._pack, partial(self._keep, id))

    def _pack(self, request: JobRequest) -> tuple[str, Put]:
        if request.queue and request.queue != self._queue:
            raise ConfigError(
                "queue",
                f"a job of queue '{self._queue}' is followed by others of it, not of"
                f" '{request.queue}'",
            )
        id_, body, _ = self._packer.pack(request)
        return id_, as_put(id_, body, request.options)

    def _keep(self, id: bytes, puts: list[Put]) -> None:
        known = self._jobs.get(id, [])
        if len(known) + len(puts) > BATCH_MAX:
            raise ConfigError("transaction", f"more than {BATCH_MAX} jobs follow one")
        self._jobs[id] = [*known, *puts]

    def take(self, id: bytes) -> list[Put]:
        """The jobs that follow this one, which are forgotten."""
        return self._jobs.pop(id, [])

    def restore(self, id: bytes, puts: list[Put]) -> None:
        """They are to be enqueued still."""
        self._jobs[id] = puts

    def signed(self, puts: list[Put]) -> list[Put]:
        """As they are to be sent now."""
        return list(self._packer.signed_puts(puts))

    def clear(self) -> None:
        """Nothing is enqueued: the jobs that they follow are others' now."""
        self._jobs.clear()
