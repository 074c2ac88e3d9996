"""Build the calls that say what limits allow, and look at them."""

from __future__ import annotations

from typing import Any, NamedTuple

from rqueue.model.job_limit import JobLimit, of_all_keys
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import limits
from rqueue.protocol.replies import raw_text

__all__ = ["LimitInfo", "read_limits", "set_limit"]


class LimitInfo(NamedTuple):
    """A limit of a queue, or what is set for all its keys (`key` is "*" then). `rate`: it is one of
    so many jobs in a time. `most`: what was set for it; None: its jobs say how many; of a rate in
    `per_ms`, and `burst` at once. `out`: jobs that are ready or run, of a rate the tokens of those
    that are ready; `waiting`: those that wait for a permit, or tokens. `next_ms`: when the first of
    those finds its tokens, ms since the epoch; 0: no time says that."""

    name: str
    key: str
    most: int | None
    out: int
    waiting: int
    rate: bool = False
    per_ms: int = 0
    burst: int = 0
    next_ms: int = 0


def _read_flag(reply: Any) -> bool:
    return bool(reply[1])


def set_limit(keys: QueueKeys, limit: str, allows: str) -> ScriptCall[bool]:
    """Say what a limit (escaped) allows, an `allows_text`; "": what the jobs say. Answers whether
    something was said before."""
    return ScriptCall("set_limit", keys.meta, (limit, allows), _read_flag, (limits.POLICY.name,))


def _texts(flat: Any) -> dict[str, str]:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return {raw_text(name): raw_text(said) for name, said in pairs}


def _read_infos(reply: Any) -> list[LimitInfo]:
    out, most, due = map(_texts, (reply[1], reply[2], reply[4]))
    waiting = {raw_text(name): count for name, count in zip(*[iter(reply[3])] * 2, strict=True)}
    found = []
    for field in sorted(
        {*out, *most, *waiting}, key=lambda field: (field.lstrip("@"), field[0] == "@")
    ):
        limit = JobLimit.parse(f"{field}:1")
        said = most.get(field, most.get(of_all_keys(field)))
        if said is not None:
            limit = limit.allowing(said)
        found.append(
            LimitInfo(
                limit.name,
                limit.key,
                None if said is None else limit.most,
                int(out.get(field, 0)),
                waiting.get(field, 0),
                field.startswith("@"),
                limit.per_ms,
                limit.burst,
                int(float(due.get(field, 0))),
            )
        )
    return found


def read_limits(keys: QueueKeys) -> ScriptCall[list[LimitInfo]]:
    """All limits of which permits are out, or that are waited for or set, by name and key."""
    return ScriptCall("read_limits", keys.meta, (), _read_infos)
