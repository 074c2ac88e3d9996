"""The real scripts on a real server, driven at random beside the model, compared at each step."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any, ClassVar

import redis
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from redis.exceptions import ResponseError

from rqueue.client._sync.queue import Queue
from rqueue.model.history_batch import pack
from rqueue.model.terms import NORMAL_TERMS
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, ScriptCall, Window
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.protocol.scripts import Scripts
from rqueue.testing import move_time
from tests.property.agreement import differences
from tests.property.model import Consumer, Job, Model
from tests.property.sources import START_MS
from tests.support import invariants
from tests.support.run_script import run
from tests.support.snapshot import take_snapshot

KEEP_MS = 5_000
CAUSE = b'{"kind":"crash","type":"Killed"}'
ERROR = b'{"kind":"exception","type":"ValueError"}'
CONSUMERS_MAX = 6

some = st.integers(0, 11)
"""Picks one of what is there, whatever that is."""
picks = st.lists(some, max_size=4)
windows = st.tuples(st.sampled_from([3, 2, 10, 3, 1, 0]), st.sampled_from([0, 0, 0, 150, 300]))
ranks = st.sampled_from([0, 0, 0, 0, 1, -1])
priorities = st.sampled_from([4, 4, 4, 9, 0])
delays = st.sampled_from([0, 0, 0, 0, 800, 800, 3000])
limits = st.sampled_from([0, 0, 0, 1, 2, -1, -2, -4])
"""Attempts that a job may have; negative: crashes."""
paddings = st.sampled_from([0, 0, 60, 200])
groups = st.sampled_from(["", "a", "a", "b", "b", "c"])
NO_GROUPS = ("",) * 12
KINDS = (PLAIN, Kind.of(["groups"]))


class Machine(RuleBasedStateMachine):
    """One queue, up to six consumers. A step is one script call, and its effect in the model."""

    client: ClassVar[redis.Redis]
    lua: ClassVar[Scripts]
    """With a frozen clock: see `tests.property.sources`."""
    kinds: ClassVar[Sequence[Kind]] = KINDS
    """What its queue may be."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(f"model-{uuid.uuid4().hex[:12]}", redis=self.client)
        self.keys = self.queue.keys
        self.model = Model(keep_ms=KEEP_MS)
        self.before = take_snapshot(self.client, self.keys)
        self.names = 0
        self.mine: dict[str, dict[str, int]] = {}
        """The jobs that each consumer knows it holds: id -> bytes."""
        self.watch: dict[str, int] = {}
        """When each consumer means to pull by itself, ms."""
        self.left: list[Consumer] = []
        """Consumers whose term is over."""
        self.arrivals: int | None = 0
        self.everyday = False
        self.kind = PLAIN

    def teardown(self) -> None:
        if found := list(self.client.scan_iter(self.keys.base + "*", count=10_000)):
            self.client.delete(*found)

    @property
    def grouped(self) -> bool:
        """Whether its jobs may have groups."""
        return "groups" in self.kind.policies

    # -- helpers -----------------------------------------------------------------------------------

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, self.kind.having(call.needs))
        reply = run(self.client, script, call.keys, call.args)
        self.model.now = reply[0]
        return reply

    def answer(self, call: ScriptCall[Any]) -> Any:
        return call.read(self.run(call))

    def clock(self) -> int:
        return START_MS + int(self.before.meta.get("clock", "0"))

    def refuse(self, call: ScriptCall[Any], code: str) -> None:
        """The call is refused with this code, and every key stays as it was."""
        before = take_snapshot(self.client, self.keys)
        try:
            self.run(call)
        except ResponseError as error:
            assert str(error).split()[0] == code, error
        else:
            raise AssertionError(f"{call.script} was not refused")
        assert not (wrong := invariants.unchanged(before, take_snapshot(self.client, self.keys))), (
            f"{call.script}, refused with {code}, changed something: {wrong}"
        )

    def one(self, pick: int, among: Callable[[Consumer], bool] = lambda c: True) -> Consumer | None:
        found = [c for c in self.model.consumers.values() if among(c)]
        return found[pick % len(found)] if found else None

    def acquirer(self, pick: int) -> Consumer | None:
        return self.one(pick, lambda c: c.mode == "acquire")

    def got(self, c: Consumer, jobs: list[bytes], expected: list[str]) -> None:
        ids = [id.decode() for id in jobs[::2]]
        assert ids == expected, f"{c.name} got {ids}, should have got {expected}"
        values = [self.model.jobs[id].value for id in ids]
        assert jobs[1::2] == values
        self.mine[c.name] |= {id: len(value) for id, value in zip(ids, values, strict=True)}

    def told(self, c: Consumer, pulled: Any, timer: int) -> None:
        assert pulled.state == c.state, f"{c.name} is told {pulled.state}, is {c.state}"
        assert pulled.timer_ms == timer, f"{c.name} is told timer {pulled.timer_ms}, not {timer}"
        self.watch.pop(c.name, None)
        if timer >= 0:
            self.watch[c.name] = pulled.now + timer

    def gone(self, c: Consumer) -> None:
        self.left.append(c)
        self.mine.pop(c.name)
        self.watch.pop(c.name, None)

    # -- producers ---------------------------------------------------------------------------------

    @rule(
        jobs=st.lists(
            st.tuples(priorities, delays, paddings, limits, some),
            min_size=1,
            max_size=4,
        ),
        immediate=st.booleans(),
        names=st.lists(groups, min_size=4, max_size=4),
    )
    def enqueue(
        self,
        jobs: list[tuple[int, int, int, int, int]],
        immediate: bool,
        names: Sequence[str] = NO_GROUPS,
    ) -> None:
        if self.everyday:
            jobs = [(4, 0, padding, 0, twice) for _, _, padding, _, twice in jobs[:1]]
        self.enqueue_all(jobs, immediate, names=names if self.grouped else NO_GROUPS)

    def enqueue_all(
        self,
        jobs: list[tuple[int, int, int, int, int]],
        immediate: bool,
        ttls: Sequence[int] = (),
        names: Sequence[str] = (),
    ) -> None:
        puts: list[Put] = []
        asked = zip_longest(jobs, ttls, names[: len(jobs)])
        for (priority, delay, padding, limit, twice), ttl, group in asked:
            id = f"j{len(self.model.accepted) + len(puts)}"
            if twice == 0 and self.model.accepted and not puts:
                id = self.model.accepted[-(padding % 7) - 1 :][0]
            body = f'["t",["{"x" * padding}"]]'.encode()
            most = {"max_deliveries": max(0, limit), "max_crashes": max(0, -limit)}
            puts.append(Put(id, body, priority, delay, ttl_ms=ttl or 0, group=group or "", **most))
        call = commands.enqueue(self.keys, puts, immediate=immediate and len(puts) == 1)
        if immediate and len(puts) == 1 and not self.model.knows(puts[0].id):
            # whether it is refused may depend on a job that is due by now
            self.model.now = self.clock()
            put = puts[0]
            first = Job(put.id, put.envelope, 4, 0, 0, due=put.delay_ms, group=put.group)
            if not self.model.taker(first, 1):
                self.refuse(call, "NOCONSUMER")
                return
        reply = self.answer(call)
        known = len(self.model.accepted)
        new = [
            self.model.new_job(
                put.id,
                put.envelope,
                put.priority,
                put.max_deliveries,
                put.max_crashes,
                put.delay_ms and reply.now + put.delay_ms,
                put.ttl_ms,
                put.group,
            )
            for put in puts
        ]
        ordinary = all(put.terms == NORMAL_TERMS for put in puts)
        taker = self.model.enqueue(new, special=not ordinary)
        accepted = self.model.accepted[known:]
        assert reply.accepted == len(accepted)
        assert [puts[i].id for i in range(len(puts)) if i not in reply.known] == accepted
        assert reply.handed_to == taker
        wrong = invariants.accepted_once(self.before, accepted)
        assert not wrong, wrong
        self.arrivals = sum(not self.model.jobs[id].due for id in accepted)

    # -- consumers ---------------------------------------------------------------------------------

    @initialize(
        consumers=st.lists(st.tuples(ranks, windows), min_size=1, max_size=3),
        ready=st.integers(0, 4),
        later=st.booleans(),
        first=st.booleans(),
        everyday=st.booleans(),
        kind=st.sampled_from(KINDS),
    )
    def begin(
        self,
        consumers: list[tuple[int, tuple[int, int]]],
        ready: int,
        later: bool,
        first: bool,
        everyday: bool = False,
        kind: Kind = PLAIN,
    ) -> None:
        """A queue in use: some consumers, some jobs, in one order or the other. An everyday one has
        one level and no ranks, and its jobs come one by one."""
        self.everyday = everyday
        kind = kind if kind in self.kinds else self.kinds[0]
        self.run(commands.configure(self.keys, {"keep_ms": KEEP_MS, "v": kind.stamp}))
        self.kind = kind
        jobs = [(4, 0, 0, 1 + i % 2, 1) for i in range(ready)] + [(4, 800, 0, 0, 1)] * later
        self.before = take_snapshot(self.client, self.keys)
        if first and jobs:
            self.enqueue_all(jobs, False)
        for rank, window in consumers:
            self.register("acquire", rank, window, 1, 6000)
        if not first and jobs:
            self.enqueue_all(jobs, False)
        self.before, self.arrivals = take_snapshot(self.client, self.keys), 0

    @precondition(lambda self: len(self.model.consumers) < CONSUMERS_MAX)
    @rule(
        mode=st.sampled_from(["acquire"] * 5 + ["browse"]),
        priority=ranks,
        window=windows,
        slots=st.integers(1, 2),
        lease=st.sampled_from([6000, 30_000]),
    )
    def join(
        self, mode: Any, priority: int, window: tuple[int, int], slots: int, lease: int
    ) -> None:
        self.register(mode, priority, window, slots, lease)

    def register(
        self, mode: Any, priority: int, window: tuple[int, int], slots: int, lease: int
    ) -> None:
        priority = 0 if self.everyday else priority
        self.names += 1
        name = f"c{self.names}"
        call = commands.register(
            self.keys,
            name,
            mode=mode,
            priority=priority,
            window=Window(*window),
            lease_ms=lease,
            slots=slots,
        )
        now, term, state = self.answer(call)
        c = Consumer(name, mode, priority, *window, slots, now + lease, 0)
        self.model.register(c)
        assert (term, state) == (str(c.term), c.state)
        self.mine[name] = {}

    @precondition(lambda self: self.model.consumers)
    @rule(pick=some, window=st.none() | windows, recall=st.sampled_from([False] * 4 + [True]))
    def pull(self, pick: int, window: tuple[int, int] | None, recall: bool) -> None:
        if c := self.acquirer(pick):
            self.pull_by(c, window or (c.jobs, c.room), recall)

    def pull_by(self, c: Consumer, window: tuple[int, int], recall: bool = False) -> None:
        call = commands.pull(
            self.keys, c.name, str(c.term), Window(*window), recall=0 if recall else None
        )
        pulled = self.answer(call)
        assert pulled.behind.decode() == (c.held[-1] if c.held else "")
        expected = []
        if recall:
            expected = self.model.recall(c)
            self.mine[c.name].clear()
        taken, timer = self.model.pull(c, *window)
        self.got(c, pulled.jobs, expected + taken)
        self.told(c, pulled, timer)
        self.arrivals = 1 + len(taken)

    @precondition(lambda self: self.model.in_state("notified"))
    @rule(pick=some)
    def obey(self, pick: int) -> None:
        """A consumer that was woken does what it must."""
        if c := self.one(pick, lambda c: c.state == "notified"):
            self.pull_by(c, (c.jobs, c.room))

    @precondition(lambda self: any(self.mine.values()))
    @rule(
        pick=some,
        outcomes=st.lists(
            st.tuples(
                some,
                st.sampled_from(
                    ["ack", "ack", "done", "retry", "retry", "retry before", "reject", "release"]
                ),
                st.sampled_from([0, 800]),
                st.sampled_from(["old", "head", "tail", "park", "aside"]),
                st.sampled_from([True, True, False]),
            ),
            min_size=1,
            max_size=4,
        ),
        others=st.sampled_from([0, 0, 1, 2]),
        pull=st.booleans(),
        window=st.none() | windows,
    )
    def settle(
        self,
        pick: int,
        outcomes: list[tuple[int, str, int, str, bool]],
        others: int,
        pull: bool,
        window: tuple[int, int] | None,
    ) -> None:
        self.settle_by(pick, outcomes, others, pull, window)

    @precondition(lambda self: any(self.mine.values()))
    @rule(
        pick=some,
        place=some,
        outcome=st.sampled_from(["ack", "release", "retry", "retry", "reject"]),
        return_to=st.sampled_from(["old", "tail"]),
    )
    def settle_one(self, pick: int, place: int, outcome: str, return_to: str) -> None:
        """The simplest settle: one job, and no pull."""
        self.settle_by(pick, [(place, outcome, 0, return_to, True)], 0, False, None)

    @precondition(lambda self: any(len(held) == 1 for held in self.mine.values()))
    @rule(pick=some, outcome=st.sampled_from(["ack", "ack", "done"]))
    def next_one(self, pick: int, outcome: str) -> None:
        """What workers say all day: the one job is done, and what is next?"""
        c = self.one(pick, lambda c: len(self.mine[c.name]) == 1)
        assert c is not None
        busy = [one for one in self.model.consumers.values() if self.mine[one.name]]
        self.settle_by(busy.index(c), [(0, outcome, 0, "old", True)], 0, True, None)

    def settle_by(
        self,
        pick: int,
        outcomes: list[tuple[int, str, int, str, bool]],
        others: int,
        pull: bool,
        window: tuple[int, int] | None,
    ) -> None:
        c = self.one(pick, lambda c: bool(self.mine[c.name]))
        if c is None:
            return
        mine = self.mine[c.name]
        # of jobs delivered and not read yet it cannot speak
        strangers = [id for id in self.model.accepted if id not in mine and id not in c.held]
        foreign = strangers[-others:] if others else []
        ack, done, retry, reject, release, freed = [], [], [], [], [], 0
        stays = {}
        for place, outcome, delay, return_to, charge in outcomes:
            options = list(mine) + foreign
            if not options:
                break
            id = options[place % len(options)]
            size = mine.pop(id, 0)
            freed += size
            foreign = [other for other in foreign if other != id]
            if outcome == "ack":
                ack.append(id)
            elif outcome == "done":
                done.append((id, None, b"1"))
            elif outcome.startswith("retry"):
                delay, charge = (800, False) if return_to in ("park", "aside") else (delay, charge)
                job = self.model.jobs.get(id)
                before = job.deliveries if job else 0
                if outcome == "retry before":
                    # the reply to this was lost, and the job came back to this consumer meanwhile
                    before += 1
                    if size:
                        stays[id] = size
                retry.append(Retried(id, delay, return_to, charge, ERROR, before))
            elif outcome == "reject":
                reject.append((id, CAUSE))
            else:
                release.append(id)
        mine |= stays
        named = [*ack, *(id for id, _, _ in done), *(r.id for r in retry), *(r[0] for r in reject)]
        words = ["ack"] * (len(ack) + len(done)) + ["retry"] * len(retry) + ["reject"] * len(reject)
        wanted = (window or (c.jobs, c.room)) if pull else None
        call = commands.settle(
            self.keys,
            c.name,
            str(c.term),
            Window(*wanted) if wanted else None,
            ack=ack,
            done=done,
            retry=retry,
            reject=reject,
            release=release,
            freed=freed,
            batch=pack({"id": named, "outcome": words}) if named else b"",
            rows=len(named),
        )
        pulled = self.answer(call)
        refused, taken, timer = self.model.settle(
            c,
            ack + [id for id, _, _ in done],
            [(str(r.id), r.delay_ms, r.place, r.charge, r.deliveries) for r in retry],
            [id for id, _ in reject],
            release,
            wanted,
        )
        assert [id.decode() for id in pulled.refused] == refused
        self.got(c, pulled.jobs, taken)
        assert pulled.behind.decode() == (self.model.behind if pull else "")
        if pull:
            self.told(c, pulled, timer)
        assert pulled.state == c.state, f"{c.name} is told {pulled.state}, is {c.state}"
        # in a queue with groups each job that goes may let another one come
        left = len(ack) + len(done) + len(reject) if self.grouped else 0
        self.arrivals = 1 + left + len(retry) + len(release) + len(taken)

    @precondition(lambda self: self.model.consumers)
    @rule(pick=some, window=windows)
    def interest(self, pick: int, window: tuple[int, int]) -> None:
        c = self.one(pick)
        assert c is not None
        state = self.answer(commands.interest(self.keys, c.name, str(c.term), Window(*window)))
        self.model.interest(c, *window)
        assert state == c.state
        self.arrivals = 1

    @precondition(lambda self: any(c.wake for c in self.model.consumers.values()))
    @rule(pick=some)
    def hear(self, pick: int) -> None:
        c = self.one(pick, lambda c: bool(c.wake))
        assert c is not None
        word: Any = self.client.lpop(self.keys.wake(c.name))
        assert word == c.wake.pop(0)
        if word[:1] == b"J":
            size = int.from_bytes(word[1:5], "big")
            self.mine[c.name][word[5 : 5 + size].decode()] = len(word) - 5 - size
        elif word[:1] == b"X":
            self.mine[c.name].pop(word[1:].decode(), None)

    @precondition(lambda self: self.model.consumers)
    @rule(pick=some, dies=st.booleans(), charged=picks)
    def leave(self, pick: int, dies: bool, charged: list[int]) -> None:
        c = self.one(pick)
        assert c is not None
        ids: list[str] = []
        call: ScriptCall[Any]
        if dies:
            ids = list(dict.fromkeys(c.held[i % len(c.held)] for i in charged if c.held))
            call = commands.reclaim(self.keys, c.name, CAUSE, [commands.Ran(id) for id in ids])
        else:
            call = commands.unregister(self.keys, c.name, str(c.term))
        assert self.answer(call).held == 0
        self.arrivals = len(c.held) + 1
        self.model.crashed_until = []
        self.model.leave(c, ids)
        self.gone(c)

    @precondition(lambda self: any(c.held for c in self.model.consumers.values()))
    @rule(pick=some, chosen=picks, stranger=st.booleans())
    def note_running(self, pick: int, chosen: list[int], stranger: bool) -> None:
        """A supervisor notes what its worker runs, and perhaps what that has just ended."""
        c = self.one(pick, lambda c: bool(c.held))
        assert c is not None
        ids = list(dict.fromkeys(c.held[i % len(c.held)] for i in chosen))
        ids += [id for id in self.model.accepted[-1:] if stranger and id not in ids]
        call = commands.note_running(self.keys, c.name, [commands.Ran(id, 1, 2) for id in ids])
        assert self.answer(call) == self.model.note_running(c, ids)

    @rule(names=picks)
    def renew(self, names: list[int]) -> None:
        known = [*self.model.consumers.values(), *self.left[-2:]]
        named = list(dict.fromkeys(known[i % len(known)].name for i in names)) if known else []
        renewed = self.answer(commands.renew(self.keys, 6000, named))
        before = dict(self.model.consumers)
        self.arrivals = sum(len(c.held) for c in before.values()) + len(before) + 1
        assert (renewed.gone, renewed.reclaimed) == self.model.renew(named, 6000)
        for name, c in before.items():
            if name not in self.model.consumers:
                self.gone(c)

    @rule(ms=st.sampled_from([1, 300, 900, 900, 4000, 7000]))
    def pass_time(self, ms: int) -> None:
        move_time(self.queue, ms)
        self.before = take_snapshot(self.client, self.keys)

    @precondition(lambda self: self.watch)
    @rule(pick=some)
    def timer(self, pick: int) -> None:
        """A consumer that watches the schedule looks when it must, and not before."""
        name = sorted(self.watch)[pick % len(self.watch)]
        now = self.clock()
        if self.watch[name] > now:
            move_time(self.queue, self.watch[name] - now)
            self.before = take_snapshot(self.client, self.keys)
        c = self.model.consumers[name]
        self.pull_by(c, (c.jobs, c.room))

    # -- people ------------------------------------------------------------------------------------

    @rule(really=st.sampled_from([False, False, True]))
    def pause_or_resume(self, really: bool) -> None:
        if self.model.paused:
            self.run(commands.resume(self.keys))
            self.arrivals = self.model.elements() + len(self.model.scheduled)
            self.model.resume()
        elif really:
            self.run(commands.pause(self.keys))
            self.model.paused = True

    @precondition(lambda self: self.model.scheduled)
    @rule(chosen=st.lists(some, max_size=2), parked=st.booleans())
    def promote(self, chosen: list[int], parked: bool) -> None:
        self.arrivals = len(self.model.scheduled)
        if parked:
            back = self.run(commands.unpark(self.keys, "0", ["t"]))[2]
            assert back == self.model.unpark()
            return
        ids = [self.model.scheduled[i % len(self.model.scheduled)][-1] for i in chosen]
        ids = list(dict.fromkeys(ids))
        assert self.answer(commands.promote(self.keys, ids)) == self.model.promote(ids)

    @precondition(lambda self: self.model.jobs)
    @rule(
        chosen=st.lists(some, min_size=1, max_size=3, unique=True),
        level=st.sampled_from([None, None, 9, 4, 0]),
    )
    def reorder(self, chosen: list[int], level: int | None) -> None:
        """Another priority, or the front."""
        known = [*self.model.jobs, *self.model.accepted[-1:]]
        ids = list(dict.fromkeys(known[i % len(known)] for i in chosen))
        to: Any = "front" if level is None else level
        call = commands.reorder(self.keys, to, [(id, b"", b"") for id in ids])
        self.model.now = self.clock()
        assert self.answer(call) == self.model.reorder(ids, level)

    @precondition(lambda self: self.model.accepted)
    @rule(pick=st.integers(0, 40), held=st.booleans())
    def cancel(self, pick: int, held: bool) -> None:
        known = list(self.model.jobs) or self.model.accepted
        id = known[pick % len(known)] if pick < 36 else self.model.accepted[-1]
        self.arrivals = int(self.grouped)
        was = self.answer(commands.cancel(self.keys, id, held=held))
        assert was == self.model.cancel(id, held)

    @precondition(lambda self: self.model.elements() > 2)
    @rule(scheduled=st.booleans(), limit=st.sampled_from([1, 1, 2, 500]))
    def purge(self, scheduled: bool, limit: int) -> None:
        self.arrivals = limit if self.grouped else 0
        ended, _ = self.answer(commands.purge(self.keys, limit, scheduled=scheduled))
        assert ended == self.model.purge(scheduled, limit)

    @precondition(lambda self: self.model.consumers and self.model.jobs)
    @rule(pick=some, chosen=st.lists(some, min_size=1, max_size=4))
    def purge_held(self, pick: int, chosen: list[int]) -> None:
        names, known = sorted(self.model.consumers), list(self.model.jobs)
        name = names[pick % len(names)]
        ids = [known[i % len(known)] for i in chosen]
        self.arrivals = len(ids) if self.grouped else 0
        answer = self.answer(commands.purge_held(self.keys, name, ids))
        assert answer == self.model.purge_held(name, ids)

    @precondition(lambda self: self.model.dead)
    @rule(chosen=st.lists(some, min_size=1, max_size=3), live=st.booleans())
    def dead_letters(self, chosen: list[int], live: bool) -> None:
        ids = [self.model.dead[i % len(self.model.dead)] for i in chosen]
        if live:
            assert self.answer(commands.requeue(self.keys, ids)) == self.model.requeue(ids)
            self.arrivals = len(ids)
        else:
            assert self.answer(commands.purge_dead(self.keys, ids)) == self.model.purge_dead(ids)

    # -- who must not ------------------------------------------------------------------------------

    @precondition(lambda self: self.left or self.model.consumers)
    @rule(pick=some, verb=some, fault=st.sampled_from(["left", "term", "args"]))
    def intrude(self, pick: int, verb: int, fault: str) -> None:
        """A consumer whose term is over, or that talks nonsense, changes nothing."""
        c = self.one(pick) if fault != "left" else None
        if c is None:
            if not self.left:
                return
            c, fault = self.left[-1 - pick % min(3, len(self.left))], "left"
        term = str(c.term) if fault != "term" else str(c.term + 1)
        window = Window(3, 0) if fault != "args" else Window(-7, 0)
        ids = list(self.mine.get(c.name, ())) or self.model.accepted[-2:]
        again = [Retried(id, 0, "old", True, b"") for id in ids]
        calls: list[ScriptCall[Any]] = [
            commands.pull(self.keys, c.name, term, window),
            commands.interest(self.keys, c.name, term, window),
            commands.settle(
                self.keys, c.name, term, window, ack=ids, batch=pack({"id": ids}), rows=len(ids)
            ),
            commands.settle(self.keys, c.name, term, window, retry=again),
            commands.settle(self.keys, c.name, term, window, release=ids),
            commands.settle(self.keys, c.name, term, None, reject=[(id, CAUSE) for id in ids]),
        ]
        if fault != "args":
            calls.append(commands.unregister(self.keys, c.name, term))
            self.refuse(calls[verb % len(calls)], "GONE")
        elif verb % 3 == 2:
            call = commands.settle(self.keys, c.name, term, None, ack=ids)
            self.refuse(
                ScriptCall(call.script, call.key, [*call.args, "more"], call.read), "BADARGS"
            )
        else:
            self.refuse(calls[verb % 3], "BADARGS")

    # -- after every step --------------------------------------------------------------------------

    @invariant()
    def holds(self) -> None:
        before, after = self.before, take_snapshot(self.client, self.keys)
        wrong = [
            *invariants.of_state(after, self.unforgotten()),
            *invariants.credit_kept(before, after),
            *invariants.oldest_taken(before, after),
        ]
        if self.arrivals is not None:
            waiting = sum(len(names.split(b"\n")) for names in before.hash("byte_waiters").values())
            wrong += invariants.no_herd(before, after, self.arrivals + waiting)
        wrong += differences(self.model, after)
        wrong += self.unwatched()
        assert not wrong, "\n  ".join(["after this step:", *wrong])
        self.before, self.arrivals = after, 0
        self.kind = Kind.parse(after.meta.get("v", PLAIN.stamp))

    def unforgotten(self) -> list[str]:
        """What was accepted and has not ended so long ago that its record is gone."""
        m = self.model
        return [id for id in m.accepted if id in m.jobs or id in m.ended or id in m.older]

    def unwatched(self) -> list[str]:
        """The consumer that holds the fleet's timer really means to look in time."""
        m = self.model
        if m.paused or not m.scheduled or m.in_state("notified") or not m.interested():
            return []
        until = self.watch.get(m.timer)
        if until is not None and until <= max(m.scheduled[0][0], m.now):
            return []
        return [f"next due at {m.scheduled[0][0]}, {m.timer} means to look at {until}"]
