"""A queue in plain Python: what the scripts are to do, in lists and dicts, without their tricks.

Every method is one script's effect; `now` is the time that the script's reply told. Where the
scripts bound their work (slices, caps) the model does not: tests stay below the bounds.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from dataclasses import dataclass, field

from rqueue.model.job import EPOCH_MS

NOTIFIED_MS = 5000
DEFAULT_MAX = 10
DEFAULT_CRASHES = 3
CRASH_DELAY_MS = 1000


@dataclass
class Job:
    id: str
    body: bytes
    level: int
    position: int
    enqueued: int
    max: int = 0
    due: int = 0
    deliveries: int = 0
    attempts: int = 0
    crashes: int = 0
    max_crashes: int = 0
    expires: int = 0
    group: str = ""
    forgiven: tuple[int, int] | None = None
    """Deliveries and position when a charge was taken back: until then its value has the length of
    before."""
    suspected: list[int] = field(default_factory=list)
    """The positions that it had when a worker died that may have been running it."""

    @property
    def order(self) -> tuple[int, int]:
        """Where it stands in its list: due 0 for the ready ones."""
        return self.due, self.position

    @property
    def value(self) -> bytes:
        """As it is stored."""
        rest = (self.level, self.deliveries, self.attempts, self.max, self.due)
        crashes = (self.crashes, self.max_crashes)
        shown = "" if rest == (4, 0, 0, 0, 0) else "".join(f",{number}" for number in rest)
        if any(crashes) or self.forgiven == (self.deliveries, self.position):
            shown = "".join(f",{number}" for number in (*rest, *crashes))
        if self.expires:
            shown = "".join(f",{number}" for number in (*rest, *crashes, self.expires))
        shown += f"|g{self.group}" if self.group else ""
        return f"{self.position},{self.enqueued - EPOCH_MS}{shown};".encode() + self.body


@dataclass
class Consumer:
    name: str
    mode: str
    priority: int
    jobs: int
    room: int
    """Bytes it may hold; 0: no limit."""
    slots: int
    lease_until: int
    term: int
    state: str = ""
    turn: int = 0
    told_until: int = 0
    held: list[str] = field(default_factory=list)
    wake: list[bytes] = field(default_factory=list)
    running: dict[str, int] = field(default_factory=dict)
    """What was noted to run for long: id -> of which delivery."""

    @property
    def unread(self) -> set[str]:
        """Jobs that were delivered and whose messages it has not read."""
        words = [word for word in self.wake if word[:1] == b"J"]
        return {word[5 : 5 + int.from_bytes(word[1:5], "big")].decode() for word in words}

    @property
    def free(self) -> int:
        return self.jobs - len(self.held)


@dataclass
class Model:
    keep_ms: int = 600_000
    now: int = 0
    seq: int = 0
    terms: int = 0
    turns: int = 0
    paused: bool = False
    ranked: bool = False
    timer: str = ""
    since: int | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    marks: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Cancelled while waiting: id -> (due, position); the element still stands in its list."""
    lists: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    """(-level, 0 for due and 1 for ready) -> ids by due time and position: sorted keys are the
    queue's order."""
    group_turns: dict[str, str] = field(default_factory=dict)
    """group -> id of the job that has its turn."""
    open: list[str] = field(default_factory=list)
    """Ready jobs with groups, best first."""
    blocked: dict[str, list[str]] = field(default_factory=dict)
    """group -> ids behind the one that has the turn, by position."""
    scheduled: list[tuple[int, int, int, str]] = field(default_factory=list)
    """(due, -level, position, id), sorted."""
    returns_to: dict[str, str] = field(default_factory=dict)
    dead: list[str] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    older: dict[str, str] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    byte_waiters: dict[str, list[str]] = field(default_factory=dict)
    history: list[tuple[str, str]] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    """What `meta` counts, but for cancelled, purged and requeued jobs."""
    behind: str = ""
    """The job after which the last pull put what it took, "" where there was none."""
    lapsed: dict[str, list[tuple[str, int, bool]]] = field(default_factory=dict)
    """What the ends of leases cost: consumer -> (id, position, whether it was charged)."""
    crashed_until: list[int] = field(default_factory=list)
    """When the jobs are due that crashed again in the call that goes on."""
    ttl: tuple[int, int, int] = 0, 0, 0
    """Default, least and greatest time to live, ms; 0: none."""
    kept_dead: bool = False
    """Whether what expires becomes a dead letter."""
    over: list[str] = field(default_factory=list)
    """Jobs that the call which goes on found expired, and that it ends last."""

    # -- looking -----------------------------------------------------------------------------------

    def in_state(self, state: str) -> list[Consumer]:
        return [c for c in self.consumers.values() if c.state == state]

    def interested(self) -> list[Consumer]:
        """Those who wait, the one to be woken first in front."""
        return sorted(self.in_state("interested"), key=lambda c: (-c.priority, c.turn))

    def knows(self, id: str) -> bool:
        return id in self.jobs or id in self.marks or id in self.ended or id in self.older

    def holder(self, id: str) -> Consumer | None:
        return next((c for c in self.consumers.values() if id in c.held), None)

    def elements(self) -> int:
        return sum(map(len, self.lists.values())) + len(self.open)

    def work_waits(self) -> bool:
        return self.elements() > 0 or (bool(self.scheduled) and self.scheduled[0][0] <= self.now)

    def size(self, ids: list[str]) -> int:
        return sum(len(self.jobs[id].value) for id in ids)

    def order(self, id: str) -> tuple[int, int]:
        """Where it stands in its list."""
        return self.marks[id] if id in self.marks else self.jobs[id].order

    # -- consumers and wake-ups --------------------------------------------------------------------

    def move(self, c: Consumer, to: str) -> None:
        c.state = to
        if to == "interested":
            self.turns += 1
            c.turn = self.turns
        elif to == "notified":
            c.told_until = self.now + NOTIFIED_MS

    def wake(self, c: Consumer) -> None:
        if c.state == "interested":
            self.move(c, "notified")
            c.wake.append(b"w")

    def pass_timer(self) -> None:
        self.timer = ""
        if self.scheduled and (waiting := self.interested()):
            self.wake(waiting[-1])

    def highest_notified(self) -> int | None:
        ranks = [c.priority for c in self.in_state("notified") if c.free > 0]
        return max(ranks) if self.ranked and ranks else None

    def notify(self, arrivals: int) -> None:
        floor, covered = self.highest_notified(), 0
        for c in self.interested()[:arrivals]:
            if covered >= arrivals or (floor is not None and c.priority < floor):
                break
            self.wake(c)
            if c.name == self.timer:
                self.pass_timer()
            covered += max(1, c.free)

    def watched(self) -> bool:
        holder = self.consumers.get(self.timer)
        return holder is not None and holder.state == "interested"

    def drop_timer(self, c: Consumer) -> None:
        if self.timer == c.name:
            self.timer = ""

    def pass_on(self) -> None:
        if self.paused or not self.interested():
            return
        if self.work_waits():
            self.notify(1)
        elif self.scheduled and not self.in_state("notified") and not self.watched():
            self.pass_timer()

    def tell_browsers(self) -> None:
        for c in self.in_state("browsers"):
            if not c.wake:
                c.wake.append(b"w")

    def settle_state(self, c: Consumer, to: str) -> None:
        """Where a call leaves its own consumer. It answers a wake-up that was not read."""
        if to == c.state and to not in ("interested", "notified"):
            return
        if c.state == "notified" and to != "notified":
            c.wake = [word for word in c.wake if word != b"w"]
        self.move(c, to)

    def gone(self, ids: list[str], by: Consumer | None = None) -> None:
        """Who lacked the bytes for one of these jobs looks again, if it still has credit."""
        for id in ids:
            for name in self.byte_waiters.pop(id, []):
                c = self.consumers.get(name)
                if c and c is not by and c.state == "not_interested" and c.free > 0:
                    self.move(c, "notified")
                    c.wake.append(b"w")

    # -- jobs --------------------------------------------------------------------------------------

    def rank(self, id: str) -> tuple[int, int, int, int]:
        """Its place among those of all levels: in `open`."""
        job = self.jobs[id]
        return -job.level, int(not job.due), *job.order

    def place(self, job: Job) -> int:
        """Into its list, where its due time and position say; behind others of its group, by its
        position alone. Returns how many are ready by that."""
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
        """Somebody who waits must know of an earlier due time. added: those of new jobs."""
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
        waiting = [id for ids in self.lists.values() for id in ids if id in self.jobs]
        return {id: self.jobs[id].expires for id in waiting if self.jobs[id].expires}

    def drop(self, ids: list[str], by: Consumer | None = None) -> None:
        """They are off their lists, and expired."""
        if not ids:
            return
        for id in ids:
            self.returns_to.pop(id, None)
            if self.kept_dead:
                self.dead.append(id)
            else:
                del self.jobs[id]
        self.counts["expired"] += len(ids)
        self.record(ids, "F" if self.kept_dead else "E")
        self.history += [(id, "expired") for id in ids]
        self.gone(ids, by)

    def sweep(self, by: Consumer | None = None) -> None:
        """What waits and is expired goes, the earliest first; a mark stays in each one's place."""
        late = sorted((ms, id) for id, ms in self.timed().items() if ms < self.now)
        ids = [id for _, id in late[: 16 if self.kept_dead else 64]]
        for id in ids:
            job = self.jobs[id]
            mark = f"\x01{job.position},{job.due}" if self.kept_dead else id
            self.marks[mark] = job.order
            there = self.lists[-job.level, int(not job.due)]
            there[there.index(id)] = mark
        self.drop(ids, by)

    def promote_due(self, by: Consumer | None = None) -> tuple[int, int]:
        """Returns how many became ready, and how many were expired instead."""
        due = [entry for entry in self.scheduled if entry[0] <= self.now]
        del self.scheduled[: len(due)]
        late = [entry[-1] for entry in due if self.late(entry[-1])]
        self.drop(late, by)
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
        # of several of a group that are due together the first one by position has the turn
        for job in [*back, *sorted(others, key=lambda job: job.position)]:
            ready += self.place(job)
        if due:
            self.tell_browsers()
        return ready, len(late)

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

    def end(self, ids: list[str], letter: str, outcome: str) -> None:
        """End jobs that are off their lists; marks go without a trace."""
        live = [id for id in ids if id in self.jobs]
        jobs = [self.jobs[id] for id in live]
        for id in ids:
            self.marks.pop(id, None)
            self.jobs.pop(id, None)
            self.returns_to.pop(id, None)
        self.record(live, letter)
        self.history += [(id, outcome) for id in live]
        self.gone(ids)
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
        back, dead, later = 0, [], []
        for id in ids:
            job = self.jobs[id]
            c.held.remove(id)
            job.deliveries += 1
            job.attempts += id in charged
            job.crashes += id in charged
            if id in charged and self.last(job):
                dead.append(id)
                self.dead.append(id)
            elif self.late(id):
                self.over.append(id)
            elif id in charged and job.crashes > 1:
                turn = 1 + charged.index(id)
                later.append(self.now + CRASH_DELAY_MS * 5 ** (job.crashes - 2) * turn)
                self.returns_to[id] = "old"
                self.schedule(job, later[-1])
            else:
                self.place(job)
                back += 1
            self.counts["released"] += id not in dead and id not in self.over
            if id in charged:
                self.history.append((id, "dead" if id in dead else "crash"))
        self.crashed_until += later
        if later and not self.paused:
            self.watch(self.crashed_until, min(later))
        self.record(dead, "F")
        self.drop(self.over, c)
        self.over = []
        return back + self.leave_groups([self.jobs[id] for id in dead])

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

    # -- scripts -----------------------------------------------------------------------------------

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
    ) -> Job:
        due = due if due > self.now else 0
        level = min(9, priority)
        job = Job(id, body, level, 0, self.now, max, due, max_crashes=crashes, group=group)
        job.expires = self.expires(ttl)
        return job

    def enqueue(self, jobs: list[Job], special: bool = False) -> str:
        """Accept these; returns whom the job was handed to. special: some have unusual terms."""
        total = len(jobs)
        fresh = {job.id: job for job in reversed(jobs) if not self.knows(job.id)}
        jobs = [job for job in jobs if fresh.get(job.id) is job]
        if not jobs:
            return ""
        taker = self.taker(jobs[0], total)
        ready = [job for job in jobs if not job.due]
        for job in jobs:
            self.seq += 1
            job.position = self.seq
            self.jobs[job.id] = job
            self.accepted.append(job.id)
        if taker:
            if jobs[0].group:
                self.group_turns[jobs[0].group] = jobs[0].id
            taker.held.append(jobs[0].id)
            self.move(taker, "notified" if taker.free > 0 else "not_interested")
            id, value = jobs[0].id.encode(), jobs[0].value
            taker.wake.append(b"J" + len(id).to_bytes(4, "big") + id + value)
            if taker.name == self.timer:
                self.pass_timer()
        elif ready:
            self.notify_of(sum([self.place(job) for job in ready]))
        later = [job for job in jobs if job.due]
        for job in later:
            self.schedule(job, job.due)
        if later and not self.paused:
            self.watch([job.due for job in later])
        self.tell_browsers()
        if special or self.ttl[0] or self.ttl[2]:
            self.sweep()
        return taker.name if taker else ""

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

    def take(self, c: Consumer) -> tuple[list[str], str]:
        """The heads that fit, best first, and the id of the first one that does not."""
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
                            return taken, id
                        taken.append(id)
                    self.marks.pop(id, None)
                    del ids[0]
        return self.take_merged(c, taken, room, empty) if self.open else (taken, "")

    def take_merged(
        self, c: Consumer, taken: list[str], room: int, empty: bool
    ) -> tuple[list[str], str]:
        """The same of a queue with groups: of the lists and the heads of groups."""
        waiting = [(self.rank(id), self.open, id) for id in self.open]
        for key, ids in self.lists.items():
            waiting += [((*key, *self.order(id)), ids, id) for id in ids]
        for _, ids, id in sorted(waiting, key=lambda one: one[0]):
            if len(taken) == c.free:
                break
            if id not in self.marks:
                room -= len(self.jobs[id].value)
                if c.room and room < 0 and not (empty and not taken):
                    return taken, id
                taken.append(id)
            self.marks.pop(id, None)
            ids.remove(id)
        return taken, ""

    def watches(self, c: Consumer) -> int:
        """When this consumer is to pull by itself, ms; -1: somebody else watches the schedule."""
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
            taken, tight = self.take(c)
            self.behind = c.held[-1] if taken and c.held else ""
            c.held += taken
            self.gone(taken, c)
            if tight:
                waiting = self.byte_waiters.setdefault(tight, [])
                waiting += [c.name] if c.name not in waiting else []
            self.drop(self.over, c)
            self.over = []
            self.sweep(c)
            if not tight and len(taken) < free:
                self.settle_state(c, "interested")
                return taken, self.watches(c)
            self.settle_state(c, "not_interested")
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
        self.dead += dead
        self.counts["rejected"] += len(dead)
        if later and not self.paused:
            self.watch(later)
        self.record([id for id in ack if id in mine] + dead, "")
        self.ended.update({id: "D" for id in ack if id in mine} | dict.fromkeys(dead, "F"))
        self.history += lines
        back += self.release(c, [id for id in release if id in c.held], [])
        back += self.leave_groups([*gone, *(self.jobs[id] for id in dead), *moved])
        back += sum([self.place(job) for job in moved])
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
        back = self.release(c, list(c.held), charged)
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
        late = [c for c in self.in_state("notified") if c.told_until <= self.now]
        for c in sorted(late, key=lambda c: (c.told_until, c.name)):
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

    def resume(self) -> bool:
        if not self.paused:
            return False
        self.paused, self.timer = False, ""
        work = self.elements() + sum(due <= self.now for due, *_ in self.scheduled)
        if work:
            self.notify(work)
        # whoever watched the schedule may have looked meanwhile, and been told nothing
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
        promoted, late = self.promote_due()
        if promoted:
            self.notify(promoted)
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

    def front(self, level: int) -> int:
        """A due time before those of all that stand in a level, or are due."""
        times = [self.order(id)[0] for id in self.lists.get((-level, 0), ())]
        times += [job.due for id in self.open if (job := self.jobs[id]).level == level and job.due]
        times += [due for due, *_ in self.scheduled]
        return min([self.now, *(time - 1 for time in times)])

    def unpark(self) -> int:
        back = [entry for entry in self.scheduled if self.returns_to.get(entry[-1]) == "park"]
        for entry in back:
            self.scheduled.remove(entry)
            del self.returns_to[entry[-1]]
        late = [entry[-1] for entry in back if self.late(entry[-1])]
        back = [entry for entry in back if entry[-1] not in late]
        self.drop(late)
        for entry in back:
            self.place(self.jobs[entry[-1]])
        if back and not self.paused:
            self.notify(len(back))
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
            if id in self.open:
                self.open.remove(id)
            elif id in self.blocked.get(job.group, ()):
                was = "blocked"
                self.blocked[job.group].remove(id)
                if not self.blocked[job.group]:
                    del self.blocked[job.group]
            else:
                self.marks[id] = job.order
            self.gone([id])
        self.record([id], "C")
        self.history.append((id, "cancelled"))
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
            if id in self.dead:
                self.dead.remove(id)
                self.older.pop(id, None)
                if self.ended.pop(id, None) and not self.ended:
                    self.since = None
                self.seq += 1
                job = self.jobs[id]
                job.position, job.due, job.attempts, job.crashes = self.seq, 0, 0, 0
                job.expires = self.expires(0)
                ready += self.place(job)
                count += 1
        if count:
            self.tell_browsers()
        self.notify_of(ready)
        return count

    def purge_dead(self, ids: list[str]) -> int:
        ids = [id for id in dict.fromkeys(ids) if id in self.dead]
        self.dead = [id for id in self.dead if id not in ids]
        self.end(ids, "P", "purged")
        return len(ids)
