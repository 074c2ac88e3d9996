"""The job that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rqueue.cli.exit_codes import NOT_FOUND, Failure
from rqueue.model.parents import PARENTS_MAX

if TYPE_CHECKING:
    from rqueue.inspector import Inspector
    from rqueue.inspector.jobs import Look

__all__ = ["named_job"]


def named_job(inspector: Inspector, id: str, queue: str | None) -> Look:
    """As `Inspector.job`. Raises Failure for a group without a callback, which has members and no
    job of its own id: it names those."""
    from rqueue.errors import UnknownJob

    try:
        return inspector.job(id, queue)
    except UnknownJob:
        last = _last_member(inspector, id, queue)
        if last < 0:
            raise
    there = f"'{id}.0'" + (f" to '{id}.{last}'" if last else "")
    one = "it is the one member" if not last else f"they are the {last + 1} members"
    raise Failure(f"no job '{id}', but {there}: {one} of a group, name a job of it", NOT_FOUND)


def _last_member(inspector: Inspector, id: str, queue: str | None) -> int:
    """The number of the last member, found in few looks; -1 where there is none."""
    there, missing = -1, 0
    while missing < PARENTS_MAX and _is_there(inspector, f"{id}.{missing}", queue):
        there, missing = missing, missing * 2 + 1
    while missing - there > 1:
        middle = (there + missing) // 2
        if _is_there(inspector, f"{id}.{middle}", queue):
            there = middle
        else:
            missing = middle
    return there


def _is_there(inspector: Inspector, id: str, queue: str | None) -> bool:
    from rqueue.errors import ConfigError, InvalidName, UnknownJob

    try:
        inspector.job(id, queue)
    except (UnknownJob, InvalidName):
        return False
    except ConfigError:  # several queues have one
        return True
    return True
