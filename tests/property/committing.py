"""Steps of the search: transactions."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rqueue.model.history_batch import pack
from rqueue.model.terms import NORMAL_TERMS
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried
from tests.property.acting import Acting
from tests.property.choices import CAUSE, ERROR, delays, groups, paddings, priorities, some

SETTLES = ("ack", "done", "retry", "reject", "release")
"""What a transaction may say of a job, in the order in which the script reads it."""


class Committing(Acting):
    """Consumers settle jobs and enqueue others in one step."""

    @precondition(lambda self: any(self.mine.values()))
    @rule(
        pick=some,
        outcomes=st.lists(
            st.tuples(some, st.sampled_from(["ack", "done", "release", "retry", "reject"])),
            min_size=1,
            max_size=3,
        ),
        jobs=st.lists(st.tuples(priorities, delays, paddings, groups), max_size=3),
        foreign=st.sampled_from([False, False, False, True]),
    )
    def commit(
        self,
        pick: int,
        outcomes: list[tuple[int, str]],
        jobs: list[tuple[int, int, int, str]],
        foreign: bool,
    ) -> None:
        """A transaction: jobs are settled and others enqueued, or nothing is done."""
        c = self.one(pick, lambda c: bool(self.mine[c.name]))
        if c is None:
            return
        mine = self.mine[c.name]
        said = {list(mine)[place % len(mine)]: outcome for place, outcome in outcomes}
        strangers = [id for id in self.model.accepted if id not in mine and id not in c.held]
        if foreign and strangers:
            said[strangers[-1]] = "ack"
        named = {word: [id for id, its in said.items() if its == word] for word in SETTLES}
        puts = [
            Put(
                f"j{len(self.model.accepted) + n}",
                f'["t",["{"x" * padding}"]]'.encode(),
                4 if self.everyday else priority,
                delay,
                group=group if self.grouped else "",
                unique=f"{'sr' if padding else 'ex'}:{group}" if self.uniqued and group else "",
            )
            for n, (priority, delay, padding, group) in enumerate(jobs)
        ]
        rows = [*named["ack"], *named["done"], *named["retry"], *named["reject"]]
        words = ["ack"] * len(named["ack"] + named["done"]) + ["retry"] * len(named["retry"])
        words += ["reject"] * len(named["reject"])
        call = commands.commit(
            self.keys,
            c.name,
            str(c.term),
            puts,
            ack=named["ack"],
            done=[(id, None, b"1") for id in named["done"]],
            retry=[Retried(id, 0, "old", True, ERROR) for id in named["retry"]],
            reject=[(id, CAUSE) for id in named["reject"]],
            release=named["release"],
            freed=sum(mine.get(id, 0) for id in said),
            batch=pack({"id": rows, "outcome": words}) if rows else b"",
            rows=len(rows),
        )
        committed = self.answer(call)
        if stale := [id for word in SETTLES for id in named[word] if id not in c.held]:
            assert list(committed.stale) == stale
            self.arrivals = 0
            return
        assert committed.stale == ()
        self.ripen()
        for id in said:
            mine.pop(id)
        new = [
            self.model.new_job(
                put.id,
                put.envelope,
                put.priority,
                0,
                0,
                put.delay_ms and self.model.now + put.delay_ms,
                0,
                put.group,
                unique=put.unique,
            )
            for put in puts
        ]
        ordinary = all(put.terms == NORMAL_TERMS for put in puts)
        over = dict.fromkeys([*named["ack"], *named["done"]], "done")
        over |= dict.fromkeys(named["reject"], "dead")
        others = self.model.stand_ins(new, over)
        assert {puts[one.place].id: one.id for one in committed.answered} == others
        # what comes back in the same step goes before what is new
        direct = not (named["retry"] or named["reject"] or named["release"])
        taker = ""
        if new:
            taker = self.model.enqueue(new, special=not ordinary, over=over, direct=direct)
        assert committed.handed_to == taker
        retries = [(id, 0, "old", True, None) for id in named["retry"]]
        acked = named["ack"] + named["done"]
        self.model.settle(c, acked, retries, named["reject"], named["release"], None)
        assert committed.state == c.state
        self.arrivals = 1 + len(puts) + len(said)
