"""Jobs of one worker's subscription whose attempts have ended, until the queue has taken note."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from rqueue.logs import logger
from rqueue.protocol.consumer_state import ConsumerState
from rqueue.protocol.keys import QueueKeys
from rqueue.text.numbers import many
from rqueue_workers.worker.flight import Flight, Held
from rqueue_workers.worker.outcome import Ack, Done, Outcome, Unfinished
from rqueue_workers.worker.stops import Stops

AnOutcome = TypeVar("AnOutcome", Ack, Done, Unfinished)

log = logger("rqueue.worker")


class EndedJobs(ConsumerState):
    """Executors append to the deques (atomic); everything else is done under the dispatcher's lock.

    acks, dones, others: rows of ended jobs, to be settled: without a result, with one, and failed
    or put off. back: (id, value) of jobs to release unstarted.
    """

    __slots__ = (
        "acks",
        "back",
        "cancelled",
        "dones",
        "doomed",
        "early",
        "flight",
        "others",
        "passing",
        "queue",
        "released",
        "settle_first",
        "stops",
    )

    def __init__(self, keys: QueueKeys, worker: str) -> None:
        super().__init__(keys, worker=worker)
        self.queue = keys.queue
        self.acks: deque[Ack] = deque()
        self.dones: deque[Done] = deque()
        self.others: deque[Unfinished] = deque()
        self.back: deque[Held] = deque()
        self.passing: deque[Held] = deque()
        """Like `back`, but not to be acquired again in the same step: others are to have a look."""
        self.released = False
        """Jobs went back, and nothing was pulled since: they wait before jobs that are delivered
        now."""
        self.settle_first = False
        """What ended last in the main thread is to be settled before the next job begins."""
        self.cancelled: set[bytes] = set()
        """Jobs that were cancelled here after they began: their outcomes will be refused."""
        self.stops = Stops()
        """How far those are whose code is to be stopped."""
        self.early: dict[bytes, Callable[[bool], object]] = {}
        """Jobs that are acked before they begin, and what is called with the answer (Q-24)."""
        self.flight: Flight | None = None
        """A call that settles, which was sent and whose reply is not read yet."""
        self.doomed: set[Held] = set()
        """Deliveries that ran when the registration was lost: others have these jobs now, or they
        run here once more."""

    @property
    def pending(self) -> int:
        """Jobs whose end is to be reported."""
        rows = len(self.acks) + len(self.dones) + len(self.others)
        return rows + len(self.back) + len(self.passing)

    def ended(self, outcome: Outcome) -> None:
        """An attempt is over. From any thread; the hot loop does the same by itself."""
        if isinstance(outcome, Done):
            self.dones.append(outcome)
        elif isinstance(outcome, Unfinished):
            self.others.append(outcome)
        else:
            self.acks.append(outcome)

    @property
    def unreported(self) -> list[Outcome]:
        """The jobs that ended and that Redis has not answered for."""
        rows: list[Outcome] = [*self.acks, *self.dones, *self.others]
        if (flight := self.flight) is not None:
            rows = [*flight.acks, *flight.dones, *flight.others, *rows]
        return rows

    def reporting(self, id: bytes) -> bool:
        """Whether its outcome is in the call whose reply is not read yet."""
        return self.flight is not None and any(id == one for one, _ in self.flight.jobs)

    def ack_early(self, row: Ack, answered: Callable[[bool], object]) -> None:
        """A job is to be acked before it begins: `answered` is called once, with whether it is; if
        not, it must not begin. From any thread."""
        self.early[row[0]] = answered
        self.acks.append(row)

    def withdraw(self, row: Ack) -> None:
        """An early ack that is not answered is not said again: whether the job is still held is to
        be asked."""
        if self.early.pop(row[0], None) is not None:
            self.acks.remove(row)
            self.disown([row[0]])

    def restore(self, flight: Flight) -> None:
        """What a call was to say is to be said still."""
        self.acks.extendleft(reversed(flight.acks))
        self.dones.extendleft(reversed(flight.dones))
        self.others.extendleft(reversed(flight.others))
        self.back.extendleft(reversed(flight.back))
        self.unsettle(flight.jobs)

    def alive(self, rows: list[AnOutcome]) -> list[AnOutcome]:
        """Without those of jobs that others have now."""
        kept = [row for row in rows if row[:2] not in self.doomed]
        if len(kept) < len(rows):
            self.doomed.difference_update([row[:2] for row in rows])
            warn_late(len(rows) - len(kept))
        return kept

    def refused(self, refused: Iterable[bytes]) -> None:
        """The queue did not take the outcomes of these jobs."""
        strangers = []
        for id_ in refused:
            if id_ in self.cancelled:
                self.cancelled.discard(id_)
                self.stops.refused(id_)
            else:
                strangers.append(id_)
        if strangers and not self.doubtful:
            log.warning(
                "queue %s: %s dropped, the jobs are no longer held here (%s)",
                self.queue,
                many(len(strangers), "outcome"),
                ", ".join(id_.decode("utf-8", "backslashreplace") for id_ in strangers[:3]),
            )


def warn_late(count: int) -> None:
    """Outcomes are dropped: the registration was lost."""
    log.warning("%s came too late: the jobs are no longer held here", many(count, "outcome"))
