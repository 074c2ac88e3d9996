"""Workers on a stage that are frozen and go on, while their jobs are cancelled, expire and go to
others: none of them begins a job that is not its own."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.transport.redis_client import execute
from tests.workers.loop.machine import Machine, jobs, some
from tests.workers.loop.truth import Truth

spells = st.sampled_from([0.05, 0.2, 1.0, 12.0, 40.0])
"""Seconds that a worker is frozen: some are shorter than what is taken for granted, some longer
than the lease."""


class Frozen(Machine):
    """As `Machine`, and processes stand still."""

    @precondition(lambda self: any(not one.frozen for one in self.living))
    @rule(
        pick=some,
        replies=st.sampled_from([0, 0, 1, 1, 2]),
        many=st.lists(jobs, max_size=3),
        cancelled=st.integers(0, 2),
        seconds=spells,
    )
    def freeze(
        self,
        pick: int,
        replies: int,
        many: list[tuple[Any, ...]],
        cancelled: int,
        seconds: float,
    ) -> None:
        """A worker stands still: now, or when it is about to read one of the next replies.
        Meanwhile jobs come, and some are cancelled."""
        self.step()
        going = [one for one in self.living if not one.frozen]
        worker = going[pick % len(going)]
        worker.freezes = replies
        if not replies:
            worker.freeze()
        if many:
            self.enqueue(pick, many, alone=True)
        if cancelled and self.world.jobs:
            self.cancel_many(pick=len(many) - 1 if many else pick, many=cancelled)
        self.let_pass(seconds)

    @precondition(lambda self: any(one.frozen for one in self.living))
    @rule(pick=some, seconds=spells, renewed=st.booleans(), choices=st.lists(some, max_size=4))
    def thaw(self, pick: int, seconds: float, renewed: bool, choices: list[int]) -> None:
        """It goes on after a while. Its supervisor may renew its leases before it does anything."""
        self.step(choices)
        self.let_pass(seconds)
        frozen = [one for one in self.living if one.frozen]
        self.thaw_one(frozen[pick % len(frozen)])
        if renewed:
            self.renew()

    @precondition(lambda self: self.world.jobs)
    @rule(pick=some, many=st.integers(1, 6))
    def cancel_many(self, pick: int, many: int) -> None:
        """Several jobs are cancelled at once, wherever they are."""
        self.step()
        for job in self.world.jobs[-1 - pick :][:many]:
            said = execute(self.client, commands.cancel(self.keys(job), job.id, held=True))
            job.cancelled |= said in ("ready", "scheduled", "held")

    @rule(
        pick=some,
        many=st.lists(jobs, min_size=1, max_size=4),
        lives_s=st.sampled_from([0.02, 0.3, 2.0, 20.0]),
    )
    def enqueue_short_lived(self, pick: int, many: list[tuple[Any, ...]], lives_s: float) -> None:
        """Jobs come that are of no use later."""
        self.step()
        queue = self.world.queues[pick % len(self.world.queues)]
        for name, lasts, said, _ in many:
            number = len(self.world.jobs)
            job = Truth(number, queue.name, name, lasts, list(said), f"j{number}")
            job.plain, job.expires = False, self.world.stage.now + lives_s
            self.world.jobs.append(job)
            body = b'["%s",[%d]]' % (name.encode(), number)
            put = Put(job.id, body, max_deliveries=3, ttl_ms=round(lives_s * 1000))
            execute(self.client, commands.enqueue(queue.keys, [put]))
