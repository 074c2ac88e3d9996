"""What of a packed job says into which shard it goes, and what of it is of one queue alone."""

from __future__ import annotations

from rqueue.errors import ConfigError
from rqueue.model.signing import split_signature
from rqueue.protocol.commands.enqueue import Put

__all__ = ["key_of", "unsigned"]


def key_of(put: Put, own: bool) -> str:
    """What says where a job goes; "": nothing. Raises ConfigError where two things would."""
    if put.key:
        return put.key
    if not put.unique:
        return put.group or ("" if own else put.id)
    unique = put.unique.partition(":")[2]
    if put.group and unique:
        raise ConfigError(
            "key",
            "a job with a group and a unique key goes into the shard of neither: say with a key"
            " which jobs go together",
        )
    return unique or ("" if own else put.id)


def unsigned(put: Put) -> Put:
    """A signature holds for one queue: that of a shard is made when the shard is known."""
    body = put.envelope
    return put._replace(envelope=split_signature(body).json) if body[:1] == b"S" else put
