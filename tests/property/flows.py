"""A search through the lives of workflows: a player that does anything to jobs that wait for each
other, and a model that knows of each what should have become of it.

The model knows nothing of how the queue counts: it walks from each job that ends to those that wait
for it, and says of every job whether it waits for others, lives, or how it has ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import redis

from rqueue.model.job import is_mark, parse_value
from rqueue.model.parents import Parents
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, ScriptCall, Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN
from rqueue.protocol.scripts import Scripts
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.run_script import run
from tests.support.snapshot import Snapshot, take_snapshot

WAITS, LIVES = "deferred", "live"
CALL = b'["t"]'
ERROR = b'{"kind":"exception","type":"ValueError","message":"no"}'
TTL_MS = 5000


@dataclass
class Job:
    """What should be true of one job. counted: the places of its parents that have ended. open:
    more of them may come."""

    id: str
    parents: Parents | None
    state: str
    counted: set[int] = field(default_factory=set)
    ttl: bool = False
    open: bool = False


class Model:
    """What should have become of each job."""

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}

    def enqueue(self, job: Job) -> None:
        """A job is there now; some of its parents may have ended before."""
        self.jobs[job.id] = job
        if job.parents is None:
            return
        for place, parent in enumerate(job.parents.of(job.id)):
            if parent in self.jobs and self.jobs[parent].state not in (WAITS, LIVES):
                self._hears(job, place, self.jobs[parent].state)
        self.released(job)

    def end(self, id: str, state: str) -> None:
        """A job ends, and those hear of it that wait for it."""
        self.jobs[id].state = state
        for job in list(self.jobs.values()):
            if job.state == WAITS and job.parents is not None:
                for place, parent in enumerate(job.parents.of(job.id)):
                    if parent == id:
                        self._hears(job, place, state)
                self.released(job)

    def _hears(self, job: Job, place: int, state: str) -> None:
        assert job.parents is not None
        if job.state != WAITS:
            return
        policy, done = job.parents.on_failure, state == "done"
        if policy != "failed" if done else policy in ("continue", "failed"):
            job.counted.add(place)
        elif policy != "wait" or state != "dead":
            self.end(job.id, "cancelled")

    def released(self, job: Job) -> None:
        """It lives where it has nothing to wait for any more."""
        if job.state == WAITS and job.parents and len(job.counted) == job.parents.total:
            job.state = WAITS if job.open else LIVES


class Player:
    """Acts on one queue, and looks after each act. lua: the scripts, which may have a fault."""

    def __init__(self, client: redis.Redis, name: str, lua: Scripts) -> None:
        self.client = client
        self.keys = QueueKeys(name)
        self.kind = PLAIN.having(("flows", "ttl"))
        self.lua = lua
        self.model = Model()
        self.number = 0
        execute(client, commands.configure(self.keys, {"v": self.kind.stamp}), queue=name)
        self.terms: dict[str, str] = {}
        self.join("a")
        self.join("b")

    def run(self, call: ScriptCall[Any]) -> Any:
        script = self.lua.script(call.script, self.kind)
        return call.read(run(self.client, script, call.keys, call.args_for(self.kind.policies)))

    def join(self, name: str) -> None:
        call = commands.register(
            self.keys, name, window=Window(4), lease_ms=10**9, slots=4, worker=f"w{name}"
        )
        self.terms[name] = self.run(call).term

    # -- acts --------------------------------------------------------------------------------------

    def enqueue(self, *jobs: Job) -> None:
        """These jobs in one step, those that wait before those that they wait for."""
        puts = []
        for job in jobs:
            name, _, place = job.id.rpartition(".")
            counts = bool(name) and place.isdigit()
            waits = job.parents.text if job.parents else ""
            ttl = TTL_MS if job.ttl else 0
            puts.append(Put(job.id, CALL, waits=waits, counts=counts, ttl_ms=ttl))
        self.run(commands.enqueue(self.keys, puts))
        for job in jobs:
            job.state = WAITS if job.parents else LIVES
            self.model.jobs[job.id] = job
        for job in jobs:
            self.model.enqueue(job)

    def settle(self, name: str, pick: int, outcome: str, again: bool = False) -> None:
        """This consumer pulls, and says what became of one of its jobs."""
        self.pull(name)
        held = self.look().held.get(name, [])
        if not held:
            return
        id_ = held[pick % len(held)]
        said: dict[str, Any] = {
            "ack": {"ack": [id_]},
            "done": {"done": [(id_, None, b'"a;b|c"')]},
            "reject": {"reject": [(id_, ERROR)]},
            "retry": {"retry": [Retried(id_, 0, "old", True, ERROR)]},
            "later": {"retry": [Retried(id_, 500, "tail", True, ERROR)]},
            "tail": {"retry": [Retried(id_, 0, "tail", True, ERROR)]},
            "release": {"release": [id_]},
        }[outcome]
        window = None if pick % 2 else Window(4)
        for _ in range(1 + again):  # its reply was lost: the second one is stale
            self.run(
                commands.settle(
                    self.keys, name, self.terms[name], window, rows=0, batch=b"", **said
                )
            )
        if outcome in ("ack", "done", "reject"):
            self.model.end(id_, "dead" if outcome == "reject" else "done")

    def pull(self, name: str) -> None:
        self.run(commands.pull(self.keys, name, self.terms[name], Window(4)))

    def cancel(self, id: str) -> None:
        self.run(commands.cancel(self.keys, id, held=True))
        if self.model.jobs[id].state in (WAITS, LIVES):
            self.model.end(id, "cancelled")

    def requeue(self, id: str) -> None:
        self.run(commands.requeue(self.keys, [id]))
        if self.model.jobs[id].state == "dead":
            self.model.jobs[id].state = LIVES

    def purge_dead(self, id: str) -> None:
        self.run(commands.purge_dead(self.keys, [id]))
        if self.model.jobs[id].state == "dead":
            self.model.end(id, "purged")

    def crash(self, name: str) -> None:
        """Its process dies: what it held goes back, and counts for nobody."""
        self.run(commands.unregister(self.keys, name, self.terms[name]))
        self.join(name)

    def purge(self) -> None:
        """What waits ends, in whatever order: the model hears who ended."""
        self.run(commands.purge(self.keys, scheduled=True))
        records = self.look().records
        for id_, job in self.model.jobs.items():
            if job.state in (WAITS, LIVES) and records.get(id_, b"")[:1] in (b"P", b"C"):
                job.state = "purged" if records[id_][:1] == b"P" else "cancelled"

    # -- what must hold ----------------------------------------------------------------------------

    def look(self) -> Snapshot:
        return take_snapshot(self.client, self.keys)

    def holds(self) -> None:
        """The queue keeps what must always hold, and says of each job what the model says."""
        snapshot = self.look()
        assert not (wrong := invariants.of_state(snapshot)), wrong
        places = dict(snapshot.places)
        for id_, value in snapshot.jobs.items():
            assert is_mark(value) or parse_value(value)[1] == CALL, f"job {id_} is {value!r}"
        for id_, job in self.model.jobs.items():
            place = places.get(id_, "")
            if id_ in snapshot.jobs and snapshot.jobs[id_][:1] != b"!" and place:
                found = place if place in (WAITS, "dead") else LIVES
            else:
                letter = snapshot.records.get(id_, b"?")[:1]
                found = {b"D": "done", b"C": "cancelled", b"P": "purged", b"F": "dead"}.get(
                    letter, f"nowhere ({letter!r})"
                )
            assert found == job.state, f"job {id_} is {found}, should be {job.state}: {job}"

    def teardown(self) -> None:
        for key in self.client.scan_iter(match=self.keys.base.replace("{", "\\{") + "*"):
            self.client.delete(key)


OUTCOMES = ["ack", "done", "done", "reject", "retry", "later", "tail", "release"]
POLICIES: tuple[Any, ...] = ("stop", "continue", "wait")


def workflow(random: Random, root: str, known: list[str]) -> list[Job]:
    """A small workflow, those that wait first; some wait for jobs that are there already."""
    kind = random.choice(["chain", "chord", "after", "failed", "plain", "nested"])
    policy = random.choice(POLICIES)
    takes: Any = random.choice(["nothing", "result"])
    if kind == "chain":
        ids = [root + ".0" * depth for depth in range(random.randint(2, 4))]
        one = Parents(1, takes, policy)
        return [Job(id_, one if id_ != ids[-1] else None, "") for id_ in ids]
    if kind == "chord":
        total = random.randint(0, 4)
        parents = Parents(total, random.choice(["nothing", "results"]), policy)
        return [Job(root, parents, ""), *(Job(f"{root}.{n}", None, "") for n in range(total))]
    if kind == "nested":
        first = Job(f"{root}-before", None, "")
        member = Parents(1, takes, policy, (first.id,))
        return [
            Job(root, Parents(2, "results", random.choice(POLICIES)), ""),
            first,
            Job(f"{root}.0", member, ""),
            Job(f"{root}.1", member, ""),
        ]
    some = tuple(random.sample(known, min(len(known), random.randint(1, 3))))
    if kind == "after" and some:
        return [Job(root, Parents(len(some), "nothing", policy, some), "")]
    if kind == "failed" and some:
        return [Job(root, Parents(1, takes, "failed", some[:1]), "")]
    return [Job(root, None, "")]


def play(player: Player, seed: int, steps: int) -> None:
    """So many acts at random; looks after each."""
    random = Random(seed)
    for step in range(steps):
        known = list(player.model.jobs)
        act = random.choices(
            ["enqueue", "settle", "cancel", "requeue", "purge_dead", "crash", "purge"],
            [4, 12, 2, 2, 1, 1, 0.1],
        )[0]
        if act == "enqueue" or not known:
            # one whose record is needed is known for as long as this search takes
            alive = [id_ for id_ in known if player.model.jobs[id_].state != "purged"]
            player.enqueue(*workflow(random, f"{step}", alive))
        elif act == "settle":
            outcome = random.choice(OUTCOMES)
            again = outcome in ("ack", "done", "reject") and random.random() < 0.3
            player.settle(random.choice("ab"), random.randrange(4), outcome, again)
        elif act in ("crash",):
            player.crash(random.choice("ab"))
        elif act == "purge":
            player.purge()
        else:
            of = "dead" if act in ("requeue", "purge_dead") else ""
            some = [id_ for id_ in known if not of or player.model.jobs[id_].state == of]
            if some:
                getattr(player, act)(random.choice(some))
        player.holds()
