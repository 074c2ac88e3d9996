"""Build settle and pull calls and read their replies: the hot path of a worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import Arg, ScriptCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import refusals

SETTLE_MAX = 1000
"""Jobs that one settle call may name."""

NO_PULL = -1
"""Window that says: settle only."""


class Window(NamedTuple):
    """What a consumer may hold in all: jobs, and bytes of their stored values (0: no limit)."""

    jobs: int
    bytes: int = 0


class Pulled(NamedTuple):
    """What came back. `jobs`: [id, value, ...] as bytes, in order. `timer_ms`: until the next due
    job, where this consumer is the one to watch it, else -1. `refused`: ids this consumer did not
    hold any more (its settle changed nothing for them). `behind`: the id after which these jobs
    stand among what it holds; one that it does not know was delivered directly before them, and is
    not read yet (X-25). Empty where nothing stands before them. `now`: ms, Redis's clock."""

    now: int
    state: str
    timer_ms: int
    refused: list[bytes]
    behind: bytes
    jobs: list[bytes]


_new = tuple.__new__


class Retried(NamedTuple):
    """A job that failed and comes again. place: "old" (its position), "head" (with a delay: the
    head of its level when due), "tail", "park" (aside until a worker knows its task or the delay is
    over; it keeps its place; error says why), "aside" (until the delay is over; it keeps its
    place). charge: whether it counts as an attempt. error: JSON.
    "elsewhere": at once, and not to this consumer again (Q-08).
    deliveries: how often the job had been delivered before this time (`Header.deliveries`): an
    outcome of an earlier time, said again because its reply was lost, is refused; None: any time.
    """

    id: str | bytes
    delay_ms: int
    place: str
    charge: bool
    error: bytes
    deliveries: int | None = None


def read_pulled(reply: Any) -> Pulled:
    """Read the reply of settle and pull."""
    state = reply[1]  # `text`, written out on the way of every call
    state = state.decode() if isinstance(state, bytes) else state
    # past its own constructor: half the time
    return _new(Pulled, (reply[0], state, reply[2], reply[3], reply[4], reply[5:]))


def settle(
    keys: QueueKeys,
    consumer: str,
    term: str,
    window: Window | None,
    *,
    ack: Sequence[str | bytes] = (),
    done: Sequence[tuple[str | bytes, int | None, bytes]] = (),
    retry: Sequence[Retried] = (),
    reject: Sequence[tuple[str | bytes, bytes]] = (),
    release: Sequence[str | bytes] = (),
    freed: int = 0,
    batch: bytes = b"",
    rows: int = 0,
) -> ScriptCall[Pulled]:
    """Settle jobs and, with a `window`, pull the next ones in the same step.

    ack: done, nothing to keep. done: (id, ms to keep the result or None for the queue's, result
    JSON). reject: (id, cause JSON), to the dead letters. release: returned unstarted, uncounted,
    at the old position (Q-03). freed: bytes of the values of all these jobs. batch, rows: the
    packed history rows of ack, done, retry and reject, in that order
    (`rqueue.model.history_batch`).
    """
    jobs, bytes_ = window if window is not None else (NO_PULL, 0)
    groups, items = outcome_args(ack, done, retry, reject, release)
    args: list[Arg] = [consumer, term, jobs, bytes_, freed, batch, rows, groups, *items]
    needs: tuple[str, ...] = ()
    if retry and any(one.place == refusals.ELSEWHERE for one in retry):
        needs = (refusals.POLICY.name,)
    return _new(ScriptCall, ("settle", keys.meta, args, read_pulled, needs, None, None))


def outcome_args(
    ack: Sequence[str | bytes],
    done: Sequence[tuple[str | bytes, int | None, bytes]],
    retry: Sequence[Retried],
    reject: Sequence[tuple[str | bytes, bytes]],
    release: Sequence[str | bytes],
) -> tuple[Arg, Sequence[Arg]]:
    """What the script reads of these outcomes: how many there are of each, and the items."""
    if not (done or retry or reject or release):
        return len(ack), ack
    items: list[Arg] = [*ack]
    for id_, keep, result in done:
        items += (id_, "" if keep is None else keep, result)
    for id_, delay, place, charge, error, deliveries in retry:
        before = "" if deliveries is None else deliveries
        items += (id_, delay, place, "1" if charge else "0", before, error)
    for id_, cause in reject:
        items += (id_, cause)
    items += release
    return f"{len(ack)},{len(done)},{len(retry)},{len(reject)},{len(release)}", items


def pull(
    keys: QueueKeys, consumer: str, term: str, window: Window, *, recall: int | None = None
) -> ScriptCall[Pulled]:
    """Acquire what the window allows (Q-40). `recall`: also return, first, what is held already,
    from this place of the list on: after a reconnect a reply may have been lost (H-18). Where
    there is more than a page of it, nothing is acquired (`rqueue.protocol.recall`)."""
    args: list[Arg] = [consumer, term, window.jobs, window.bytes, "" if recall is None else recall]
    return ScriptCall("pull", keys.meta, args, read_pulled)
