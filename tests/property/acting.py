"""Steps of the search: what consumers do, and their supervisors."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rqueue.model.history_batch import pack
from rqueue.protocol import commands
from rqueue.protocol.commands import Retried, ScriptCall, Window
from rqueue.testing import move_time
from tests.property.arriving import Arriving
from tests.property.choices import CAUSE, ERROR, picks, some, windows
from tests.property.entities import Consumer
from tests.support.snapshot import take_snapshot


class Acting(Arriving):
    """Consumers pull, settle, are woken, leave and die; time passes."""

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
        self.answered(c, pulled, timer)
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
            self.answered(c, pulled, timer)
        assert pulled.state == c.state, f"{c.name}: the reply says {pulled.state}, it is {c.state}"
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
