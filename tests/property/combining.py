"""Queues that have several policies at once: what producers, consumers and people do, at random.

There is no model beside it. After each step all that must always hold of any queue is looked at, a
refusal has changed nothing, and in the end a consumer that takes all jobs empties the queue.
"""

from __future__ import annotations

import random
from typing import Any

import redis

from rqueue.client._sync.queue import Queue
from rqueue.errors import QueueDamaged, RQueueError, ScriptError, UnusableServer
from rqueue.model.schedule import Overlap, Timing
from rqueue.model.selector import Selector, selector
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, ScriptCall, Window
from rqueue.protocol.commands.clock import stop_clock
from rqueue.protocol.commands.consumers import Ran
from rqueue.protocol.commands.deletion import is_there
from rqueue.protocol.commands.shards import of_version
from rqueue.protocol.credit import UNLIMITED, Credit, GrantCredit, WindowCredit
from rqueue.protocol.policies import Kind
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.property.arms import ARMS
from tests.property.choices import CAUSE, ERROR
from tests.property.sources import START_MS
from tests.support import invariants, transitions
from tests.support.schedules import schedule
from tests.support.snapshot import Snapshot, take_snapshot

LEASE_MS = 60_000
CONSUMERS_MAX = 4
BODIES = (b'["t"]', b'["t",["xxxxxxxxxxxxxxxxxxxx"]]', b'["t",[],{},{"labels":{"x":1}}]')
OUTCOMES = ("ack", "ack", "release", "retry", "later", "tail", "reject")
MINE = (QueueDamaged, ScriptError, UnusableServer)
"""Errors that no step may end with: these say that something is wrong."""
UNORDERED = {"shares"}
"""Policies by which a consumer takes turns over jobs, whatever their places."""

TICK_TAGS = {"unique": "|uex:a", "last_value": "|ka", "groups": "|ga", "limits": "|ltwo:2"}
"""What jobs of schedules have of a policy."""


class Combined:
    """One queue of a kind, and up to four consumers of it. Its clock stands unless it is moved: the
    same seed is the same course."""

    def __init__(self, client: redis.Redis, name: str, kind: Kind, seed: int) -> None:
        self.client = client
        self.queue = Queue(name, redis=client)
        self.keys = self.queue.keys
        self.kind = kind
        self.random = random.Random(f"{seed} {kind}")
        self.arms = [ARMS[policy] for policy in kind.policies]
        self.select = next((arm.select for arm in self.arms if arm.select), "")
        self.terms: dict[str, str] = {}
        self.credit: dict[str, Credit] = {}
        self.narrow = self.random.random() < 0.3
        """Whether all windows are of one job: some faults show only then."""
        self.ticking = "schedules" in kind.policies
        self.overlaps: list[Overlap] = ["allow", "skip", "queue"]
        self.ordered = not UNORDERED & {*kind.policies}
        self.prefix = "j"
        """What ids begin with."""
        self.jobs = 0
        self.joined = 0
        self.asks = ""
        """Who has just said its window."""
        self.said: list[str] = []
        """The steps, for who reads a failure."""
        if "alternate" in kind.policies:
            self.queue.at("elsewhere").configure(max_deliveries=3)
        options: dict[str, int | str] = {"v": kind.stamp}
        execute(client, commands.configure(self.keys, options), queue=name)
        execute(client, stop_clock(self.keys, START_MS))
        settings = {name: value for arm in self.arms for name, value in arm.options.items()}
        self.before = take_snapshot(client, self.keys)
        if settings:
            self.run(commands.configure(self.keys, settings))
        self.shard = any(arm.shard for arm in self.arms)
        if self.shard:
            self.run(
                commands.inform_shard(
                    self.keys, "spread", 1, fields={"version": "1", "0": "open 1 "}
                )
            )
        self.join()

    def teardown(self) -> None:
        for key in self.client.scan_iter(self.keys.base + "*", count=10_000):
            self.client.delete(key)

    # -- a step, and what is to hold then ----------------------------------------------------------

    def run(self, call: ScriptCall[Any]) -> Any:
        """Its answer; None where it is refused, and has changed nothing."""
        self.said.append(f"{call.script} {list(call.args)[:12]}")
        try:
            answer = execute(self.client, call, queue=self.queue.name)
            self.look()
        except MINE:
            raise
        except RQueueError as error:
            self.said[-1] += f" refused: {error}"
            # what was due when a producer came is ready, and what was over has ended
            times = [*self.before.scores("scheduled").values()]
            times += self.before.scores("expiring").values()
            times += self.before.scores("ticks").values()
            due = [ms for ms in times if ms <= self.before.now]
            self.look(unchanged=not due or call.script not in ("commit", "enqueue"))
            return None
        finally:
            self.asks = ""
        return answer

    def look(self, unchanged: bool = False) -> Snapshot:
        """Raise AssertionError where something does not hold."""
        after = take_snapshot(self.client, self.keys)
        wrong = invariants.of_state(after)
        if unchanged:
            wrong += invariants.unchanged(self.before, after)
        wrong += transitions.credit_kept(self.before, after)
        if self.ordered:
            wrong += transitions.oldest_taken(self.before, after)
        wrong += self.count_credit(after)
        if wrong:
            steps = "\n  ".join(self.said[-25:])
            raise AssertionError(f"in {self.kind}: {wrong}\nafter these steps:\n  {steps}")
        self.before = after
        for name in self.terms.keys() - after.consumers.keys():
            del self.terms[name]
        return after

    def count_credit(self, after: Snapshot) -> list[str]:
        """What consumers took is taken from their credit, and restored as each kind of it does.
        Which of them took more than they granted."""
        wrong = []
        for name, ids in transitions.newly_held(self.before, after).items():
            if (credit := self.credit.get(name)) is None:
                continue
            # what was delivered to it without its asking went by what it had said last
            if isinstance(credit, GrantCredit) and name == self.asks and credit.jobs < len(ids):
                wrong.append(f"{name} had {credit.jobs} granted, and took {ids}")
            for id_ in ids:
                credit.take(len(after.jobs[id_]))
        for name, ids in self.before.held.items():
            if name in self.credit:
                gone = [id_ for id_ in ids if id_ not in after.held.get(name, ())]
                size = sum(len(self.before.jobs[id_]) for id_ in gone)
                self.credit[name].restore(len(gone), size)
        return wrong

    # -- steps -------------------------------------------------------------------------------------

    def step(self) -> None:
        """One of them."""
        choose = [
            *[self.put] * 5, *[self.pull] * 5, *[self.settle] * 5, *[self.commit] * 2, self.join,
            self.leave, self.cancel, self.reorder, self.interest, *[self.pass_time] * 2,
            self.people, self.hear, *[self.periodic] * 2 * self.ticking,
        ]  # fmt: skip
        self.random.choice(choose)()

    def puts(self, count: int) -> list[Put]:
        """So many new jobs."""
        puts = []
        for _ in range(count):
            terms: dict[str, Any] = {
                "priority": self.random.choice([4, 4, 4, 9, 0]),
                "delay_ms": self.random.choice([0, 0, 0, 0, 800]),
                "max_deliveries": self.random.choice([0, 0, 2]),
            }
            for arm in self.arms:
                terms |= arm.terms(self.random, self.jobs)
            puts.append(Put(f"{self.prefix}{self.jobs}", self.random.choice(BODIES), **terms))
            self.jobs += 1
        return puts

    def put(self) -> None:
        puts = self.puts(self.random.choice([1, 1, 1, 2, 3]))
        immediate = len(puts) == 1 and self.random.random() < 0.1
        call = commands.enqueue(self.keys, puts, immediate=immediate)
        self.run(of_version(call, 1) if self.shard else call)

    def name(self) -> str:
        return self.random.choice(sorted(self.terms)) if self.terms else ""

    def window(self, name: str, less: list[str] | None = None) -> Window:
        """What a consumer says that it may hold; less: of what it holds, what goes first."""
        held = [id_ for id_ in self.before.held.get(name, []) if id_ not in (less or ())]
        size = sum(len(self.before.jobs[id_]) for id_ in held)
        return self.credit[name].window(len(held), size)

    def some_credit(self) -> Credit:
        """A window, or a grant that is used up."""
        jobs = 1 if self.narrow else self.random.choice([1, 1, 2, 3])
        manager = self.random.choice([WindowCredit, WindowCredit, GrantCredit])
        return manager(jobs, self.random.choice([UNLIMITED, UNLIMITED, UNLIMITED, 150]))

    def join(self) -> None:
        if len(self.terms) >= CONSUMERS_MAX:
            return
        self.joined += 1
        selects: Selector | None = None
        if self.select and self.random.random() < 0.6:
            selects = selector(self.select)
        name = f"c{self.joined}"
        self.credit[name] = self.some_credit()
        call = commands.register(
            self.keys,
            name,
            window=self.window(name),
            priority=self.random.choice([0, 0, 0, 1]),
            lease_ms=LEASE_MS,
            select=selects,
        )
        if answer := self.run(call):
            self.terms[name] = answer.term

    def leave(self) -> None:
        if len(self.terms) < 2:
            return
        name = self.name()
        term = self.terms[name]
        if self.random.random() < 0.5:
            held = self.before.held.get(name, [])
            charged = [Ran(id_, 0, 0) for id_ in held[:1]]
            self.run(commands.reclaim(self.keys, name, CAUSE, charged))
        else:
            self.run(commands.unregister(self.keys, name, term))

    def pull(self) -> None:
        if name := self.name():
            notified = sorted(self.before.scores("notified").keys() & self.terms.keys())
            self.asks = name = self.random.choice([name, *notified])
            self.run(commands.pull(self.keys, name, self.terms[name], self.window(name)))

    def interest(self) -> None:
        """A consumer grants more, or begins with another window."""
        if name := self.name():
            if isinstance(credit := self.credit[name], GrantCredit):
                credit.add(self.random.choice([1, 2]))
            else:
                self.credit[name] = self.some_credit()
                held = self.before.held.get(name, [])
                for id_ in held:
                    self.credit[name].take(len(self.before.jobs[id_]))
                if isinstance(credit := self.credit[name], GrantCredit):
                    credit.add(max(0, len(held) - credit.jobs))
            self.run(commands.interest(self.keys, name, self.terms[name], self.window(name)))

    def settling(self) -> tuple[str, list[str], dict[str, Any]]:
        """A consumer that holds jobs, some of them, and what it says of them; "" for none."""
        holders = sorted(self.before.held.keys() & self.terms.keys())
        if not holders:
            return "", [], {}
        name = self.random.choice(holders)
        held = self.before.held[name]
        ids = held[: self.random.choice([1, 1, 2, 3])]
        groups: dict[str, list[str]] = {}
        outcomes = [*OUTCOMES, "refuse"] if any(arm.refuses for arm in self.arms) else OUTCOMES
        for id_ in ids:
            groups.setdefault(self.random.choice(outcomes), []).append(id_)
        fates = {"retry": ("old", 0), "later": ("old", 800), "tail": ("tail", 0)}
        retry = [
            Retried(id_, fates[how][1], fates[how][0], True, ERROR)
            for how in fates
            for id_ in groups.get(how, ())
        ]
        retry += [Retried(id_, 0, "elsewhere", False, b"") for id_ in groups.get("refuse", ())]
        said = {
            "ack": groups.get("ack", []),
            "retry": retry,
            "reject": [(id_, CAUSE) for id_ in groups.get("reject", ())],
            "release": groups.get("release", []),
            "freed": sum(len(self.before.jobs[id_]) for id_ in ids),
        }
        return name, ids, said

    def settle(self) -> None:
        name, ids, said = self.settling()
        if not name:
            return
        # what is settled gives a grant nothing back: its window is said anew
        pulls = self.random.random() < 0.5 or isinstance(self.credit[name], GrantCredit)
        window = self.window(name, ids) if pulls else None
        self.asks = name if pulls else ""
        self.run(commands.settle(self.keys, name, self.terms[name], window, **said))

    def commit(self) -> None:
        """A transaction: some jobs are settled and others enqueued, or nothing is done."""
        name, _, said = self.settling()
        puts = self.puts(self.random.choice([0, 1, 2]))
        others = []
        if "outbox" in self.kind.policies and self.random.random() < 0.3:
            others = [("elsewhere", Put(f"o{self.jobs}", BODIES[0]))]
            self.jobs += 1
        if not name and not puts and not others:
            return
        if name and isinstance(self.credit[name], GrantCredit):
            name, said = "", {}
        call = commands.commit(
            self.keys, name, self.terms.get(name, ""), puts, others=others, **said
        )
        self.run(of_version(call, 1) if self.shard else call)

    def periodic(self) -> None:
        """A schedule is made, run at once, or removed."""
        name = self.random.choice("st")
        roll = self.random.random()
        if roll < 0.6:
            overlap = self.random.choice(self.overlaps)
            timing = Timing.of(every=1, overlap=overlap, missed=self.random.choice(["last", "all"]))
            tags = "".join(TICK_TAGS.get(policy, "") for policy in self.kind.policies)
            terms = f"4,,0{tags},"
            call = schedule(self.before.now, timing, terms=terms)
            self.run(commands.set_schedule(self.keys, name, "", call))
        elif roll < 0.8:
            self.run(commands.run_schedule(self.keys, name))
        else:
            self.run(commands.remove_schedule(self.keys, name))

    def some_job(self) -> str:
        return self.random.choice(sorted(self.before.jobs) or ["none"])

    def cancel(self) -> None:
        held = self.random.random() < 0.5
        self.run(commands.cancel(self.keys, self.some_job(), held=held))

    def reorder(self) -> None:
        to: Any = self.random.choice([9, 4, "front"])
        self.run(commands.reorder(self.keys, to, [(self.some_job(), b"", b"")]))

    def pass_time(self) -> None:
        move_time(self.queue, self.random.choice([1, 900, 4000]))
        if self.random.random() < 0.5:
            self.said.append("renew")
            execute(self.client, commands.renew(self.keys, LEASE_MS, list(self.terms)))
        self.before = take_snapshot(self.client, self.keys)
        self.look()

    def people(self) -> None:
        """What the command line does."""
        id_ = self.some_job()
        calls: list[ScriptCall[Any]] = [
            commands.requeue(self.keys, [id_]),
            commands.promote(self.keys, [id_]),
            commands.promote(self.keys),
            commands.expire(self.keys, [id_]),
            commands.reject(self.keys, [id_]),
            commands.purge(self.keys, 2, scheduled=True),
            commands.pause(self.keys),
        ]
        self.run(self.random.choice(calls))
        if self.before.meta.get("paused") == "1":
            self.run(commands.resume(self.keys))

    def hear(self) -> None:
        """A consumer reads a word of its list."""
        if names := sorted(name for name, unread in self.before.wakes.items() if unread):
            self.client.lpop(self.keys.wake(self.random.choice(names)))
            self.before = take_snapshot(self.client, self.keys)

    # -- the end -----------------------------------------------------------------------------------

    def empty(self) -> None:
        """All leave but one, that takes everything: nothing is left that waits."""
        for name, term in list(self.terms.items()):
            while (left := self.run(commands.unregister(self.keys, name, term))) and left[0]:
                ...
        self.terms.clear()
        self.credit.clear()
        counts = execute(self.client, commands.counts(self.keys), queue=self.queue.name)
        if not is_there(counts):
            return
        if self.ticking:
            for name in "st":
                self.run(commands.remove_schedule(self.keys, name))
        answer = self.run(
            commands.register(self.keys, "last", window=Window(100), lease_ms=10 * LEASE_MS)
        )
        for _ in range(60):
            move_time(self.queue, 4000)
            self.before = take_snapshot(self.client, self.keys)
            reply = self.run(commands.pull(self.keys, "last", answer.term, Window(100)))
            ids = list(self.before.held.get("last", ()))
            if not ids and not reply.jobs and not self.before.scheduled:
                break
            self.run(commands.settle(self.keys, "last", answer.term, None, ack=ids))
        counts = execute(self.client, commands.counts(self.keys), queue=self.queue.name)
        left = {"ready": counts.ready, "scheduled": counts.scheduled, "blocked": counts.blocked}
        assert not any(left.values()) and not counts.held, f"in {self.kind}: {left} are left"
