"""Build the call that says, or forgets, whose a group is."""

from __future__ import annotations

from typing import Any, NamedTuple

from rqueue.model.names import group_text
from rqueue.protocol.call import ScriptCall, text
from rqueue.protocol.keys import QueueKeys


class Owned(NamedTuple):
    """A bucket of groups, and the consumer that owns it, or did until now; "" = none."""

    bucket: int
    owner: str


def _read_owned(reply: Any) -> Owned:
    return Owned(int(reply[1]), text(reply[2]))


def group_owner(
    keys: QueueKeys,
    group: str = "",
    *,
    bucket: int | None = None,
    consumer: str = "",
    reset: bool = False,
) -> ScriptCall[Owned]:
    """Whose a group is, or a bucket of groups; reset: it is nobody's any more, nor what a consumer
    owns."""
    said = "" if bucket is None else str(bucket)
    args = [group_text(group), said, consumer, "reset" if reset else "look"]
    return ScriptCall("group_owner", keys.meta, args, _read_owned)
