"""A model of turns: what start-time fair queueing says of who is next, and of the tags after it."""

from __future__ import annotations

from collections import Counter

from rqueue.model.job import parse_value
from rqueue.model.names import group_text
from tests.support.snapshot import Snapshot

LEVEL = 10**14
UNIT = 1000


def tag_after(tag: int, weight: int) -> int:
    """The next of the places that a share of this weight has, `weight` in each unit."""
    return -(-(tag * weight // UNIT + 1) * UNIT // weight)


def tag_before(tag: int, weight: int, count: int) -> int:
    """The place of a share of this weight that lies so many before the one at `tag`."""
    place = tag // UNIT * weight + tag % UNIT * weight // UNIT - count
    return max(0, place // weight * UNIT + -(-(place % weight) * UNIT // weight))


class Turns:
    """Strands as they were before a step: their tags and how many ready jobs they have."""

    def __init__(self, look: Snapshot) -> None:
        self.look = look
        self.times = {level.decode(): int(time) for level, time in look.hash("turns").items()}
        self.weights = {name.decode(): int(said) for name, said in look.hash("weights").items()}
        self.tags: dict[str, int] = {}
        self.ready: dict[str, int] = {}
        for id, score, level, _ in look.ready_heads:
            strand = self.strand(id)
            self.tags[strand] = int(score) - (9 - level) * LEVEL
            self.ready[strand] = 1 + len(look.behind.get(strand, ()))
        for key, ids in look.lists.items():
            level = key.partition(":")[2]
            live = sum(not look.jobs.get(id, b"!").startswith(b"!") for id in ids)
            self.ready[level] = self.ready.get(level, 0) + live
            self.tags[level] = self.start(level)

    def strand(self, id: str) -> str:
        """Where a job stands while it is ready: the lists are the strand of no share."""
        head = parse_value(self.look.jobs[id])[0]
        return f"{head.level}.{group_text(head.share)}" if head.share else f"{head.level}"

    def start(self, strand: str) -> int:
        """The tag of a strand that gets its first job."""
        level = strand.partition(".")[0]
        served = self.look.scores(f"served:{level}").get(strand, 0)
        return max(self.times.get(level, 0), int(served))

    def weight(self, strand: str) -> int:
        return self.weights.get(strand.partition(".")[2] or "*", self.weights.get("*", 1))

    def taken(self, ids: list[str]) -> list[str]:
        """What is wrong with these jobs in this order, which one consumer took."""
        wrong = []
        # where no share waits, nobody counts turns
        counted = {
            strand.partition(".")[0]
            for strand, count in self.ready.items()
            if count and "." in strand
        }
        for id in ids:
            strand = self.strand(id)
            level = strand.partition(".")[0]
            rivals = {
                other: self.tags[other]
                for other, count in self.ready.items()
                if count and other.partition(".")[0] == level
            }
            if level in counted and self.tags[strand] > min(rivals.values()):
                wrong.append(f"{id} of {strand} came at {self.tags[strand]}, where {rivals} wait")
            self.ready[strand] -= 1
            if level in counted:
                self.times[level] = max(self.times.get(level, 0), self.tags[strand])
                self.tags[strand] = tag_after(self.tags[strand], self.weight(strand))
        return wrong

    def agree(self, after: Snapshot) -> list[str]:
        """What is wrong with the tags of strands now."""
        now = Turns(after)
        wrong = []
        for strand, tag in self.tags.items():
            level = strand.partition(".")[0]
            if level not in now.times:
                continue
            if "." in strand and now.ready.get(strand):
                found: int | None = now.tags[strand]
            else:
                found = int(after.scores(f"served:{level}").get(strand, 0)) or None
            # one that is past says nothing, and goes
            if found != tag and (found is not None or tag > self.times.get(level, 0)):
                wrong.append(f"the tag of {strand} is {found}, not {tag}")
            if now.times[level] != self.times.get(level):
                wrong.append(f"the time of {level} is {now.times}, not {self.times}")
        return wrong

    def back(self, ids: list[str], after: Snapshot, counted: bool) -> list[str]:
        """What is wrong with the tags of strands now that these jobs are back: what was not counted
        is not paid for."""
        now = Turns(after)
        wrong = []
        for strand, back in Counter(self.strand(id) for id in ids).items():
            level = strand.partition(".")[0]
            if level not in self.times or not now.ready.get(strand):
                continue
            count = 0 if counted else back
            began = self.tags[strand] if self.ready.get(strand) else self.start(strand)
            expected = tag_before(began, self.weight(strand), count) if count else began
            if "." not in strand:
                expected = max(expected, self.times[level])
            if now.tags.get(strand) != expected:
                wrong.append(f"{strand} is at {now.tags.get(strand)}, not {expected}")
        return wrong

    def began(self, after: Snapshot) -> list[str]:
        """What is wrong with the tags of strands that have ready jobs since then."""
        now = Turns(after)
        return [
            f"{strand} began at {tag}, not {self.start(strand)}"
            for strand, tag in now.tags.items()
            if "." in strand and not self.ready.get(strand) and tag != self.start(strand)
        ]
