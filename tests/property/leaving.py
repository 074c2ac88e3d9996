"""Jobs of the model leave their places because people say so."""

from __future__ import annotations

from typing import Literal

from tests.property.consuming import Consuming

How = Literal["move", "expire", "reject"]
WORDS = {"move": "moved", "expire": "expired", "reject": "rejected"}


class Leaving(Consuming):
    """Into another queue, as expired, or to the dead letters."""

    def take_out(self, ids: list[str], how: How) -> list[str]:
        answers = [self.why_not(id, how) or WORDS[how] for id in ids]
        gone = [id for id, was in zip(ids, answers, strict=True) if was == WORDS[how]]
        for id in gone:
            self.take_place(id)
        jobs = [self.jobs[id] for id in gone]
        if how == "expire":
            opened = self.drop(gone)
            self.forget(jobs)
            self.notify_of(opened)
            return answers
        self.record(gone, "M" if how == "move" else "F")
        self.history += [(id, "moved" if how == "move" else "dead") for id in gone]
        if how == "move":
            self.outgoing += gone
            for id in gone:
                del self.jobs[id]
        else:
            self.fail(gone)
            self.counts["rejected"] += len(gone)
        self.gone(gone)
        self.forget(jobs)
        self.notify_of(self.leave_groups(jobs))
        return answers

    def why_not(self, id: str, how: How) -> str:
        if id not in self.jobs:
            return "ended" if self.knows(id) else "unknown"
        if id in self.dead:
            return "" if how == "move" else "dead"
        return "held" if self.holder(id) else ""

    def take_place(self, id: str) -> None:
        """Nothing of the id is left there: another mark takes its place, but at the head."""
        job = self.jobs[id]
        if id in self.dead:
            self.dead.remove(id)
        elif any(entry[-1] == id for entry in self.scheduled):
            self.scheduled = [entry for entry in self.scheduled if entry[-1] != id]
            self.returns_to.pop(id, None)
        elif not self.leave_group_place(job):
            there = self.lists[-job.level, int(not job.due)]
            if there[0] == id:
                there.pop(0)
            else:
                mark = f"\x01{job.position},{job.due}"
                self.marks[mark] = job.order
                there[there.index(id)] = mark
