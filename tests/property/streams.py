"""A search through the lives of streams: producers that open, go on, seal, die, and come again, two
of one stream at once, among all that happens to jobs anyway; and what should have become of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import redis

from rqueue.errors import RQueueError, StreamSealed, WorkflowEnded
from rqueue.model.parents import LOST_MS, Parents
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.commands.streams import read_stream, seal
from rqueue.protocol.error_mapping import translate
from rqueue.protocol.scripts import Scripts
from rqueue.transport.redis_client import execute
from tests.property.flows import CALL, LIVES, OUTCOMES, WAITS, Job, Player

KEEP_MS = 7 * 86_400_000


@dataclass
class Producer:
    """Of a stream, before its next member."""

    root: str
    place: int


class StreamPlayer(Player):
    """Acts on one queue with streams. producers: those that live. lost_at: until when each open
    stream waits for one."""

    def __init__(self, client: redis.Redis, name: str, lua: Scripts) -> None:
        super().__init__(client, name, lua)
        call = commands.configure(self.keys, {"keep_ms": KEEP_MS})
        execute(client, call, queue=name)
        self.producers: list[Producer] = []
        self.lost_at: dict[str, int] = {}
        self.now = 0

    def said(self, call: commands.ScriptCall[Any]) -> Any:
        """What a call answers: its reply, or the error that a client would raise."""
        try:
            return self.run(call)
        except redis.ResponseError as error:
            made = translate(error, queue=self.keys.queue)
            assert isinstance(made, RQueueError), error
            return made

    def open(self, root: str, policy: Any) -> None:
        """A stream begins: what waits for its members is there."""
        waits = Parents(0, "nothing", policy, streamed=True)
        self.enqueue(Job(root, waits, "", open=True))
        self.lost_at[root] = self.now + LOST_MS
        self.producers.append(Producer(root, 0))

    def step(self, producer: Producer, count: int, times: int = 1) -> None:
        """A producer stores some members; times: the first answers were lost."""
        for _ in range(times):
            self._step(producer.root, producer.place, count)
        producer.place += count

    def _step(self, root: str, first: int, count: int) -> None:
        ids = [f"{root}.{place}" for place in range(first, first + count)]
        said = self.said(commands.enqueue(self.keys, [Put(id_, CALL, counts=True) for id_ in ids]))
        job = self.model.jobs[root]
        fresh = [id_ for id_ in ids if id_ not in self.model.jobs]
        if not fresh or (job.state == WAITS and job.open):
            assert not isinstance(said, RQueueError), said
            assert said.accepted == len(fresh), (said, fresh)
        elif job.state != WAITS:
            assert isinstance(said, WorkflowEnded), said
            return
        else:
            assert isinstance(said, RQueueError), said
            return
        for id_ in fresh:
            self.model.jobs[id_] = Job(id_, None, LIVES)
        if fresh:
            assert job.parents is not None
            job.parents = job.parents._replace(total=job.parents.total + len(fresh))
            self.lost_at[root] = self.now + LOST_MS

    def seal(self, producer: Producer, total: int | None = None) -> None:
        """A producer has come to its end."""
        job, total = self.model.jobs[producer.root], producer.place if total is None else total
        assert job.parents is not None
        said = self.said(seal(self.keys, job.id, total))
        if (job.open and job.state != WAITS) or job.state in ("cancelled", "purged"):
            assert isinstance(said, WorkflowEnded), said
        elif job.state == "done":
            assert said is None, said
        elif job.parents.total != total:
            assert isinstance(said, StreamSealed), said
            assert (said.total, said.said) == (job.parents.total, total)
        else:
            assert said is None, said
            job.open = False
            self.lost_at.pop(job.id, None)
            self.model.released(job)

    def resume(self, root: str) -> None:
        """Another producer goes on with a stream, whose first one died or did not."""
        found = self.run(read_stream(self.keys, root))
        job = self.model.jobs[root]
        waits = job.parents.total if job.state == WAITS and job.parents else None
        assert found.joined == waits, (found, job)
        if waits is not None and job.open:
            self.producers.append(Producer(root, waits))

    def pass_time(self, ms: int) -> None:
        """Time passes, and a lease is renewed."""
        self.now += ms
        self.client.hset(self.keys.meta, "clock", str(self.now))
        while self.run(commands.renew(self.keys, 10**9, ["a", "b"])).more:
            pass
        for root, until in list(self.lost_at.items()):
            job = self.model.jobs[root]
            if until <= self.now and job.open and job.state == WAITS:
                self.model.end(root, "cancelled")


def play(player: StreamPlayer, seed: int, steps: int) -> None:
    """So many acts at random; looks after each."""
    random = Random(seed)
    for number in range(steps):
        act = random.choices(
            ["open", "step", "seal", "die", "resume", "time", "settle", "after", "cancel", "end"],
            [2, 10, 4, 1, 2, 2, 14, 1, 1, 1],
        )[0]
        streams = [id_ for id_, job in player.model.jobs.items() if _streams(job)]
        producer = random.choice(player.producers) if player.producers else None
        if act == "open" or not streams:
            player.open(f"{number}", random.choice(["stop", "continue", "wait"]))
        elif act == "step" and producer:
            player.step(producer, random.randint(1, 3), random.choice([1, 1, 1, 2]))
        elif act == "seal" and producer:
            wrong = random.random() < 0.2
            player.seal(
                producer, max(0, producer.place + random.choice([-1, 1])) if wrong else None
            )
        elif act == "die" and producer:
            player.producers.remove(producer)
        elif act == "resume":
            player.resume(random.choice(streams))
        elif act == "time":
            player.pass_time(random.choice([1000, LOST_MS // 2, LOST_MS - 1, LOST_MS]))
        elif act == "after":
            parents = Parents(1, "nothing", "stop", (random.choice(streams),))
            player.enqueue(Job(f"{number}", parents, ""))
        elif act == "cancel":
            player.cancel(random.choice(list(player.model.jobs)))
        elif act == "end":
            dead = [id_ for id_, job in player.model.jobs.items() if job.state == "dead"]
            if dead:
                random.choice([player.requeue, player.purge_dead])(random.choice(dead))
        else:
            outcome = random.choice(OUTCOMES)
            again = outcome in ("ack", "done", "reject") and random.random() < 0.3
            player.settle(random.choice("ab"), random.randrange(4), outcome, again)
        player.holds()


def _streams(job: Job) -> bool:
    return job.parents is not None and job.parents.streamed
