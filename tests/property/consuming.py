"""What consumers and their supervisors ask of the model."""

from __future__ import annotations

from tests.property.entities import Consumer, Job
from tests.property.waiting import DEFAULT_MAX, Waiting


class Consuming(Waiting):
    """Each method is the effect of one script."""

    def register(self, c: Consumer) -> None:
        self.terms += 1
        c.term = self.terms
        self.ranked = self.ranked or c.priority != 0
        work = not self.paused and self.work_waits()
        self.consumers[c.name] = c
        if c.mode == "browse":
            self.move(c, "browsers" if c.jobs > 0 else "not_interested")
        elif c.jobs <= 0:
            self.move(c, "not_interested")
        else:
            self.move(c, "notified" if work else "interested")
            if not work:
                self.pass_on()

    def interest(self, c: Consumer, jobs: int, room: int) -> None:
        c.jobs, c.room = jobs, room
        if c.mode == "browse":
            to = "browsers" if jobs > 0 else "not_interested"
            if c.state != to:
                self.settle_state(c, to)
        elif c.free <= 0:
            if c.state != "not_interested":
                self.settle_state(c, "not_interested")
                self.drop_timer(c)
                self.pass_on()
        elif c.state == "not_interested":
            work = not self.paused and self.work_waits()
            self.settle_state(c, "notified" if work else "interested")
            if not work:
                self.pass_on()

    def outranked(self, c: Consumer) -> bool:
        others = [o for o in self.consumers.values() if o is not c and o.free > 0]
        waiting = [o for o in others if o.state in ("interested", "notified")]
        return self.ranked and any(o.priority > c.priority for o in waiting)

    def take(self, c: Consumer) -> tuple[list[str], str, bool]:
        """The heads that fit, best first, the id of the first one that does not, and whether there
        may be more."""
        taken: list[str] = []
        room, empty = c.room - self.size(c.held), not c.held
        for key in sorted(self.lists) if not self.open else ():
            ids = self.lists[key]
            while ids and len(taken) < c.free:
                # as many heads as are wanted are looked at together
                heads = ids[: c.free - len(taken)]
                late = [id for id in heads if self.late(id)]
                self.over += late
                ids[:] = [id for id in ids if id not in late]
                for id in [id for id in heads if id not in late]:
                    if id not in self.marks:
                        room -= len(self.jobs[id].value)
                        if c.room and room < 0 and not (empty and not taken):
                            return taken, id, False
                        taken.append(id)
                    self.marks.pop(id, None)
                    del ids[0]
        return self.take_merged(c, taken, room, empty) if self.open else (taken, "", False)

    def take_merged(
        self, c: Consumer, taken: list[str], room: int, empty: bool
    ) -> tuple[list[str], str, bool]:
        """The same of a queue with groups: of the lists and the heads of groups, of which as many
        are looked at as are wanted."""
        page = self.open[: c.free]
        waiting = [(self.rank(id), self.open, id) for id in self.open]
        for key, ids in self.lists.items():
            waiting += [((*key, *self.order(id)), ids, id) for id in ids]
        for _, ids, id in sorted(waiting, key=lambda one: one[0]):
            if len(taken) == c.free or (len(page) == c.free and not {*page} & {*self.open}):
                break
            if self.late(id):
                self.over.append(id)
            elif id not in self.marks:
                room -= len(self.jobs[id].value)
                if c.room and room < 0 and not (empty and not taken):
                    return taken, id, False
                taken.append(id)
            self.marks.pop(id, None)
            ids.remove(id)
        # some of them ended instead: who comes next has not been looked at
        cut = len(page) == c.free and not {*page} & {*self.open}
        return taken, "", cut and len(taken) < c.free

    def watches(self, c: Consumer) -> int:
        """When this consumer is to pull by itself, ms; -1: another one watches the schedule."""
        if self.paused or not self.scheduled:
            return -1
        if self.watched() and self.timer != c.name:
            return -1
        self.timer = c.name
        return max(0, self.scheduled[0][0] - self.now)

    def pull(self, c: Consumer, jobs: int, room: int) -> tuple[list[str], int]:
        """Returns what it acquired, and the timer."""
        c.jobs, c.room = jobs, room
        taken: list[str] = []
        self.behind = ""
        if c.free <= 0:
            self.settle_state(c, "not_interested")
        elif self.paused:
            self.settle_state(c, "interested")
            self.drop_timer(c)
            return [], -1
        else:
            self.promote_due(c)
            if self.outranked(c):
                self.settle_state(c, "interested")
                self.pass_on()
                return [], self.watches(c) if c.state == "interested" else -1
            free = c.free
            if self.grouped:
                self.sweep(c)
            taken, tight, more = self.take(c)
            self.behind = c.held[-1] if taken and c.held else ""
            c.held += taken
            for id in taken:
                if self.jobs[id].lasts == "s":
                    self.free(self.jobs[id])
            self.gone(taken, c)
            if tight:
                waiting = self.byte_waiters.setdefault(tight, [])
                waiting += [c.name] if c.name not in waiting else []
            self.drop(self.over, c)
            self.over = []
            if not self.grouped:
                self.sweep(c)
            full = tight or len(taken) == free
            if not full and not more and not self.open:
                self.settle_state(c, "interested")
                return taken, self.watches(c)
            self.settle_state(c, "not_interested" if full else "notified")
        self.drop_timer(c)
        self.pass_on()
        return taken, -1

    def recall(self, c: Consumer) -> list[str]:
        c.wake.clear()
        return list(c.held)

    def settle(
        self,
        c: Consumer,
        ack: list[str],
        retry: list[tuple[str, int, str, bool, int | None]],
        reject: list[str],
        release: list[str],
        window: tuple[int, int] | None,
    ) -> tuple[list[str], list[str], int]:
        """Returns ids refused, what it acquired, and the timer."""
        named = [*ack, *(r[0] for r in retry), *reject, *release]
        earlier = {
            id
            for id, *_, before in retry
            if id in self.jobs and before not in (None, self.jobs[id].deliveries)
        }
        retry = [one for one in retry if one[0] not in earlier]
        mine = [id for id in c.held if id in named and id not in earlier]
        refused = [id for i, id in enumerate(named) if id not in mine or id in named[:i]]
        left: list[Job] = []
        for id in ack:
            if id in mine:
                c.held.remove(id)
                left.append(self.jobs.pop(id))
                self.counts["acked"] += 1
                self.history.append((id, "ack"))
        dead: list[str] = []
        lines: list[tuple[str, str]] = []
        later: list[int] = []
        back, gone, moved = self.leave_groups(left), list[Job](), list[Job]()
        self.forget(left, done=True)
        ended: list[str] = []
        for id, delay, return_to, charge, _ in retry:
            if id not in c.held:
                continue
            job = self.jobs[id]
            c.held.remove(id)
            self.history.append((id, "retry"))
            job.deliveries += 1
            job.attempts += charge
            if charge and job.attempts >= (job.max or DEFAULT_MAX):
                dead.append(id)
                lines.append((id, "dead"))
                continue
            if self.late(id):
                self.over.append(id)
                continue
            if self.superseded(job):
                ended.append(id)
                lines.append((id, "displaced"))
                continue
            self.keep(job)
            self.counts["retried" if charge else "released"] += 1
            if delay:
                due = self.now + delay
                if return_to in ("tail", "park", "aside"):
                    self.returns_to[id] = "old" if return_to == "aside" else return_to
                if return_to not in ("park", "aside"):
                    job.due = due
                self.schedule(job, due)
                later.append(due)
                if return_to == "tail":
                    gone.append(job)
            elif return_to == "tail":
                self.seq += 1
                job.position, job.due = self.seq, 0
                self.tell_browsers()
                moved.append(job)
            else:
                back += self.place(job)
        for id in reject:
            if id in c.held:
                c.held.remove(id)
                self.history.append((id, "reject"))
                self.jobs[id].deliveries += 1
                self.jobs[id].attempts += 1
                dead.append(id)
        self.counts["rejected"] += len(dead)
        if later and not self.paused:
            self.watch(later)
        self.record([id for id in ack if id in mine] + dead + ended, "")
        self.ended.update({id: "D" for id in ack if id in mine} | dict.fromkeys(dead, "F"))
        self.ended.update(dict.fromkeys(ended, "R"))
        died = [self.jobs[id] for id in dead]
        self.fail(dead)
        self.forget(died)
        self.history += lines
        back += self.release(c, [id for id in release if id in c.held], [])
        back += self.leave_groups([*gone, *died, *moved])
        back = self.trim(back + sum([self.place(job) for job in moved]), c)
        if window is None:
            if back and not self.paused:
                self.notify(back)
            return refused, [], -1
        return refused, *self.pull(c, *window)

    def note_running(self, c: Consumer, ids: list[str]) -> int:
        """In place of what was noted; what is no live job is passed over."""
        c.running = {id: self.jobs[id].deliveries for id in ids if id in self.jobs}
        return len([id for id in ids if id in self.jobs])

    def leave(self, c: Consumer, charged: list[str]) -> None:
        """Unregistered, dead, or out of lease: what it held goes back."""
        back = self.trim(self.release(c, list(c.held), charged), c)
        if back and not self.paused:
            self.notify(back)
        state = c.state
        del self.consumers[c.name]
        if state != "not_interested":
            self.pass_on()

    def renew(self, names: list[str], lease: int) -> tuple[list[str], int]:
        """Returns who is gone, and how many leases had ended."""
        gone = []
        for name in names:
            c = self.consumers.get(name)
            if c:  # one that has ended goes on: nobody has taken its jobs back
                c.lease_until = self.now + lease
            else:
                gone.append(name)
                self.forgive(name)
        ended = [c for c in self.consumers.values() if c.lease_until < self.now]
        ended.sort(key=lambda c: (c.lease_until, c.name))
        self.crashed_until = []
        for c in ended:
            before = {id: len(self.jobs[id].suspected) for id in c.held}
            charged = self.suspects(c)
            cost = [
                (id, self.jobs[id].position, id in charged)
                for id in c.held
                if id in charged or len(self.jobs[id].suspected) > before[id]
            ]
            if cost:
                self.lapsed[c.name] = cost
            self.leave(c, charged)
        late = [c for c in self.in_state("notified") if c.notified_until <= self.now]
        for c in sorted(late, key=lambda c: (c.notified_until, c.name)):
            self.settle_state(c, "interested")
        self.sweep()
        if not self.paused and self.interested() and not self.in_state("notified"):
            if self.work_waits():
                self.notify(1)
            elif self.scheduled and not self.watched():
                self.pass_timer()
        return gone, len(ended)

    def forgive(self, name: str) -> None:
        """It lives: what the end of its lease cost is taken back, but for the dead."""
        for id, position, charged in self.lapsed.pop(name, []):
            job = self.jobs.get(id)
            if job is None or id in self.dead or job.position != position:
                continue
            if not charged:
                if position in job.suspected:
                    job.suspected.remove(position)
            elif job.crashes:
                job.crashes -= 1
                job.attempts = max(0, job.attempts - 1)
                job.forgiven = job.deliveries, job.position
