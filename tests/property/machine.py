"""The real scripts on a real server, driven at random beside the model, compared at each step."""

from __future__ import annotations

from hashlib import sha1
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rqueue.model.history_batch import pack
from rqueue.protocol import commands
from rqueue.protocol.commands import Retried, ScriptCall, Window
from rqueue.protocol.commands.admin import Moved
from tests.property.choices import CAUSE, some
from tests.property.committing import Committing
from tests.property.leaving import How as Leaving


class Machine(Committing):
    """One queue, up to six consumers. A step is one script call, and its effect in the model."""

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
        answer = self.answer(commands.promote(self.keys, ids))
        there = {entry[-1] for entry in self.model.scheduled}
        ripe = sum(
            id not in there for id in ids
        )  # due, and made ready by this step before it chose
        assert answer == ripe + self.model.promote(ids)

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

    @precondition(lambda self: self.model.jobs)
    @rule(
        chosen=st.lists(some, min_size=1, max_size=3, unique=True),
        how=st.sampled_from(["move", "expire", "reject"]),
    )
    def take_out(self, chosen: list[int], how: Leaving) -> None:
        """Into another queue, as expired, or to the dead letters."""
        known = [*self.model.jobs, *self.model.accepted[-1:]]
        ids = list(dict.fromkeys(known[i % len(known)] for i in chosen))
        call: ScriptCall[list[str]]
        if how == "move":
            values = [job.value if (job := self.model.jobs.get(id)) else b"" for id in ids]
            jobs = [
                Moved(id, sha1(value).hexdigest(), "4,,0,", b"x")
                for id, value in zip(ids, values, strict=True)
            ]
            call = commands.move(self.keys, "elsewhere", 1, jobs)
        else:
            make = commands.expire if how == "expire" else commands.reject
            call = make(self.keys, ids)
        self.arrivals = len(ids) if self.grouped else 0
        assert self.answer(call) == self.model.take_out(ids, how)

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
