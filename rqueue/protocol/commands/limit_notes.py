"""Build the calls that look at what a queue keeps of its limits, named as in the names of keys."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.model.job_limit import JobLimit, allows_text, of_all_keys
from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_text, scores

__all__ = ["LimitUse", "PermitsState", "limit_use", "permits_state"]


class PermitsState(NamedTuple):
    """At one moment: how many permits of each limit are out, or tokens of a rate set aside; of
    which limits each job has some, and how many; what was set; what jobs declare; which limits are
    waited for, which of those are still to be offered, and when those that are rates have their
    next tokens; who set numbers of permits right last."""

    out: dict[str, int]
    claims: dict[str, dict[str, int]]
    most: dict[str, str]
    declared: dict[str, str]
    waited_for: set[str]
    reopened: set[str]
    due: dict[str, float]
    corrected_by: str

    @property
    def counted(self) -> dict[str, int]:
        """How many permits, or tokens, the jobs have."""
        found: Counter[str] = Counter()
        for limits in self.claims.values():
            found.update(limits)
        return dict(+found)

    def allowed(self, limit: str, said: JobLimit) -> str:
        """What a limit allows, of which a job says this; an `allows_text`."""
        own = allows_text(said.most, said.per_ms, said.burst)
        declared = self.declared.get(limit, own)
        return self.most.get(limit, self.most.get(of_all_keys(limit), declared))


class LimitUse(NamedTuple):
    """Of one limit of a job. `waits`: the job waits for it. `out`: permits that are out, or tokens
    of a rate set aside; `allows`: what was set, or declared last, an `allows_text`; "": nothing is
    known. `next_ms`: when the first that waits for a rate finds its tokens; 0: no time says that.
    `before`: how many that wait for it stand before the job."""

    waits: bool
    out: int
    allows: str
    next_ms: float
    before: int


def _pairs(flat: Any) -> dict[str, str]:
    pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
    return {raw_text(name): raw_text(value) for name, value in pairs}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else -1


def _claimed(text: str) -> dict[str, int]:
    """What a job has by its claim: of "crm @api*3 @web!1" one permit, three tokens, none."""
    found = {}
    for one in text.split():
        limit, _, tokens = one.partition("*")
        limit, paid, _ = limit.partition("!")
        found[limit] = 0 if paid else max(0, _number(tokens)) if tokens else 1
    return found


def _said(text: str) -> bool:
    return re.fullmatch(r"\d+(/\d+\+\d+)?", text) is not None


def _declared(text: str) -> str:
    """What a limit allows by "<enqueued, ms> <allows>" of the job that was enqueued last."""
    return text.partition(" ")[2]


def _read_state(replies: Sequence[Any]) -> PermitsState:
    out, claims, most, declared, waited_for, reopened, due, last = replies
    return PermitsState(
        {limit: _number(text) for limit, text in _pairs(out).items()},
        {id_: _claimed(text) for id_, text in _pairs(claims).items()},
        {limit: text for limit, text in _pairs(most).items() if _said(text)},
        {limit: _declared(text) for limit, text in _pairs(declared).items()},
        {raw_text(name) for name in waited_for},
        {raw_text(name) for name in reopened},
        scores(due),
        raw_text(last or b""),
    )


def permits_state(keys: QueueKeys) -> CommandCall[PermitsState]:
    """What is kept of all limits."""
    commands = [
        ("HGETALL", keys.permits),
        ("HGETALL", keys.claims),
        ("HGETALL", keys.limits),
        ("HGETALL", keys.declared),
        ("ZRANGE", keys.blocked, 0, -1),
        ("SMEMBERS", keys.reopened),
        ("ZRANGE", keys.tokens_due, 0, -1, "WITHSCORES"),
        ("HGET", keys.meta, "corrected_by"),
    ]
    return CommandCall(keys.meta, commands, _read_state)


def _read_use(replies: Sequence[Any]) -> list[LimitUse]:
    if not replies:
        return []
    out, most, declared, due, *ranks = replies
    found = []
    for at, rank in enumerate(ranks):
        own, of_all = (raw_text(text or b"") for text in most[2 * at : 2 * at + 2])
        allows = own or of_all or _declared(raw_text(declared[at] or b""))
        found.append(
            LimitUse(
                rank is not None,
                max(0, _number(raw_text(out[at] or b"0"))),
                allows if _said(allows) else "",
                float(due[at] or 0),
                rank or 0,
            )
        )
    return found


def limit_use(keys: QueueKeys, limits: Sequence[str], member: bytes) -> CommandCall[list[LimitUse]]:
    """How far these limits are used. member: the job's, as `schedule/member` makes it."""
    names = [part for limit in limits for part in (limit, of_all_keys(limit))]
    asked: list[tuple[Any, ...]] = []
    if limits:
        asked = [
            ("HMGET", keys.permits, *limits),
            ("HMGET", keys.limits, *names),
            ("HMGET", keys.declared, *limits),
            ("ZMSCORE", keys.tokens_due, *limits),
            *(("ZRANK", keys.group(limit), member) for limit in limits),
        ]
    return CommandCall(keys.meta, asked, _read_use)
