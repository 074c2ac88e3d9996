"""Build the call of a transaction: enqueues and settles of one queue as one step (Q-73)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

from rqueue.model.confirmation import Unconfirmed
from rqueue.protocol.call import Arg, ScriptCall, text
from rqueue.protocol.commands.enqueue import (
    BATCH_MAX,
    Accepted,
    Answered,
    Put,
    answered_of,
    policies_of,
)
from rqueue.protocol.commands.settle import Retried, outcome_args
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import outbox, selectors

__all__ = ["BATCH_MAX", "NEW_JOBS", "Committed", "after_repeat", "commit"]

T = TypeVar("T")


class Committed(NamedTuple):
    """What became of a transaction. state: of the consumer. known: which of the new jobs were not
    stored, since their ids were known. handed_to: the consumer that the one new job was delivered
    to directly. stale: ids that the consumer does not hold any more: then nothing was done, and
    `over` says how many of these have ended. `now`: ms, Redis's clock. `again`: the answer to an
    earlier try was lost. answered: new jobs for which others stand. unconfirmed: what is missing
    where the call was to be confirmed."""

    now: int
    state: str
    known: tuple[int, ...]
    handed_to: str
    stale: tuple[str, ...]
    over: int
    again: bool = False
    answered: tuple[Answered, ...] = ()
    unconfirmed: Unconfirmed | None = None

    def done_before(self, count: int) -> bool:
        """Whether the try whose answer was lost did all of it. count: the number of new jobs."""
        stale = len(self.stale)
        return self.again and stale > 0 and len(self.known) == count and self.over == stale


def after_repeat(answer: T) -> T:
    """The answer to a call that was sent more than once: that of an enqueue, or of a transaction,
    is marked `again`."""
    if isinstance(answer, Accepted):
        return answer._replace(again=True)
    if isinstance(answer, Committed):
        return answer._replace(again=True)
    return answer


def _read(reply: Any) -> Committed:
    now, state, known, handed_to, stale, over, *more = reply
    names = tuple(id_.decode("utf-8", "surrogateescape") for id_ in stale)
    answered = answered_of(*more)
    return Committed(
        now, text(state), tuple(known), text(handed_to), names, over, answered=answered
    )


def commit(
    keys: QueueKeys,
    consumer: str = "",
    term: str = "",
    puts: Sequence[Put] = (),
    *,
    others: Sequence[tuple[str, Put]] = (),
    ack: Sequence[str | bytes] = (),
    done: Sequence[tuple[str | bytes, int | None, bytes]] = (),
    retry: Sequence[Retried] = (),
    reject: Sequence[tuple[str | bytes, bytes]] = (),
    release: Sequence[str | bytes] = (),
    freed: int = 0,
    batch: bytes = b"",
    rows: int = 0,
) -> ScriptCall[Committed]:
    """Enqueue `puts`, at most `BATCH_MAX`, and settle jobs that a consumer holds (as `settle` does;
    consumer "": none), in one step: all of it, or nothing. others: (queue, job) of as many jobs for
    other queues, which the outbox of this one gets."""
    runs = ";".join(f"{its}{len(list(jobs))}" for its, jobs in groupby(put.terms for put in puts))
    groups, items = outcome_args(ack, done, retry, reject, release)
    args: list[Arg] = [consumer, term, freed, batch, rows, groups, len(puts), runs, len(others)]
    for put in puts:
        args += (put.id, put.envelope)
    for queue, put in others:
        args += (queue, put.id, put.terms, put.envelope)
    needs = policies_of(runs) + ((outbox.POLICY.name,) if others else ())
    return ScriptCall("commit", keys.meta, [*args, *items], _read, needs, _classed)


NEW_JOBS, RUNS, _ITEMS = 6, 7, 9
"""Places among the arguments."""


def _classed(policies: Sequence[str], args: Sequence[Arg]) -> Sequence[Arg]:
    """The arguments for a queue with these policies: see `selectors.classed`."""
    if selectors.POLICY.name not in policies or not args[NEW_JOBS]:
        return args
    count = int(args[NEW_JOBS])
    enqueued = ["0", args[RUNS], *args[_ITEMS : _ITEMS + 2 * count]]
    _, runs, *_ = selectors.classed(policies, enqueued)
    return [*args[:RUNS], runs, *args[RUNS + 1 :]]
