"""Where jobs of the model wait, how they come back to it, and how they end."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from typing import Any

from tests.property.entities import Consumer, Job
from tests.property.wake_ups import WakeUps

DEFAULT_MAX = 10
DEFAULT_CRASHES = 3
CRASH_DELAY_MS = 1000


class Waiting(WakeUps):
    """Lists, groups, the schedule, times to live, records."""

    def rank(self, id: str) -> tuple[int, int, Any, int]:
        """Its place among those of all levels: in `open`."""
        job = self.jobs[id]
        if job.sort:
            return -job.level, 2, job.sort, job.position
        return -job.level, int(not job.due), *job.order

    def place(self, job: Job) -> int:
        """Into its list, where its due time and position say; behind others of its group, by its
        position alone. Returns how many are ready by that."""
        if job.held == "h":
            job.held, job.due = "h1", 0
        if job.held and not job.group:
            self.open.insert(bisect(self.open, self.rank(job.id), key=self.rank), job.id)
            return 1
        if job.front:
            job.front, job.due = "", self.front(job.level)
        if job.key:
            self.latest[job.key] = job.id
        if job.key or job.sort:
            self.open.insert(bisect(self.open, self.rank(job.id), key=self.rank), job.id)
            return 1
        if job.group and self.group_turns.setdefault(job.group, job.id) == job.id:
            self.open.insert(bisect(self.open, self.rank(job.id), key=self.rank), job.id)
            return 1
        if job.group:
            job.due = 0
            others = self.blocked.setdefault(job.group, [])
            others.insert(bisect(others, job.order, key=self.order), job.id)
            return 0
        ids = self.lists.setdefault((-job.level, int(not job.due)), [])
        ids.insert(bisect(ids, job.order, key=self.order), job.id)
        return 1

    def front(self, level: int) -> int:
        """A due time before those of all that stand in a level, or are due."""
        times = [self.order(id)[0] for id in self.lists.get((-level, 0), ())]
        others = [self.jobs[id] for id in self.open if not self.jobs[id].sort]
        times += [job.due for job in others if job.level == level and job.due]
        times += [due for due, *_ in self.scheduled]
        return min([self.now, *(time - 1 for time in times)])

    def displace(self, jobs: list[Job], by: Consumer | None = None) -> list[Job]:
        """These become ready in this order, and what waits of their keys ends. Returns those of
        them that no other one displaces."""
        older: list[str] = []
        for job in jobs:
            before = self.latest.get(job.key, job.id)
            if job.key and job.id not in older:
                older += [before] if before != job.id else []
                self.latest[job.key] = job.id
        mine = [job.id for job in jobs]
        scheduled = [id for *_, id in self.scheduled]
        over = [[id for id in older if id in some] for some in (mine, self.open, scheduled)]
        self.open = [id for id in self.open if id not in over[1]]
        self.scheduled = [entry for entry in self.scheduled if entry[-1] not in over[2]]
        victims = [id for some in over for id in some]
        if victims:
            self.end(victims, "R", "displaced", by)
            self.counts["displaced"] += len(victims)
        return [job for job in jobs if job.id not in victims]

    def trim(self, ready: int, by: Consumer | None = None) -> int:
        """The oldest of the lowest level end where more jobs, or bytes, are ready than the ring
        holds. Returns of how many of the `ready` ones consumers are still to be notified."""
        left = self.elements() - len(self.marks)
        if not self.ring and not self.ring_bytes:
            return ready
        there = [id for its in self.lists.values() for id in its if id in self.jobs]
        size = sum(len(self.jobs[id].body) for id in (*there, *self.open))

        def full() -> bool:
            return 0 < self.ring < left or 0 < self.ring_bytes < size

        ids: list[str] = []
        levels = {level for level, _ in self.lists} | {-self.jobs[id].level for id in self.open}
        for level in sorted(levels, reverse=True):
            # of those with sort keys the last ones, before the others
            mine = [id for id in self.open if -self.jobs[id].level == level]
            while full() and mine:
                ids.append(mine.pop())
                self.open.remove(ids[-1])
                left -= 1
                size -= len(self.jobs[ids[-1]].body)
            for key in ((level, 0), (level, 1)):
                while full() and (there := self.lists.get(key, [])):
                    ids.append(there.pop(0))
                    left -= ids[-1] in self.jobs
                    size -= len(self.jobs[ids[-1]].body) if ids[-1] in self.jobs else 0
        self.counts["displaced"] += sum(id in self.jobs for id in ids)
        self.end(ids, "R", "displaced", by)
        return min(ready, left)

    def superseded(self, job: Job) -> bool:
        """Whether a newer one of its key has come: so it ends where it comes back."""
        if not job.key or self.latest.get(job.key) == job.id:
            return False
        del self.jobs[job.id]
        self.counts["displaced"] += 1
        return True

    def forget(self, jobs: list[Job], done: bool = False) -> None:
        """They are gone for good. done: as they should be, so that they keep what they have for a
        period."""
        for job in jobs:
            if self.latest.get(job.key) == job.id:
                del self.latest[job.key]
            if not (done and job.lasts.isdigit() and self.in_period(job.unique_key)):
                self.free(job)

    def free(self, job: Job) -> None:
        """Its unique key is not its own any more."""
        if job.unique and self.unique.get(job.unique_key) == job.id:
            del self.unique[job.unique_key]
            if job.lasts.isdigit():
                self.periods.pop(job.unique_key, None)

    def own(self, jobs: list[Job], taken: bool = False) -> None:
        """They have their unique keys from now on. taken: a consumer has the one job already."""
        for job in jobs:
            if job.unique and not (taken and job.lasts == "s"):
                self.unique[job.unique_key] = job.id
            if job.lasts.isdigit():
                began = max(self.now, job.due) if job.answer == "t" else self.now
                self.periods[job.unique_key] = began + int(job.lasts)

    def replace(self, jobs: list[Job], others: Mapping[str, str]) -> None:
        """Others that wait get their envelopes, and the times of those that put off."""
        for job in jobs:
            had = self.jobs[others[job.id]]
            had.body = job.body
            place = next((entry for entry in self.scheduled if entry[-1] == had.id), None)
            if job.answer != "d" or not job.due or not place or had.deliveries or had.attempts:
                continue
            due = min(job.due, had.enqueued + job.most) if job.most else job.due
            if due <= self.now:
                continue
            self.scheduled.remove(place)
            sooner, had.due = due < had.due, due
            self.schedule(had, due)
            if sooner and not self.paused:
                self.watch([due])
        self.gone([others[job.id] for job in jobs], None)

    def rival(self, job: Job) -> str:
        """The id of the job that has its unique key; "" where none has."""
        other = self.unique.get(job.unique_key, job.id) if job.unique else job.id
        if other == job.id or (self.late(other) and not self.holder(other)):
            return ""
        return other if other in self.jobs or self.in_period(job.unique_key) else ""

    def in_period(self, key: str) -> bool:
        """Whether the period of a unique key is not over."""
        return self.periods.get(key, 0) > self.now

    def keep(self, job: Job) -> None:
        """It waits again: until it is taken once more the key is its own, unless a newer one has
        it."""
        if job.lasts == "s":
            self.unique.setdefault(job.unique_key, job.id)

    def leave_groups(self, jobs: list[Job]) -> int:
        """The next of a group gets the turn where it was with one of these. Returns how many are
        ready by that."""
        opened = 0
        for job in jobs:
            if self.group_turns.get(job.group) != job.id:
                continue
            del self.group_turns[job.group]
            if others := self.blocked.get(job.group):
                self.place(self.jobs[others.pop(0)])
                opened += 1
                if not others:
                    del self.blocked[job.group]
        return opened

    def schedule(self, job: Job, due: int) -> None:
        self.scheduled.append((due, -job.level, job.position, job.id))
        self.scheduled.sort()

    def watch(self, added: list[int], soonest: int = 0) -> None:
        """A consumer that waits must know of an earlier due time. added: those of new jobs."""
        soonest = soonest or min(added)
        known = [due for due, *_ in self.scheduled if due <= soonest]
        if len(known) > added.count(soonest):
            return
        if self.watched():
            holder, self.timer = self.consumers[self.timer], ""
            self.wake(holder)
        elif not self.in_state("notified"):
            self.pass_timer()

    def expires(self, own: int) -> int:
        """When a job expires that is enqueued now with this time to live; 0: never."""
        default, least, most = self.ttl
        ms = own or default
        ms = min(ms or most, most) if most else ms
        return self.now + max(ms, least) if ms else 0

    def late(self, id: str) -> bool:
        """Whether it must not be delivered any more."""
        return id in self.jobs and 0 < self.jobs[id].expires < self.now

    def timed(self) -> dict[str, int]:
        """The jobs that wait with a time to live, and when it ends."""
        places = [*self.lists.values(), self.open, *self.blocked.values()]
        waiting = [id for ids in places for id in ids if id in self.jobs]
        return {id: self.jobs[id].expires for id in waiting if self.jobs[id].expires}

    def drop(self, ids: list[str], by: Consumer | None = None) -> int:
        """They are off their lists, and expired. Returns how many are ready by that."""
        if not ids:
            return 0
        jobs = [self.jobs[id] for id in ids]
        self.forget(jobs)
        for id in ids:
            self.returns_to.pop(id, None)
            if not self.kept_dead:
                del self.jobs[id]
        if self.kept_dead:
            self.fail(ids)
        self.counts["expired"] += len(ids)
        self.record(ids, "F" if self.kept_dead else "E")
        self.history += [(id, "expired") for id in ids]
        self.gone(ids, by)
        return self.leave_groups(jobs)

    def sweep(self, by: Consumer | None = None) -> None:
        """What waits and is expired goes, the earliest first; in lists a mark stays in each one's
        place. Who looks for work sees what others made way for; else consumers are notified."""
        late = sorted((ms, id) for id, ms in self.timed().items() if ms < self.now)
        ids = [id for _, id in late[: 16 if self.kept_dead else 64]]
        for key in [key for key, until in self.periods.items() if until <= self.now]:
            del self.periods[key]
            if self.unique.get(key) not in self.jobs:
                self.unique.pop(key, None)
        for id in ids:
            job = self.jobs[id]
            if self.leave_group_place(job):
                continue
            mark = f"\x01{job.position},{job.due}" if self.kept_dead else id
            self.marks[mark] = job.order
            there = self.lists[-job.level, int(not job.due)]
            there[there.index(id)] = mark
        opened = self.drop(ids, by)
        if not by:
            self.notify_of(opened)

    def leave_group_place(self, job: Job) -> str:
        """Out of its place among the ready heads of groups, or behind one; else ""."""
        if job.id in self.open:
            self.open.remove(job.id)
            return "ready"
        others = self.blocked.get(job.group, [])
        if job.id not in others:
            return ""
        others.remove(job.id)
        if not others:
            del self.blocked[job.group]
        return "blocked"

    def promote_due(self, by: Consumer | None = None) -> tuple[int, int, int]:
        """Returns how many became ready, how many were expired instead, and how many others were
        ready by that."""
        due = [entry for entry in self.scheduled if entry[0] <= self.now]
        del self.scheduled[: len(due)]
        late = [entry[-1] for entry in due if self.late(entry[-1])]
        opened = self.drop(late, by)
        due = [entry for entry in due if entry[-1] not in late]
        back, others, ready = [], [], 0
        for *_, id in due:
            job = self.jobs[id]
            where = self.returns_to.pop(id, "")
            if where == "tail":
                self.seq += 1
                job.position, job.due = self.seq, 0
                ready += self.place(job)
            else:
                (back if where else others).append(job)
        ready += sum([self.place(job) for job in back])
        # of several of a group that are due together the first one by position has the turn; before
        # all of them come those that are to come to the front
        there = self.displace(others, by)
        behind = sorted([job for job in there if not job.front], key=lambda job: job.position)
        for job in [*behind, *(job for job in there if job.front)]:
            ready += self.place(job)
        if due:
            self.tell_browsers()
            ready = self.trim(ready, by)
        return ready, len(late), opened

    def ripen(self, by: Consumer | None = None) -> None:
        """A step is about to compare jobs: what is due becomes ready first, as if it had become so
        at its time. by: the consumer that looks for work in this step."""
        if not self.scheduled or self.scheduled[0][0] > self.now:
            return
        ready, _, opened = self.promote_due(by)
        if not by:
            self.notify_of(ready)
            self.notify_of(opened)

    def record(self, ids: list[str], letter: str) -> None:
        if ids:
            self.turn_records()
            self.ended.update(dict.fromkeys(ids, letter))

    def turn_records(self) -> None:
        if self.since is not None:
            if self.now - self.since < self.keep_ms:
                return
            # a generation that is empty is no key: the older one is dropped all the same
            self.older, self.ended = self.ended, {}
        self.since = self.now

    def end(self, ids: list[str], letter: str, outcome: str, by: Consumer | None = None) -> None:
        """End jobs that are off their lists; marks go without a trace."""
        live = [id for id in ids if id in self.jobs]
        jobs = [self.jobs[id] for id in live]
        for id in ids:
            self.marks.pop(id, None)
            self.jobs.pop(id, None)
            self.returns_to.pop(id, None)
        self.record(live, letter)
        self.history += [(id, outcome) for id in live]
        self.gone(ids, by)
        self.forget(jobs)
        self.notify_of(self.leave_groups(jobs))

    def notify_of(self, opened: int) -> None:
        if opened and not self.paused:
            self.notify(opened)

    def last(self, job: Job) -> bool:
        too_many = job.crashes >= (job.max_crashes or DEFAULT_CRASHES)
        return job.attempts >= (job.max or DEFAULT_MAX) or too_many

    def release(self, c: Consumer, ids: list[str], charged: list[str]) -> int:
        """To their old positions; a crash that was the last one kills, one that was not the first
        puts off, the more the later it was charged. Returns how many wait."""
        back, dead, later, ended = 0, [], [], list[str]()
        for id in ids:
            job = self.jobs[id]
            c.held.remove(id)
            job.deliveries += 1
            job.attempts += id in charged
            job.crashes += id in charged
            if id in charged and self.last(job):
                dead.append(id)
            elif self.late(id):
                self.over.append(id)
            elif self.superseded(job):
                ended.append(id)
            elif id in charged and job.crashes > 1:
                self.keep(job)
                turn = 1 + charged.index(id)
                later.append(self.now + CRASH_DELAY_MS * 5 ** (job.crashes - 2) * turn)
                self.returns_to[id] = "old"
                self.schedule(job, later[-1])
            else:
                self.keep(job)
                self.place(job)
                back += 1
            self.counts["released"] += id not in [*dead, *self.over, *ended]
            if id in charged:
                self.history.append((id, "dead" if id in dead else "crash"))
            if id in ended:
                self.history.append((id, "displaced"))
        self.crashed_until += later
        if later and not self.paused:
            self.watch(self.crashed_until, min(later))
        self.record(dead, "F")
        self.record(ended, "R")
        back += self.drop(self.over, c)
        self.over = []
        died = [self.jobs[id] for id in dead]
        self.fail(dead)
        self.forget(died)
        return back + self.leave_groups(died)

    def suspects(self, c: Consumer) -> list[str]:
        """Whom the end of its lease charges: what was noted; else the oldest that it heard of, if
        it was suspected in its place before."""
        if noted := [id for id in c.held if c.running.get(id) == self.jobs[id].deliveries]:
            return noted
        for job in [self.jobs[id] for id in c.held if id not in c.unread][:1]:
            if job.position in job.suspected:
                return [job.id]
            job.suspected.append(job.position)
        return []
