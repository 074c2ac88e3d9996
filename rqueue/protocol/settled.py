"""The history of a consumer of one's own: what it got when, and rows for what it settles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any

from orjson import JSONDecodeError, loads

from rqueue.errors import Undecodable
from rqueue.model.envelope import unpack
from rqueue.model.history_batch import pack
from rqueue.model.job import Delivery, Header
from rqueue.model.labels import labels_of
from rqueue.protocol.commands.settle import Retried
from rqueue.protocol.policies.refusals import ELSEWHERE
from rqueue.protocol.server_clock import ServerClock

__all__ = ["SettledRows"]

Known = dict[str, tuple[Delivery, int]]
"""Id -> a job, and when it came."""

_UNKNOWN = Header(0, 0)


class SettledRows:
    """Makes the rows of one consumer's settle calls.

    It does not know when the work on a job began: that counts as when the job came; it ended when
    it is settled. Times are Redis's.
    """

    def __init__(self, queue: str, worker: str, clock: ServerClock) -> None:
        self._queue = queue
        self._worker = worker
        self._clock = clock
        self._got: Known = {}

    def got(self, jobs: Iterable[Delivery]) -> None:
        """These jobs came; one that is named again, as it was, came earlier."""
        now = self._now()
        for job in jobs:
            known = self._got.get(job.id)
            if known is None or known[0].value != job.value:
                self._got[job.id] = job, now

    def gone(self, ids: Iterable[str]) -> Known:
        """These jobs are not held any more; what was known of them, for `again`."""
        return {id_: known for id_ in ids if (known := self._got.pop(id_, None)) is not None}

    def again(self, known: Known) -> None:
        """These are held still: the call that was to settle them failed."""
        self._got.update(known)

    def clear(self) -> None:
        """Nothing is held."""
        self._got.clear()

    def pack(
        self,
        ack: Sequence[str],
        done: Sequence[tuple[str, int | None, bytes]],
        retry: Sequence[Retried],
        reject: Sequence[tuple[str, bytes]],
    ) -> tuple[bytes, int]:
        """The packed rows of a settle call, and how many. None where none of the jobs is known."""
        ids: list[str] = [*ack, *(id_ for id_, _, _ in done)]
        outcomes, errors = ["ack"] * len(ids), [""] * len(ids)
        sizes = [0] * len(ack) + [len(result) for _, _, result in done]
        for one in retry:
            ids.append(one.id if isinstance(one.id, str) else one.id.decode())
            uncounted = "refuse" if one.place == ELSEWHERE else "snooze"
            outcomes.append("retry" if one.charge else uncounted)
            errors.append(_error(one.error))
        for id_, cause in reject:
            ids.append(id_)
            outcomes.append("dead")
            errors.append(_error(cause))
        if self._got.keys().isdisjoint(ids):
            return b"", 0  # none of these is held: refused, and nothing changes
        rows = [self._row(id_) for id_ in ids]
        columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
        columns |= {
            "id": ids,
            "queue": self._queue,
            "worker": self._worker,
            "outcome": outcomes,
            "error": errors,
            "result_size": [*sizes, *[0] * (len(ids) - len(sizes))],
        }
        return pack(columns), len(ids)

    def _row(self, id_: str) -> dict[str, Any]:
        now = self._now()
        job, came = self._got.get(id_, (None, now))
        header, task, size, labels = _UNKNOWN, "", 0, {}
        if job is not None:
            try:
                header, size = job.header, len(job.body)
                task = unpack(job.body)[0]
                labels = labels_of(job.body)
            except Undecodable:
                pass  # the row says what is known
        came = max(came, header.enqueued_ms)
        return {
            "task": task,
            "level": header.level,
            "group": header.group,
            "share": header.share,
            "attempts": header.attempts,
            "deliveries": header.deliveries,
            "enqueued": header.enqueued_ms,
            "due": header.due_ms,
            "acquired": came,
            "started": came,
            "finished": max(came, now),
            "body_size": size,
            "labels": labels,
        }

    def _now(self) -> int:
        return self._clock.ms(monotonic())


def _error(text: bytes) -> str:
    """The name of an error, out of its JSON."""
    try:
        said = loads(text or b"{}")
    except JSONDecodeError:
        return ""
    return str(said.get("type") or said.get("kind") or "") if isinstance(said, dict) else ""
