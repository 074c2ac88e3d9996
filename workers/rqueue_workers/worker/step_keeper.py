"""Keeps what jobs of one consumer have done, while they run: over a connection of its own, which is
opened with the first step."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TypeVar
from weakref import WeakValueDictionary

from rqueue.errors import (
    ConnectionLost,
    LifecycleError,
    RedisTimeout,
    RegistrationLost,
    RQueueError,
)
from rqueue.logs import logger
from rqueue.model.locks import new_lock
from rqueue.model.signing import Signer
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.steps import keep_steps
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.tasks.control import Cancelled
from rqueue.tasks.steps import JobSteps
from rqueue.transport.connection import Connection

log = logger("rqueue.worker")

R = TypeVar("R")

TRIES = 3
"""What was sent may be sent again: it stands in the place of what was there."""


class StepKeeper:
    """longer: by how many bytes the values of held jobs are longer than they were when taken.
    signer: signs the kept steps. behind: as of `rqueue.tasks.steps.StepKeeper`."""

    def __init__(
        self, consumer: ConsumerState, connection: Connection, signer: Signer | None = None
    ) -> None:
        self.behind: WeakValueDictionary[str, JobSteps] = WeakValueDictionary()
        self.longer: dict[bytes, int] = {}
        self._consumer = consumer
        self._signer = signer
        self._like = connection
        self._connection: Connection | None = None
        self._lock = new_lock()
        self._pid = os.getpid()

    def keep_steps(self, id: str, deliveries: int, text: str) -> None:
        """Keep `text` with a job that runs. From its own thread. Raises `Cancelled` where the job
        is not held here any more, and the server errors."""
        self.behind.pop(id, None)
        if os.getpid() != self._pid:
            raise LifecycleError("this process was forked by a job: it cannot keep steps")
        consumer, key = self._consumer, id.encode()
        if self._signer is not None:
            text = self._signer.sign_steps(consumer.keys.queue, id, text)
        with self._lock:
            call = keep_steps(consumer.keys, consumer.name, consumer.term, id, deliveries, text)
            try:
                length = self._run(call)
            except RegistrationLost as error:
                raise Cancelled(f"job {id}: {error}") from error
            taken = consumer.unsettled.get(key)
            if length is None or taken is None:
                raise Cancelled(f"job {id} is not held here any more")
            self.longer[key] = length - len(taken)

    async def akeep_steps(self, id: str, deliveries: int, text: str) -> None:
        """The same, from the event loop, which goes on meanwhile."""
        await asyncio.to_thread(self.keep_steps, id, deliveries, text)

    def catch_up(self, id: str, deliveries: int) -> None:
        """Keep the positions of the loops of a job that failed, as far as their rows were done.
        If that fails, the next attempt does some rows again."""
        steps = self.behind.get(id)
        if steps is None:
            return
        try:
            self.keep_steps(id, deliveries, steps.text())
        except (Cancelled, RQueueError) as error:
            log.warning(
                "job %s: the last rows of its loop will be done again, for their positions could"
                " not be kept: %s", id, error,
            )  # fmt: skip

    def freed(self, ids: Iterable[bytes]) -> int:
        """By how many bytes these were longer, which are settled."""
        return sum(self.longer.get(id_, 0) for id_ in ids)

    def _run(self, call: ScriptCall[R]) -> R:
        # a call in the middle of this one, as of a signal handler, gets a connection of its own
        connection, self._connection = self._connection or self._like.twin(), None
        queue, name = self._consumer.keys.queue, self._consumer.name
        try:
            for _ in range(TRIES - 1):
                with suppress(ConnectionLost, RedisTimeout):
                    return connection.run(call, queue=queue, consumer=name)
            return connection.run(call, queue=queue, consumer=name)
        finally:
            self._connection = connection
