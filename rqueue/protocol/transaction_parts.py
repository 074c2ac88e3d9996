"""What a transaction gathers until it is committed. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from rqueue.errors import ConfigError, LifecycleError
from rqueue.model.confirmation import Confirmation, stricter
from rqueue.model.job import Delivery
from rqueue.protocol import commands
from rqueue.protocol.commands.commit import Committed
from rqueue.protocol.commands.enqueue import BATCH_MAX, Put
from rqueue.protocol.commands.settle import SETTLE_MAX, Retried
from rqueue.protocol.commands.shards import of_version
from rqueue.protocol.job_packer import JobPacker, as_put
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.settling import Settling, retried
from rqueue.protocol.twin_ids import another_id
from rqueue.tasks.options import at_once, refuses
from rqueue.tasks.request import JobRequest

__all__ = ["TransactionParts"]


class TransactionParts:
    """Jobs to be enqueued, and outcomes of held ones. queue: its name. settles: whether there is a
    consumer whose jobs may be settled. `own`: of each job, whether its id was made here."""

    def __init__(self, queue: str, *, settles: bool = False) -> None:
        self.puts: list[Put] = []
        self.own: list[bool] = []
        self.others: list[tuple[str, Put]] = []
        """Jobs for other queues, with the queues' names."""
        self.ack: list[Delivery | str] = []
        self.done: list[tuple[Delivery | str, Any]] = []
        self.retries: list[Retried] = []
        self.reject: list[tuple[Delivery | str, dict[str, Any]]] = []
        self.release: list[Delivery | str] = []
        self.confirm: Confirmation | None = None
        """What confirms the jobs that are enqueued."""
        self.version = 0
        """Of the table of shards by which the jobs go into a shard; 0: they go into no shard."""
        self.closed = False
        self._queue = queue
        self._settles = settles

    @property
    def settled(self) -> int:
        """Jobs that are settled."""
        outcomes: tuple[Sequence[Any], ...] = (self.ack, self.done, self.retries, self.reject)
        return sum(map(len, outcomes)) + len(self.release)

    def __bool__(self) -> bool:
        return bool(self.puts or self.others) or self.settled > 0

    def enqueue(self, packer: JobPacker, request: JobRequest) -> Put:
        """Add a job. Raises NotEncodable, InvalidName, ConfigError."""
        self._check_open()
        if name := at_once(request.options):
            raise ConfigError(name, "a job of a transaction cannot be refused alone")
        elsewhere = request.queue not in ("", self._queue)
        if len(self.others if elsewhere else self.puts) == BATCH_MAX:
            raise ConfigError("transaction", f"it has {BATCH_MAX} jobs already: no more fit")
        id_, body, own, options = packer.pack(request)
        put = as_put(id_, body, options)
        self.confirm = stricter(self.confirm, packer.confirmation(options))
        if elsewhere and refuses(options):
            raise ConfigError(
                "on_conflict",
                "a job for another queue is enqueued there after this transaction: it cannot raise",
            )
        if elsewhere:
            signed = packer.signed_puts([put])[0]
            self.others.append((request.queue, signed))
            return put
        self.puts.append(put)
        self.own.append(own)
        return put

    def settle(
        self, outcome: Literal["ack", "done", "reject", "release"], jobs: Iterable[Any]
    ) -> None:
        """Add what became of held jobs. Raises ConfigError where nobody holds any."""
        self.refuse_settles()
        self._check_open()
        getattr(self, outcome).extend(jobs)
        if self.settled > SETTLE_MAX:
            raise ConfigError("transaction", f"it settles more than {SETTLE_MAX} jobs")

    def retry(
        self,
        job: Delivery | str,
        delay: float,
        error: dict[str, Any] | None,
        place: str,
        charge: bool,
    ) -> None:
        """Add a retry; as `Consumer.retry`."""
        self.refuse_settles()
        self._check_open()
        self.retries.append(retried(job, delay, error, place, charge))

    def refuse_settles(self) -> None:
        """Raises ConfigError where there is no consumer."""
        if not self._settles:
            raise ConfigError(
                "transaction",
                "it settles nothing without a consumer: queue.transaction(consumer)",
            )

    def call(
        self,
        keys: QueueKeys,
        puts: Sequence[Put],
        consumer: str = "",
        term: str = "",
        settling: Settling | None = None,
    ) -> commands.ScriptCall[Committed]:
        """The call that does it. puts: signed, where jobs are."""
        if settling is None:
            return self._of_version(commands.commit(keys, puts=puts, others=self.others))
        call = commands.commit(
            keys,
            consumer,
            term,
            puts,
            others=self.others,
            ack=settling.ack,
            done=settling.done,
            retry=settling.retry,
            reject=settling.reject,
            release=settling.release,
            freed=settling.freed,
            batch=settling.batch,
            rows=settling.rows,
        )
        return self._of_version(call)

    def _of_version(self, call: commands.ScriptCall[Committed]) -> commands.ScriptCall[Committed]:
        call = call._replace(confirm=self.confirm)
        return of_version(call, self.version) if self.version and self.puts else call

    def twins(self, committed: Committed) -> list[int]:
        """Which jobs were not stored because another process made the same id; each has another one
        now."""
        if committed.again or committed.stale:
            return []
        twins = [index for index in committed.known if self.own[index]]
        for index in twins:
            put = self.puts[index]
            self.puts[index] = put._replace(id=another_id(put.id, self._queue))
        return twins

    def certain(self, committed: Committed) -> list[int]:
        """Which jobs the queue knows where the try whose answer was lost did all of it: another job
        may stand for a unique one, which is not known then."""
        known = {*committed.known}
        return [i for i, put in enumerate(self.puts) if not put.unique or i in known]

    def close(self) -> None:
        """It is over. Raises LifecycleError where it was."""
        self._check_open()
        self.closed = True

    def _check_open(self) -> None:
        if self.closed:
            raise LifecycleError("this transaction was committed, or rolled back")

    def __repr__(self) -> str:
        return f"{len(self.puts) + len(self.others)} enqueues and {self.settled} settles"
