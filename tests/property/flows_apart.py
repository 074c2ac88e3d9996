"""A search through the lives of workflows whose jobs are in two queues: words of ends are delivered
at any time, twice, or by who dies before it can say so. The model is that of one queue: what it
says must be true as soon as no word is under way.
"""

from __future__ import annotations

from random import Random
from typing import Any

import redis

from rqueue.model.job import is_mark, parse_value
from rqueue.model.parents import Dependant, Failure, Parents, read_results
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.commands.outgoing import read_outgoing
from rqueue.protocol.policies import PLAIN
from rqueue.protocol.scripts import Scripts
from rqueue.transport.redis_client import execute
from tests.property.flows import CALL, LIVES, OUTCOMES, POLICIES, WAITS, Job, Model, Player
from tests.support import invariants
from tests.support.snapshot import take_snapshot

RESULT = "a;b|c"
"""What a job returns that is done, and not acked."""


class OfOne(Player):
    """What happens in one of the queues. left: what the jobs of both returned."""

    def __init__(
        self, client: redis.Redis, name: str, lua: Scripts, model: Model, left: dict[str, Any]
    ) -> None:
        super().__init__(client, name, lua)
        self.kind = PLAIN.having(("flows", "ttl", "outbox"))
        execute(client, commands.configure(self.keys, {"v": self.kind.stamp}), queue=name)
        self.model = model
        self.left = left

    def settle(self, name: str, pick: int, outcome: str, again: bool = False) -> None:
        """As of any player; which job it is shows when it has ended."""
        before = {id_ for id_, job in self.model.jobs.items() if job.state == LIVES}
        super().settle(name, pick, outcome, again)
        for id_ in before:
            if self.model.jobs[id_].state == "done":
                self.left.setdefault(id_, RESULT if outcome == "done" else None)


class Apart:
    """Acts on two queues, and looks after each act."""

    def __init__(self, client: redis.Redis, name: str, lua: Scripts) -> None:
        self.model = Model()
        self.left: dict[str, Any] = {}
        self.of = {
            # a name that is not what it is in terms and in headers
            at: OfOne(client, f"{name}-{at}%/", lua, self.model, self.left)
            for at in "ab"
        }
        self.where: dict[str, str] = {}

    # -- acts --------------------------------------------------------------------------------------

    def enqueue(self, jobs: list[tuple[str, Job]]) -> None:
        """Each of these jobs in its queue, those first that wait."""
        self.where |= {job.id: at for at, job in jobs}
        for at, job in sorted(jobs, key=lambda one: one[1].parents is None):
            waits, counts = "", False
            if job.parents:
                its = [self.of[self.where[id_]].keys.queue for id_ in job.parents.of(job.id)]
                away = bool(job.parents.ids) or {*its} != {self.of[at].keys.queue}
                queues = tuple(dict.fromkeys(its)) if away else ()
                waits = job.parents._replace(queues=queues).text
            dependants = []
            for to, other in jobs:
                if other.parents is None or job.id not in other.parents.of(other.id):
                    continue
                if not other.parents.ids and to == at:
                    counts = True
                    continue
                queue = "" if to == at else self.of[to].keys.queue
                wants = other.parents.takes != "nothing"
                place = other.parents.of(other.id).index(job.id)
                one = Dependant(queue, wants, other.id if other.parents.ids else "", place)
                dependants.append(one.text)
            player = self.of[at]
            put = Put(job.id, CALL, waits=waits, counts=counts, dependants=tuple(dependants))
            player.run(commands.enqueue(player.keys, [put]))
            job.state = WAITS if job.parents else LIVES
            self.model.jobs[job.id] = job
        for _, job in jobs:
            self.model.enqueue(job)

    def deliver(self, random: Random) -> None:
        """A word that is under way arrives, and who brought it may die then."""
        player = random.choice([*self.of.values()])
        words = [*player.client.hgetall(player.keys.outgoing_jobs).items()]
        if words:
            self._bring(player, *random.choice(words), says_so=random.random() < 0.5)

    def flush(self) -> None:
        """All words arrive that are under way."""
        while any([self._flush(player) for player in self.of.values()]):
            pass

    def _flush(self, player: OfOne) -> bool:
        words = sorted(player.client.hgetall(player.keys.outgoing_jobs).items())
        for member, word in words:
            self._bring(player, member, word, says_so=True)
        return bool(words)

    def _bring(self, player: OfOne, member: bytes, word: bytes, *, says_so: bool) -> None:
        said = read_outgoing(member, word)
        assert said is not None and said.ends > 0, word
        there = [one for one in self.of.values() if one.keys.queue == said.target]
        assert there, f"a word for queue {said.target!r}"
        (to,) = there
        to.run(commands.join(to.keys, [(said.id, said.envelope)]))
        if says_so:
            player.run(commands.outgoing_done(player.keys, [member]))

    # -- what must hold ----------------------------------------------------------------------------

    def right(self) -> None:
        """Each queue is right, whatever is under way."""
        for player in self.of.values():
            assert not (wrong := invariants.of_state(player.look())), wrong

    def holds(self) -> None:
        """No word is under way, and all is as the model says."""
        self.flush()
        self.right()
        for at, player in self.of.items():
            snapshot = take_snapshot(player.client, player.keys)
            places = dict(snapshot.places)
            for id_, job in self.model.jobs.items():
                if self.where[id_] != at:
                    continue
                place = places.get(id_, "")
                if place and id_ in snapshot.jobs and not is_mark(snapshot.jobs[id_]):
                    found = place if place in (WAITS, "dead") else LIVES
                else:
                    letter = snapshot.records.get(id_, b"?")[:1]
                    found = {b"D": "done", b"C": "cancelled", b"P": "purged"}.get(letter, "nowhere")
                assert found == job.state, f"job {id_} is {found}, should be {job.state}: {job}"
                if found == LIVES and job.parents and job.parents.takes != "nothing":
                    self._has_results(job, snapshot.jobs[id_])

    def _has_results(self, job: Job, value: bytes) -> None:
        assert job.parents is not None
        header, _ = parse_value(value)
        given = read_results(header.waits, header.results)
        results = given[0] if job.parents.takes == "results" else given
        for id_, result in zip(job.parents.of(job.id), results, strict=True):
            if isinstance(result, Failure):
                assert result.id == id_ and result.state != "done"
            else:
                assert result == self.left.get(id_), f"{job.id} got {result!r} of {id_}"

    def teardown(self) -> None:
        for player in self.of.values():
            player.teardown()


def workflow(random: Random, root: str) -> list[tuple[str, Job]]:
    """A small workflow over both queues."""
    policy = random.choice(POLICIES)
    takes: Any = random.choice(["nothing", "result"])
    lists: Any = random.choice(["nothing", "results"])
    kind = random.choice(["chain", "chord", "named", "failed"])
    if kind == "chain":
        ids = [root + ".0" * depth for depth in range(random.randint(2, 4))]
        one = Parents(1, takes, policy)
        jobs = [Job(id_, one if id_ != ids[-1] else None, "") for id_ in ids]
    elif kind == "chord":
        total = random.randint(1, 4)
        members = [Job(f"{root}.{n}", None, "") for n in range(total)]
        jobs = [Job(root, Parents(total, lists, policy), ""), *members]
    elif kind == "named":
        first = [Job(f"{root}-before.{n}", None, "") for n in range(2)]
        both = Parents(2, lists, policy, tuple(job.id for job in first))
        jobs = [
            Job(root, Parents(2, lists, random.choice(POLICIES)), ""),
            Job(f"{root}.0", both, ""),
            Job(f"{root}.1", both, ""),
            *first,
        ]
    else:
        failed = Parents(1, takes, "failed", (root,))
        jobs = [Job(f"{root}-error0", failed, ""), Job(root, None, "")]
    return [(random.choice("ab"), job) for job in jobs]


def play(player: Apart, seed: int, steps: int) -> None:
    """So many acts at random; looks after each."""
    random = Random(seed)
    for step in range(steps):
        known = list(player.model.jobs)
        act = random.choices(
            ["enqueue", "settle", "deliver", "cancel", "requeue", "purge_dead", "crash"],
            [3, 14, 6, 1, 2, 1, 1],
        )[0]
        one = player.of[random.choice("ab")]
        if act == "enqueue" or not known:
            player.enqueue(workflow(random, f"{step}"))
        elif act == "settle":
            outcome = random.choice(OUTCOMES)
            again = outcome in ("ack", "done", "reject") and random.random() < 0.3
            one.settle(random.choice("ab"), random.randrange(4), outcome, again)
        elif act == "deliver":
            player.deliver(random)
        elif act == "crash":
            one.crash(random.choice("ab"))
        else:
            player.holds()  # what the model says is true now
            of = "dead" if act in ("requeue", "purge_dead") else ""
            some = [id_ for id_ in known if not of or player.model.jobs[id_].state == of]
            if some:
                id_ = random.choice(some)
                getattr(player.of[player.where[id_]], act)(id_)
        player.right()
    player.holds()
