"""Build the calls that say what weights shares have, and look at them."""

from __future__ import annotations

from typing import Any, NamedTuple

from rqueue.model.names import check_share, group_of, group_text
from rqueue.model.share import OTHERS
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import shares
from rqueue.protocol.replies import raw_text

__all__ = ["ShareInfo", "read_shares", "set_share", "share_field"]


class ShareInfo(NamedTuple):
    """A share of a queue; its name is "" for the jobs of no share that name limits, "*" for all of
    which nothing is said. ready: jobs of it that may be taken, over all levels; weight: what it
    has; own: whether that was said of itself."""

    name: str
    ready: int
    weight: int
    own: bool


def share_field(name: str) -> str:
    """The share as it stands in fields and names of keys. Raises InvalidName."""
    return OTHERS if name == OTHERS else group_text(check_share(name))


def _read_flag(reply: Any) -> bool:
    return bool(reply[1])


def set_share(keys: QueueKeys, name: str, weight: int | None) -> ScriptCall[bool]:
    """Say what weight a share has ("*": all of which nothing is said); None: forget that. Answers
    whether something was said before. Raises InvalidName."""
    said = "" if weight is None else str(weight)
    args = (share_field(name), said)
    return ScriptCall("set_share", keys.meta, args, _read_flag, (shares.POLICY.name,))


def _read_infos(reply: Any) -> list[ShareInfo]:
    said = iter(reply[1])
    weights = {raw_text(name): int(weight) for name, weight in zip(said, said, strict=True)}
    ready: dict[str, int] = {}
    counts = iter(reply[2])
    for strand, count in zip(counts, counts, strict=True):
        name = raw_text(strand).partition(".")[2]
        ready[name] = ready.get(name, 0) + count
    others = weights.get(OTHERS, 1)
    return [
        ShareInfo(
            name if name == OTHERS else group_of(name),
            ready.get(name, 0),
            weights.get(name, others),
            name in weights,
        )
        for name in sorted({*weights, *ready})
    ]


def read_shares(keys: QueueKeys, most: int = 1000) -> ScriptCall[list[ShareInfo]]:
    """Shares that have ready jobs, about `most` of them, and those with weights of their own."""
    return ScriptCall("read_shares", keys.meta, (most,), _read_infos)
