"""A queue in plain Python: what the scripts are to do, in lists and dicts, without their tricks.

Every method is one script's effect; `now` is the time that the script returned. Where the
scripts bound their work (slices, caps) the model does not: tests stay below the bounds. It is built
up in modules: `entities`, `state`, `wake_ups`, `waiting`, `consuming`, `leaving`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.property.entities import Consumer, Job
from tests.property.leaving import Leaving

NOBODY: Mapping[str, str] = {}


class Model(Leaving):
    """What producers and people do."""

    def taker(self, job: Job, total: int) -> Consumer | None:
        """Whom the one job that arrives is handed to directly."""
        if (
            job.group in self.group_turns
            or total != 1
            or job.due
            or self.paused
            or self.work_waits()
        ):
            return None
        floor = self.highest_notified()
        for c in self.interested():
            if floor is not None and c.priority < floor:
                return None
            size = len(job.body) + 64
            if c.free > 0 and (not c.room or not c.held or self.size(c.held) + size <= c.room):
                return c
        return None

    def new_job(
        self,
        id: str,
        body: bytes,
        priority: int,
        max: int,
        crashes: int,
        due: int,
        ttl: int = 0,
        group: str = "",
        key: str = "",
        hold: bool = False,
        sort: str = "",
        unique: str = "",
        front: bool = False,
    ) -> Job:
        due = due if due > self.now else 0
        level = min(9, priority)
        job = Job(
            id,
            body,
            level,
            0,
            self.now,
            max,
            due,
            max_crashes=crashes,
            group=group,
            key=key,
            sort=sort,
        )
        job.unique = unique
        job.expires = self.expires(ttl)
        job.held = "h" if hold and due else ""
        job.front = str(level) if front or self.lifo else ""
        return job

    def stand_ins(self, jobs: list[Job], over: Mapping[str, str] = NOBODY) -> dict[str, str]:
        """For which of these other jobs stand that have their unique keys: id -> the other's.
        over: those that leave in the same step, and whether they are done or dead then."""
        new: dict[str, str] = {}
        found = {}
        for job in jobs:
            if not job.unique or self.knows(job.id):
                continue
            other = new.get(job.unique_key) or self.rival(job)
            leaves = over.get(other)
            stands = other and (not leaves or (self.in_period(job.unique_key) and leaves == "done"))
            taken = leaves or self.state_of(other) in ("held", "done")
            if stands and taken and job.replaces and other not in new.values():
                if job.answer == "t" and self.in_period(job.unique_key):
                    job.due = max(job.due, self.periods[job.unique_key])
                stands = False
            if stands:
                found[job.id] = other
            else:
                new[job.unique_key] = job.id
        return found

    def state_of(self, id: str) -> str:
        """Where a job is that has a unique key; "" where it is not accepted yet."""
        if id not in self.jobs:
            return "done" if self.knows(id) else ""
        if self.holder(id):
            return "held"
        if any(entry[-1] == id for entry in self.scheduled):
            return "scheduled"
        return "blocked" if any(id in some for some in self.blocked.values()) else "ready"

    def enqueue(
        self,
        jobs: list[Job],
        special: bool = False,
        over: Mapping[str, str] = NOBODY,
        *,
        direct: bool = True,
    ) -> str:
        """Accept these; returns whom the job was handed to. special: some have unusual terms. over:
        see `stand_ins`. direct: one alone may be delivered directly."""
        total = len(jobs)
        fresh = {job.id: job for job in reversed(jobs) if not self.knows(job.id)}
        jobs = [job for job in jobs if fresh.get(job.id) is job]
        others = self.stand_ins(jobs, over)
        replacing = [job for job in jobs if job.id in others and job.replaces]
        for job in replacing:
            if (other := others[job.id]) not in self.jobs:
                fresh[other].body = job.body
        replacing = [job for job in replacing if others[job.id] in self.jobs]
        jobs = [job for job in jobs if job.id not in others]
        if not jobs:
            self.replace(replacing, others)
            return ""
        taker = self.taker(jobs[0], total) if direct else None
        ready = [job for job in jobs if not job.due]
        later = [job for job in jobs if job.due]
        for job in jobs:
            self.seq += 1
            job.position = self.seq
            self.jobs[job.id] = job
            self.accepted.append(job.id)
        self.own(jobs, taken=bool(taker))
        self.replace(replacing, others)
        if taker:
            if jobs[0].group:
                self.group_turns[jobs[0].group] = jobs[0].id
            jobs[0].front = ""
            taker.held.append(jobs[0].id)
            self.move(taker, "notified" if taker.free > 0 else "not_interested")
            id, value = jobs[0].id.encode(), jobs[0].value
            taker.wake.append(b"J" + len(id).to_bytes(4, "big") + id + value)
            if taker.name == self.timer:
                self.pass_timer()
            self.displace(jobs)
        elif ready:
            self.notify_of(self.trim(sum([self.place(job) for job in self.displace(ready)])))
        for job in later:
            self.schedule(job, job.due)
        if later and not self.paused:
            self.watch([job.due for job in later])
        self.tell_browsers()
        if special or self.ttl[0] or self.ttl[2]:
            self.sweep()
        return taker.name if taker else ""

    def resume(self) -> bool:
        if not self.paused:
            return False
        self.paused, self.timer = False, ""
        work = self.elements() + sum(due <= self.now for due, *_ in self.scheduled)
        if work:
            self.notify(work)
        # the consumer that watched the schedule may have looked meanwhile, and learned nothing
        self.pass_timer()
        return True

    def promote(self, ids: list[str]) -> int:
        chosen = [entry for entry in self.scheduled if entry[-1] in ids]
        times = sorted({due for due, *_ in chosen})
        for was, level, position, id in chosen:
            # in the order of their due times, the last one now
            due = min(was, self.now - (len(times) - 1 - times.index(was)))
            self.scheduled.remove((was, level, position, id))
            self.scheduled.append((due, level, position, id))
            if id not in self.returns_to:
                self.jobs[id].due = due
        self.scheduled.sort()
        count = len(chosen)
        if self.paused:
            return count
        promoted, late, opened = self.promote_due()
        if promoted:
            self.notify(promoted)
        self.notify_of(opened)
        return max(count - late, promoted)

    def reorder(self, ids: list[str], level: int | None) -> list[str]:
        """To the tail of a level, or to the front of their own, the first one named first."""
        turns = [*enumerate(ids)] if level is not None else [*enumerate(ids)][::-1]
        answers = {n: self.reorder_one(id, level) for n, id in turns}
        changed = [id for n, id in turns if answers[n] == "changed"]
        self.history += [(id, "changed") for id in changed]
        if moved := [id for id in changed if all(entry[-1] != id for entry in self.scheduled)]:
            self.tell_browsers()
            self.gone(moved)
        return [answers[n] for n in range(len(ids))]

    def reorder_one(self, id: str, level: int | None) -> str:
        job = self.jobs.get(id)
        if job is None:
            return "ended" if self.knows(id) else "unknown"
        if id in self.dead:
            return "dead"
        if job.level == level:
            return "same"
        entry = next((entry for entry in self.scheduled if entry[-1] == id), None)
        if entry:
            if level is None:
                return "scheduled"
            self.scheduled.remove(entry)
            job.level = level
            self.schedule(job, entry[0])
            if id in self.returns_to:
                job.due = self.now
            return "changed"
        if self.holder(id):
            return "held"
        if job.sort and level is None:
            return "sorted"
        if id in self.blocked.get(job.group, ()):
            return f"blocked {self.group_turns[job.group]}"
        if id in self.open:
            self.open.remove(id)
        else:
            mark = f"\x01{job.position},{job.due}"
            self.marks[mark] = job.order
            there = self.lists[-job.level, int(not job.due)]
            there[there.index(id)] = mark
        if level is None:
            job.due = self.front(job.level)
        else:
            self.seq += 1
            job.level, job.position, job.due = level, self.seq, 0
        self.place(job)
        return "changed"

    def unpark(self) -> int:
        back = [entry for entry in self.scheduled if self.returns_to.get(entry[-1]) == "park"]
        for entry in back:
            self.scheduled.remove(entry)
            del self.returns_to[entry[-1]]
        late = [entry[-1] for entry in back if self.late(entry[-1])]
        back = [entry for entry in back if entry[-1] not in late]
        self.notify_of(self.drop(late))
        for entry in back:
            self.place(self.jobs[entry[-1]])
        self.notify_of(self.trim(len(back)))
        return len(back)

    def cancel(self, id: str, held: bool) -> str:
        job = self.jobs.get(id)
        if not job:
            return "ended" if self.knows(id) else "unknown"
        if id in self.dead:
            return "dead"
        was, holder = "ready", self.holder(id)
        if holder:
            if not held:
                return "holds"
            was = "held"
            holder.held.remove(id)
            holder.wake.append(b"X" + id.encode())
        elif any(entry[-1] == id for entry in self.scheduled):
            was = "scheduled"
            self.scheduled = [entry for entry in self.scheduled if entry[-1] != id]
            self.returns_to.pop(id, None)
        del self.jobs[id]
        if was == "ready":
            placed = self.leave_group_place(job)
            was = placed or was
            if not placed:
                self.marks[id] = job.order
            self.gone([id])
        self.record([id], "C")
        self.history.append((id, "cancelled"))
        self.forget([job])
        self.notify_of(self.leave_groups([job]))
        return was

    def purge(self, scheduled: bool, limit: int) -> int:
        ids: list[str] = []
        for group in sorted(self.blocked):
            while self.blocked[group] and len(ids) < limit:
                ids.append(self.blocked[group].pop(0))
            if not self.blocked[group]:
                del self.blocked[group]
        for key in sorted(self.lists):
            while self.lists[key] and len(ids) < limit:
                ids.append(self.lists[key].pop(0))
        while self.open and len(ids) < limit:
            ids.append(self.open.pop(0))
        while scheduled and self.scheduled and len(ids) < limit:
            ids.append(self.scheduled.pop(0)[-1])
        live = [id for id in ids if id in self.jobs]
        self.end(ids, "P", "purged")
        return len(live)

    def purge_held(self, name: str, ids: list[str]) -> tuple[int, list[str]]:
        me = self.consumers[name]
        mine = [id for id in dict.fromkeys(ids) if id in me.held]
        for id in mine:
            me.held.remove(id)
            me.wake.append(b"X" + id.encode())
        self.end(mine, "P", "purged")
        others = [id for id in ids if id in self.jobs and id not in self.dead]
        return len(mine), others

    def requeue(self, ids: list[str]) -> int:
        count, ready = 0, 0
        for id in ids:
            if id in self.dead and not self.rival(self.jobs[id]):
                if self.jobs[id].unique:
                    self.periods.pop(self.jobs[id].unique_key, None)
                    self.unique[self.jobs[id].unique_key] = id
                self.dead.remove(id)
                self.older.pop(id, None)
                if self.ended.pop(id, None) and not self.ended:
                    self.since = None
                self.seq += 1
                job = self.jobs[id]
                job.position, job.due, job.attempts, job.crashes = self.seq, 0, 0, 0
                job.expires = self.expires(0)
                self.displace([job])
                ready += self.place(job)
                count += 1
        if count:
            self.tell_browsers()
        self.notify_of(self.trim(ready))
        return count

    def purge_dead(self, ids: list[str]) -> int:
        ids = [id for id in dict.fromkeys(ids) if id in self.dead]
        self.dead = [id for id in self.dead if id not in ids]
        self.end(ids, "P", "purged")
        return len(ids)
