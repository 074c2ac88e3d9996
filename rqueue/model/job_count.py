"""How many jobs a call of the administration changed, and why it did not change others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Self

__all__ = ["STAYED_MOST", "JobCount", "why_it_stays"]

STAYED_MOST = 1000
"""Jobs that stay as they are of which one call says why."""

_SAID = {
    "held": "a consumer has it",
    "holds": "a consumer has it",
    "dead": "it is a dead letter",
    "ended": "it has ended",
    "ready": "it is ready",
    "scheduled": "it is scheduled",
    "sorted": "its sort key says where it stands",
    "blocked": "it is ready, behind another job of its group",
    "unknown": "this queue has no such job",
    "damaged": "it cannot be read",
    "other": "it changes all the time",
    "deferred": "it waits for other jobs of this queue",
    "waited": "other jobs of this queue wait for it",
    "results": "it has the results of jobs that it waited for, and they stay in this queue",
    "known": "the other queue knows a job of this id",
}


def why_it_stays(said: str) -> str:
    """Why a job stays as it is, for people, by what a script answered; other texts as they are."""
    return _SAID.get(said, said)


class JobCount(int):
    """How many jobs were changed: a number. stayed: why others that were meant were not, in words,
    by their ids; of `STAYED_MOST` at the most."""

    stayed: Mapping[str, str]

    def __new__(cls, jobs: int = 0, stayed: Mapping[str, str] | None = None) -> Self:
        """As an int is made."""
        made = super().__new__(cls, jobs)
        made.stayed = stayed or {}
        return made

    @classmethod
    def of(cls, answers: Iterable[tuple[str, str]], done: Iterable[str]) -> Self:
        """From what a script answered of each job; those of `done` are changed."""
        counted, good = 0, frozenset(done)
        stayed: dict[str, str] = {}
        for id_, was in answers:
            if was in good:
                counted += 1
            elif len(stayed) < STAYED_MOST:
                stayed[id_] = why_it_stays(was)
        return cls(counted, stayed)

    @classmethod
    def of_shards(cls, ids: Iterable[str], counts: Iterable[JobCount]) -> Self:
        """Of jobs that were named in several queues, each of which has some: a job stays where none
        of them changed it."""
        said: dict[str, list[str]] = {id_: [] for id_ in ids}
        done, changed = 0, set[str]()
        for count in counts:
            done += int(count)
            for id_, reasons in said.items():
                if id_ in count.stayed:
                    reasons.append(count.stayed[id_])
                else:
                    changed.add(id_)
        unknown = _SAID["unknown"]
        stayed = {
            id_: next((why for why in reasons if why != unknown), unknown)
            for id_, reasons in said.items()
            if id_ not in changed
        }
        return cls(done, dict(islice(stayed.items(), STAYED_MOST)))

    def __add__(self, other: int) -> JobCount:
        """Both together."""
        more = other.stayed if isinstance(other, JobCount) else {}
        both = islice({**self.stayed, **more}.items(), STAYED_MOST)
        return JobCount(int(self) + int(other), dict(both))
