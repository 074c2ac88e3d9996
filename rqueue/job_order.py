"""The queue's order of jobs that are in somebody's hands."""

from __future__ import annotations

from rqueue.errors import Undecodable
from rqueue.job import Delivery


def in_order(job: Delivery) -> tuple[int, bool, int, int]:
    """Sort key: the queue's order. Those that were due come first in their level, by due time. One
    that cannot be read comes first of all: it is in nobody's way."""
    try:
        return -job.level, not job.due_ms, job.due_ms, job.position
    except Undecodable:
        return -10_000, False, 0, 0


def position_of(job: Delivery) -> int:
    """Its position, 0 where it cannot be read."""
    try:
        return job.position
    except Undecodable:
        return 0


def in_turn(jobs: list[Delivery]) -> list[Delivery]:
    """Jobs in the order in which a consumer begins them. jobs: in the order of taking.

    What was taken earlier comes first (X-25). Only what was given back and taken again may stand
    behind a later job of its kind, one that was handed over meanwhile: then all go by the queue's
    order, for a job keeps its place (Q-01).
    """
    last: dict[tuple[int, bool], tuple[int, bool, int, int]] = {}
    for job in jobs:
        key = in_order(job)
        if key < last.get(key[:2], key):
            return sorted(jobs, key=in_order)
        last[key[:2]] = key
    return jobs
