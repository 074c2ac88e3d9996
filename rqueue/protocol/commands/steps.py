"""Build the call that keeps what a job's code has done so far."""

from __future__ import annotations

from typing import Any

from rqueue.protocol.call import ScriptCall, text
from rqueue.protocol.keys import QueueKeys


def _read_length(reply: Any) -> int | None:
    said = text(reply[1])
    return int(said) if said else None


def keep_steps(
    keys: QueueKeys, consumer: str, term: str, id: str, deliveries: int, steps: str
) -> ScriptCall[int | None]:
    """Keep `steps` (`KeptSteps.text`) with a job that this consumer holds; the bytes of its
    value, None where it does not hold it, or by another delivery."""
    args = [consumer, term, id, str(deliveries), steps]
    return ScriptCall("keep_steps", keys.meta, args, _read_length)
