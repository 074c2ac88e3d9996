"""The queue's order of jobs that a consumer holds."""

from __future__ import annotations

from typing import Any

from rqueue.errors import Undecodable
from rqueue.model.job import Delivery

Place = tuple[int, int, Any, int]
"""-level, which of its jobs, due time or sort key, position."""

DUE, READY, SORTED = range(3)
"""Which jobs of a level come first."""


def in_order(job: Delivery) -> Place:
    """Sort key: the queue's order. Those that were due come first in their level, by due time;
    those with sort keys last, by them. One that cannot be read comes first of all: it keeps no
    other job waiting."""
    try:
        if sort := job.header.sort:
            return -job.level, SORTED, sort, job.position
        return -job.level, DUE if job.due_ms else READY, job.due_ms, job.position
    except Undecodable:
        return -10_000, DUE, 0, 0


def position_of(job: Delivery) -> int:
    """Its position, 0 where it cannot be read."""
    try:
        return job.position
    except Undecodable:
        return 0


def came_back(job: Delivery) -> bool:
    """Whether it was delivered before; False where it cannot be read."""
    try:
        return job.redelivered
    except Undecodable:
        return False


def in_turn(jobs: list[Delivery]) -> list[Delivery]:
    """Jobs in the order in which a consumer begins them. jobs: in the order of taking.

    Jobs that were taken earlier come first (X-25). Only a job that was released and taken again may
    stand behind a later job of its kind, one that was delivered directly meanwhile: then all go by
    the queue's order, for a job keeps its place (Q-01). Jobs with sort keys stay as they were
    taken: one that goes before them may come at any time (Q-14).
    """
    last: dict[tuple[int, int], Place] = {}
    for job in jobs:
        key = in_order(job)
        if key < last.get(key[:2], key) and key[1] != SORTED:
            return sorted(jobs, key=in_order)
        last[key[:2]] = key
    return jobs


def overtakers(jobs: list[Delivery]) -> set[str]:
    """Ids of those that stand before an earlier job of their kind, and of all behind the first of
    them. jobs: in the order of taking.

    They were delivered before the other one was released, or lost with a reply: between them there
    may be more that wait. A consumer that can release them begins all in the queue's order. What
    has a sort key is none of them (see `in_turn`).
    """
    first: dict[tuple[int, int], Place] = {}
    limit: dict[tuple[int, int], Place] = {}
    keys = [in_order(job) for job in jobs]
    for key in reversed(keys):
        kind = key[:2]
        if key > first.get(kind, key) and key[1] != SORTED:
            limit[kind] = min(limit.get(kind, key), key)
        else:
            first[kind] = key
    return {
        job.id
        for job, key in zip(jobs, keys, strict=True)
        if key[:2] in limit and key >= limit[key[:2]]
    }
