"""The machine with labels on jobs and selectors of consumers, and what the model says of them."""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from rqueue.model.selector import Selector, class_text, selector
from rqueue.protocol.commands import ScriptCall
from rqueue.protocol.policies import Kind
from rqueue.protocol.policies.selectors import labels_in
from tests.property.choices import (
    KEEP_MS,
    NO_GROUPS,
    delays,
    groups,
    limits,
    paddings,
    priorities,
    some,
)
from tests.property.entities import Consumer, Job
from tests.property.machine import Machine
from tests.property.model import Model

SELECTING = Kind.of(["selectors"])
LABELS: list[dict[str, Any]] = [{}, {"x": "a"}, {"x": "b"}, {"x": "b", "v": 2}]
EXPRESSIONS = [
    *(
        "",
        "x = 'a'",
        "x = 'b'",
        "v >= 2",
        "x in ('a', 'b') and v is null",
        "x is null",
        "not x = 'a'",
    ),
    *("v < 2 or x like 'a%'", ""),
]
labels = st.sampled_from(range(len(LABELS)))


class LabelledJob(Job):
    """Its header notes its labels."""

    @property
    def value(self) -> bytes:
        head, _, body = super().value.partition(b";")
        head, key, sort = head.partition(b"|s")
        return head + b"|c" + class_text(labels_in(self.body)).encode() + key + sort + b";" + body


@dataclass
class Selecting(Consumer):
    select: Selector | None = None


@dataclass
class SelectingModel(Model):
    """All ready jobs stand in `open`, whatever their class is."""

    fresh: Counter[int] = field(default_factory=Counter)
    """What became ready in the call that goes on: number of a class -> jobs."""
    mine: Consumer | None = None
    """The consumer that the call is about."""

    @staticmethod
    def number(job: Job) -> int:
        return LABELS.index(labels_in(job.body)) + 1

    @staticmethod
    def hears(c: Consumer, number: int) -> bool:
        select = getattr(c, "select", None)
        return select is None or bool(select.matches(LABELS[number - 1]))

    def of_class(self, number: int) -> list[str]:
        return [id for id in self.open if self.number(self.jobs[id]) == number]

    def new_job(self, *args: Any, **options: Any) -> Job:
        job = super().new_job(*args, **options)
        return LabelledJob(*[getattr(job, name) for name in Job.__dataclass_fields__])

    def place(self, job: Job) -> int:
        self.open.insert(bisect(self.open, self.rank(job.id), key=self.rank), job.id)
        self.fresh[self.number(job)] += 1
        return 1

    def work_waits(self) -> bool:
        due = bool(self.scheduled) and self.scheduled[0][0] <= self.now
        if self.mine is None:
            return due or self.elements() > 0
        return due or any(self.hears(self.mine, self.number(self.jobs[id])) for id in self.open)

    def notified_able(self, without: Consumer | None = None) -> list[Consumer]:
        return [c for c in self.in_state("notified") if c.free > 0 and c is not without]

    def notify(self, arrivals: int) -> None:
        self.tell(arrivals)

    def pass_on(self) -> None:
        if self.paused or not self.interested():
            return
        # it may be that nobody who waits takes it: the schedule is watched all the same
        if self.work_waits() and self.tell(1):
            return
        if self.scheduled and not self.in_state("notified") and not self.watched():
            self.pass_timer()

    def tell(self, jobs: int, without: Consumer | None = None, idle: bool = False) -> int:
        needs, self.fresh = self.fresh, Counter()
        numbers = range(1, len(LABELS) + 1)
        if self.mine is not None:
            asked = [number for number in numbers if self.hears(self.mine, number)]
        else:
            asked = [] if needs else list(numbers)
        for number in asked:
            needs[number] = max(needs[number], jobs)
        notified = self.notified_able(without)
        room: list[list[Any]] = []
        for number in sorted(needs):
            need = min(needs[number], len(self.of_class(number)))
            able = [c for c in notified if self.hears(c, number)]
            if idle and able:
                need = 0
            for one in room:
                if self.hears(one[0], number):
                    part = min(need, one[1])
                    need, one[1] = need - part, one[1] - part
            while need > 0:
                waiting = [c for c in self.interested() if c is not without]
                waiting = [c for c in waiting if self.hears(c, number)]
                floor = max([c.priority for c in able], default=None) if self.ranked else None
                if not waiting or (floor is not None and waiting[0].priority < floor):
                    break
                c = waiting[0]
                free = max(1, c.free)
                self.wake(c)
                if c.name == self.timer:
                    self.pass_timer()
                room.append([c, max(0, free - need)])
                need -= free
        return len(room)

    def taker(self, job: Job, total: int) -> Consumer | None:
        if total != 1 or job.due or self.paused:
            return None
        number = self.number(job)
        able = [c for c in self.interested() if self.hears(c, number)]
        notified = [c.priority for c in self.notified_able() if self.hears(c, number)]
        if not able or (notified and able[0].priority < max(notified)):
            return None
        c, self.mine = able[0], able[0]
        waits, self.mine = self.work_waits(), None
        size = len(job.body) + 64
        fits = not c.room or not c.held or self.size(c.held) + size <= c.room
        return c if not waits and c.free > 0 and fits else None

    def register(self, c: Consumer) -> None:
        self.mine = c
        super().register(c)

    def interest(self, c: Consumer, jobs: int, room: int) -> None:
        self.mine = c
        super().interest(c, jobs, room)

    def leave(self, c: Consumer, charged: list[str]) -> None:
        self.mine = None
        back = self.release(c, list(c.held), charged)
        if back and not self.paused:
            self.notify(back)
        self.mine = c
        del self.consumers[c.name]
        if c.state != "not_interested":
            self.pass_on()
        self.mine = None

    def renew(self, names: list[str], lease: int) -> tuple[list[str], int]:
        found = super().renew(names, lease)
        if not self.paused and self.interested():
            if not self.in_state("notified"):
                self.pass_on()
            self.tell(1, idle=True)
        return found

    def behind_others(self, c: Consumer, number: int) -> bool:
        """Whether a consumer of a higher priority is ahead in this class (Q-45)."""
        others = [o for o in self.consumers.values() if o is not c and o.free > 0]
        ahead = [o for o in others if o.state in ("interested", "notified")]
        ahead = [o for o in ahead if o.mode == "acquire" and self.hears(o, number)]
        return self.ranked and any(o.priority > c.priority for o in ahead)

    def pull(self, c: Consumer, jobs: int, room: int) -> tuple[list[str], int]:
        self.mine = c
        taken, timer = self.pull_classes(c, jobs, room)
        if self.fresh and not self.paused:
            self.tell(0, without=c)
        return taken, timer

    def pull_classes(self, c: Consumer, jobs: int, room: int) -> tuple[list[str], int]:
        c.jobs, c.room, self.behind = jobs, room, ""
        if c.free <= 0 or self.paused:
            self.settle_state(c, "not_interested" if c.free <= 0 else "interested")
            self.drop_timer(c)
            self.pass_on()
            return [], -1
        self.promote_due(c)
        free, taken, tight = c.free, list[str](), ""
        left_out = False
        left, empty = c.room - self.size(c.held), not c.held
        for id in list(self.open):
            number = self.number(self.jobs[id])
            if not self.hears(c, number) or self.behind_others(c, number):
                continue
            if len(taken) == free:
                break
            left -= len(self.jobs[id].value)
            if c.room and left < 0 and not (empty and not taken):
                tight = id
                break
            taken.append(id)
            self.open.remove(id)
        numbers = range(1, len(LABELS) + 1)
        left_out = any(self.hears(c, n) and self.behind_others(c, n) for n in numbers)
        left_out = left_out or (c.select is None and self.lists_behind(c))  # type: ignore[attr-defined]
        self.behind = c.held[-1] if taken and c.held else ""
        c.held += taken
        self.gone(taken, c)
        if tight:
            waiting = self.byte_waiters.setdefault(tight, [])
            waiting += [c.name] if c.name not in waiting else []
        if not tight and len(taken) < free:
            self.settle_state(c, "interested")
            if left_out:
                self.pass_on()
            return taken, self.watches(c) if c.state == "interested" else -1
        self.settle_state(c, "not_interested")
        self.drop_timer(c)
        self.pass_on()
        return taken, -1

    def lists_behind(self, c: Consumer) -> bool:
        """The same of the lists, where nothing is."""
        others = [o for o in self.consumers.values() if o is not c and o.free > 0]
        others = [o for o in others if getattr(o, "select", None) is None and o.mode == "acquire"]
        ahead = [o for o in others if o.state in ("interested", "notified")]
        return self.ranked and any(o.priority > c.priority for o in ahead)


class SelectingMachine(Machine):
    """Four classes of jobs, and consumers that select some of them."""

    kinds = (SELECTING, Kind.of(["selectors", "sorted"]))
    chosen: Sequence[int] = ()

    def __init__(self) -> None:
        super().__init__()
        self.model = SelectingModel(keep_ms=KEEP_MS)

    def run(self, call: ScriptCall[Any]) -> Any:
        self.model.fresh, self.model.mine = Counter(), None
        numbers = {class_text(one): number for number, one in enumerate(LABELS, 1)}
        self.client.hset(self.keys.base + "classes", mapping=numbers)  # in the order of the model
        return super().run(call)

    def body(self, padding: int, index: int) -> bytes:
        which = self.chosen[index] if index < len(self.chosen) else padding // 60 % 2
        some = {0: "", 1: ',{},{"labels":{"x":"a"}}', 2: ',{},{"labels":{"x":"b"}}'}
        more = some.get(which, ',{},{"labels":{"v":2,"x":"b"}}')
        return f'["t",["{"x" * padding}"]{more}]'.encode()

    @rule(
        jobs=st.lists(
            st.tuples(st.tuples(priorities, delays, paddings, limits, some), labels),
            min_size=1,
            max_size=4,
        ),
        immediate=st.booleans(),
        names=st.lists(groups, min_size=4, max_size=4),
    )
    def enqueue_labelled(
        self,
        jobs: list[tuple[tuple[int, int, int, int, int], int]],
        immediate: bool,
        names: Sequence[str] = NO_GROUPS,
    ) -> None:
        self.chosen = [which for _, which in jobs]
        names = names if self.sorted else NO_GROUPS
        self.enqueue_all([job for job, _ in jobs], immediate, names=names)
        self.chosen = ()

    def consumer(self, name: str, call: dict[str, Any]) -> tuple[dict[str, Any], type[Consumer]]:
        """How it registers: its selector goes by its number and its window."""
        text = EXPRESSIONS[(self.names + call["window"].jobs) % len(EXPRESSIONS)]
        select = selector(text) if text and call["mode"] == "acquire" else None

        def make(*args: Any) -> Selecting:
            made = Selecting(*args)
            made.select = select
            return made

        return {**call, "select": select}, make  # type: ignore[return-value]
