"""Build enqueue calls and read their replies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from rqueue.model.confirmation import Confirmation, Unconfirmed
from rqueue.model.job import DEFAULT_LEVEL
from rqueue.model.terms import NORMAL_TERMS, Terms
from rqueue.protocol.call import Arg, ScriptCall, text
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import (
    flows,
    front,
    groups,
    hold,
    last_value,
    limits,
    outbox,
    selectors,
    shares,
    sorted_,
    ttl,
    unique,
)

BATCH_MAX = 1000
"""Jobs that one enqueue call may carry; clients send less, see `BATCH`."""

BATCH = 250
"""Jobs that clients put into one call: large enough to amortise it, small enough (well below a
millisecond of Redis) to let others in between."""


class Put(NamedTuple):
    """One job to be enqueued: its id and envelope, and what the queue itself must know of it.

    priority: as in JMS, 4 is normal (Q-11). delay_ms: from now, by Redis's clock. at_ms: an
    absolute time instead, ms since the epoch. Both in the past: an ordinary enqueue (X-07).
    max_deliveries, max_crashes: 0 = the queue's. ttl_ms: how long from its enqueue it may be
    delivered (Q-62); 0 = as long as the queue says. group, key: "" = none. hold: whether it keeps
    its place until it is due (Q-63). unique: a `UniqueKey` as text, "" = none. waits: `Parents` as
    text, "" = none. counts: the job that its id is derived from waits for it. limits: see
    `rqueue.model.terms`. front: whether it comes before all that waits in its level. dependants:
    jobs that wait for it, the text of each `Dependant`.
    share: whose turn it takes; "" = nobody's.
    """

    id: str
    envelope: bytes
    priority: int = DEFAULT_LEVEL
    delay_ms: int = 0
    at_ms: int = 0
    max_deliveries: int = 0
    max_crashes: int = 0
    ttl_ms: int = 0
    group: str = ""
    key: str = ""
    hold: bool = False
    sort: str = ""
    unique: str = ""
    waits: str = ""
    counts: bool = False
    limits: tuple[str, ...] = ()
    front: bool = False
    dependants: tuple[str, ...] = ()
    share: str = ""

    @property
    def terms(self) -> str:
        """The part of a run that jobs side by side share; see `rqueue.model.terms`."""
        its = self[2:]
        return NORMAL_TERMS if its == _NORMAL else Terms(*its).text

    @property
    def keyless(self) -> Put:
        """The same job without its key: what a shard is sent, since the key has said which."""
        # past its own constructor: a third of the time
        return _new(Put, (*self[:_KEY], "", *self[_KEY + 1 :])) if self.key else self

    @classmethod
    def of_terms(cls, id: str, envelope: bytes, terms: str) -> Put:
        """The job whose `terms` these are."""
        return cls(id, envelope, *Terms.parse(terms))


_new = tuple.__new__
_NORMAL = Terms()
_KEY = Put._fields.index("key")


def normal_put(id: str, envelope: bytes) -> Put:
    """A job of which the queue itself must know nothing else."""
    return _new(Put, (id, envelope, *_NORMAL))


@dataclass(frozen=True, slots=True)
class Note:
    """What a writer notes of a step that may come twice, in the same step.

    run, epoch, partition: whose log it is (a run's name has no comma and no colon). length: bytes
    of the log when the step was made: where it has grown since, nothing is enqueued and ScriptError
    says "WRITTEN <length>"; where a later epoch was committed, "PASSED <epoch>". keep_ms: how long
    the log lasts. marks: what is appended, some bytes for each job. execution: letters and digits
    that tell this execution of the run from earlier ones, "" for none; kept with a new log.
    """

    run: str
    epoch: int
    partition: int
    length: int
    keep_ms: int
    marks: bytes
    execution: str = ""

    @property
    def argument(self) -> bytes:
        """The note as the script takes it."""
        log = f"{self.run},{self.epoch},{self.partition},{self.length},{self.keep_ms}"
        head = f"{log},{self.execution};"
        return head.encode() + self.marks


class Answered(NamedTuple):
    """A job that was not stored because another one, `id`, has its unique key. place: of the
    job, in the call. state: of the other one (`JobState`); "done" where its period is not over."""

    place: int
    id: str
    state: str


class Accepted(NamedTuple):
    """The queue's answer: how many jobs it took, which ids it knew already, and which consumer the
    job was delivered to directly ("" if none). `now`: ms, Redis's clock. `again`: the answer to an
    earlier try was lost, so that what is known now may be known from then. `answered`: those for
    which other jobs stand. `unconfirmed`: what is missing where the call was to be confirmed."""

    now: int
    accepted: int
    known: tuple[int, ...]
    handed_to: str
    again: bool = False
    answered: tuple[Answered, ...] = ()
    unconfirmed: Unconfirmed | None = None

    def of(self, places: Sequence[int]) -> Accepted:
        """The answer about jobs that have these places among others."""
        return self._replace(
            known=tuple(places[index] for index in self.known),
            answered=tuple(one._replace(place=places[one.place]) for one in self.answered),
        )


_OF_TAGS = {
    "|g": groups.POLICY,
    "|k": last_value.POLICY,
    "|h": hold.POLICY,
    "|s": sorted_.POLICY,
    "|u": unique.POLICY,
    "|w": flows.POLICY,
    "|p": flows.POLICY,
    "|l": limits.POLICY,
    "|f": front.POLICY,
    "|e": shares.POLICY,
}
"""What terms begin with that are a policy's."""


_HOW = {(False, False): "0", (True, False): "1", (False, True): "3", (True, True): "4"}
"""How the script takes one job, by whether it is immediate and mandatory."""


def policies_of(runs: str) -> tuple[str, ...]:
    """The policies that jobs with these terms need."""
    needs: tuple[str, ...] = (ttl.POLICY.name,) if "~" in runs else ()
    if "|" in runs:
        needs += tuple({policy.name: None for tag, policy in _OF_TAGS.items() if tag in runs})
        if "|t" in runs:
            needs += flows.POLICY.name, outbox.POLICY.name
    return needs


def _call(keys: QueueKeys, runs: str, args: Sequence[Arg]) -> ScriptCall[Accepted]:
    return ScriptCall("enqueue", keys.meta, args, _read, policies_of(runs), selectors.classed)


def _read(reply: Any) -> Accepted:
    now, accepted, known, handed_to, *more = reply
    # `text`, written out on the way of every call
    taker = handed_to.decode() if isinstance(handed_to, bytes) else handed_to or ""
    answered = answered_of(*more) if more else ()
    return _new(Accepted, (now, accepted, tuple(known), taker, False, answered, None))


def answered_of(flat: Sequence[Any] = ()) -> tuple[Answered, ...]:
    """What a reply says of jobs for which others stand: [index, id, state, ...]."""
    if not flat:
        return ()
    triples = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    return tuple(
        Answered(int(index), id_.decode("utf-8", "surrogateescape"), text(state))
        for index, id_, state in triples
    )


def enqueue(
    keys: QueueKeys,
    puts: Sequence[Put],
    *,
    immediate: bool = False,
    confirm: Confirmation | None = None,
) -> ScriptCall[Accepted]:
    """Enqueue up to `BATCH_MAX` jobs in one step, in order (Q-01).

    `immediate` (one job only): deliver it to a consumer that waits, or store nothing (X-01).
    confirm: what is waited for once they are stored.
    """
    if confirm is not None:
        return enqueue(keys, puts, immediate=immediate)._replace(confirm=confirm)
    if len(puts) == 1:
        put = puts[0]
        return enqueue_one(keys, put.id, put.envelope, put.terms, immediate=immediate)
    flat: list[Arg] = []
    for put in puts:
        flat += put[:2]
    # `terms`, as far as it is for nearly all jobs, written out
    terms = [NORMAL_TERMS if put[2:] == _NORMAL else put.terms for put in puts]
    return enqueue_flat(keys, flat, terms, immediate=immediate)


def enqueue_one(
    keys: QueueKeys,
    id: str,
    envelope: bytes,
    terms: str = NORMAL_TERMS,
    immediate: bool = False,
    mandatory: bool = False,
) -> ScriptCall[Accepted]:
    """Enqueue one job; see `enqueue`. `mandatory`: if the queue is there already (Q-20)."""
    needs = () if terms == NORMAL_TERMS else policies_of(terms)
    how = _HOW[immediate, mandatory] if immediate or mandatory else "0"
    args = (how, terms + "1", id, envelope)
    # past its own constructor: half the time
    return _new(ScriptCall, ("enqueue", keys.meta, args, _read, needs, selectors.classed, None))


def enqueue_flat(
    keys: QueueKeys,
    flat: Sequence[Arg],
    terms: Sequence[str],
    *,
    immediate: bool = False,
    note: Note | None = None,
) -> ScriptCall[Accepted]:
    """Enqueue jobs given as [id, envelope, ...] and the terms of each; see `enqueue`."""
    runs = [f"{its}{len(list(jobs))}" for its, jobs in groupby(terms)]
    how: Arg = note.argument if note else "1" if immediate else "0"
    text_ = ";".join(runs)
    return _call(keys, text_, [how, text_, *flat])


def enqueue_alike(
    keys: QueueKeys, flat: Sequence[Arg], terms: str = NORMAL_TERMS, *, note: Note | None = None
) -> ScriptCall[Accepted]:
    """Enqueue jobs that share their terms, given as [id, envelope, ...]: the fast path of bulk
    enqueues and background puts."""
    how: Arg = note.argument if note else "0"
    return _call(keys, terms, [how, f"{terms}{len(flat) // 2}", *flat])


def commit_write(keys: QueueKeys, run: str, epoch: int | None, keep_ms: int) -> ScriptCall[int]:
    """Forget what a writer noted of epochs before this one (None: the whole run), and refuse them
    from now on; the run itself is remembered for `keep_ms`. Returns the number of logs."""
    args: list[Arg] = [run, "" if epoch is None else epoch, keep_ms]
    return ScriptCall("commit_write", keys.meta, args, int)
