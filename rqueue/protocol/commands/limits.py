"""Build the calls that say what limits allow, and look at them."""

from __future__ import annotations

from typing import Any, NamedTuple

from rqueue.model.job_limit import JobLimit
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import limits
from rqueue.protocol.replies import raw_text

__all__ = ["LimitInfo", "read_limits", "set_limit"]


class LimitInfo(NamedTuple):
    """A limit of a queue, or what is said of all its keys (`key` is "" then). `most`: what was set
    for it; None: its jobs say how many. `out`: jobs that are ready or run; `waiting`: those that
    wait for a permit."""

    name: str
    key: str
    most: int | None
    out: int
    waiting: int


def _read_flag(reply: Any) -> bool:
    return bool(reply[1])


def set_limit(keys: QueueKeys, limit: str, most: int | None) -> ScriptCall[bool]:
    """Say how many jobs a limit (escaped) allows; None: what the jobs say. Answers whether
    something was said before."""
    args = (limit, "" if most is None else most)
    return ScriptCall("set_limit", keys.meta, args, _read_flag, (limits.POLICY.name,))


def _numbers(flat: Any) -> dict[str, int]:
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return {raw_text(name): int(number) for name, number in pairs}


def _read_infos(reply: Any) -> list[LimitInfo]:
    out, most, waiting = map(_numbers, reply[1:4])
    found = []
    for field in sorted({*out, *most, *waiting}):
        limit = JobLimit.parse(f"{field}:1")
        allowed = most.get(field, most.get(field.partition("=")[0]))
        found.append(
            LimitInfo(limit.name, limit.key, allowed, out.get(field, 0), waiting.get(field, 0))
        )
    return found


def read_limits(keys: QueueKeys) -> ScriptCall[list[LimitInfo]]:
    """All limits of which permits are out, or that are waited for or set, by name and key."""
    return ScriptCall("read_limits", keys.meta, (), _read_infos)
