# Generated from rqueue/client/_async/shard_course.py (`make generate`): do not edit.
"""What the table of a queue's shards asks for, done call by call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rqueue.model.shard_table import Shard, ShardTable
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.course import run_course
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.sharding import advancing

__all__ = ["TableSteps", "advance"]

Run = Callable[[Shard | None, ScriptCall[Any]], Any]

TableSteps = Callable[[], ShardTable]
"""Does what the table of a queue's shards asks for."""


def advance(run: Run, keys: QueueKeys) -> ShardTable:
    """Do all that the table asks for and can be done now, each call by `run`, which is given the
    shard that it goes to (None: where the table is); returns the table. Raises as
    `rqueue.protocol.sharding.advancing`."""
    return run_course(advancing(keys), lambda asked: run(*asked))
