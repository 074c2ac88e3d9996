"""Build the calls that read the log of a write whose steps may be sent twice; see `Note`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall, text
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import pairs


class Progress(NamedTuple):
    """How far a run is in one queue: rows written by all its tasks, and how many of them were new
    jobs."""

    rows: int
    jobs: int


def _read_progress(replies: Sequence[Any]) -> Progress:
    rows, jobs = replies[0]
    return Progress(int(rows or 0), int(jobs or 0))


def _read_marks(replies: Sequence[Any]) -> bytes:
    marks: bytes = replies[0]
    return marks


def write_progress(keys: QueueKeys, run: str) -> CommandCall[Progress]:
    """How far a run is: right also while tasks are tried again."""
    return CommandCall(keys.meta, [("HMGET", keys.write(run), "rows", "jobs")], _read_progress)


def _read_logs(replies: Sequence[Any]) -> dict[tuple[int, int], str]:
    logs = {}
    for field, execution in pairs(replies[0]).items():
        epoch, colon, partition = text(field).partition(":")
        if colon:
            logs[int(epoch), int(partition)] = text(execution)
    return logs


def write_logs(keys: QueueKeys, run: str) -> CommandCall[dict[tuple[int, int], str]]:
    """The logs of a run in one queue, (epoch, partition) -> the execution that began each."""
    return CommandCall(keys.meta, [("HGETALL", keys.write(run))], _read_logs)


def written_marks(
    keys: QueueKeys, run: str, epoch: int, partition: int, start: int
) -> CommandCall[bytes]:
    """The marks of rows that a run has written for one partition of an epoch, from a byte on."""
    command = ("GETRANGE", keys.written(run, epoch, partition), start, -1)
    return CommandCall(keys.meta, [command], _read_marks)
