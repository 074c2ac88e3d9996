"""Build the calls that look at what a queue keeps of its classes of jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import pairs, raw_text


def _read_classes(replies: Sequence[Any]) -> dict[str, str]:
    return {raw_text(labels): raw_text(number) for labels, number in pairs(replies[0]).items()}


def _read_sum(replies: Sequence[Any]) -> int:
    return sum(map(int, replies))


def classes_known(keys: QueueKeys) -> CommandCall[dict[str, str]]:
    """Labels, as in the headers of jobs -> number of their class."""
    return CommandCall(keys.meta, [("HGETALL", keys.classes)], _read_classes)


def class_sizes(keys: QueueKeys, numbers: Iterable[str]) -> CommandCall[int]:
    """How many jobs are ready in these classes."""
    return CommandCall(keys.meta, [("ZCARD", keys.job_class(n)) for n in numbers], _read_sum)


def refusal_sizes(keys: QueueKeys, terms: Iterable[str]) -> CommandCall[int]:
    """How many jobs are ready that the consumers of these terms refused."""
    return CommandCall(keys.meta, [("ZCARD", keys.refused(one)) for one in terms], _read_sum)
