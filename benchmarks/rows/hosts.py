"""Pools on many hosts against one Redis: what the steps of a consumer's life, and of a job, cost as
the consumers of a queue become many. Consumers are truly registered; no process stands behind
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope
from benchmarks.lab.rounds import spread
from benchmarks.lab.server import memory, usage
from benchmarks.rows.row import Figure, Target, row
from rqueue.model.ids import new_id
from rqueue.model.terms import NORMAL_TERMS
from rqueue.protocol import commands
from rqueue.protocol.commands.settle import Window
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.connection import Connection
from rqueue.transport.lease_renewer import RenewalPace

PROCESSES = 8
"""Of each pool."""

LEASE_MS = 30_000
CAUSE = b'{"kind":"crash","type":"WorkerDied","message":"killed by signal 9"}'

Step = Callable[[], Any]


class Fleet:
    """Consumers of one queue, in pools of eight. Each waits for work, as those of idle pools do."""

    def __init__(self, bench: Bench, queue: str) -> None:
        self.keys = QueueKeys(queue)
        self.redis = bench.redis
        self.connection = Connection(bench.redis, timeout=60)
        self.terms: dict[str, str] = {}
        self._made = 0

    def run(self, call: commands.ScriptCall[Any]) -> Any:
        return self.connection.run(call)

    def register(self) -> str:
        """One more consumer, which waits."""
        self._made += 1
        name = f"host-{self._made // PROCESSES}:{self._made}"
        call = commands.register(
            self.keys, name, window=Window(1), lease_ms=LEASE_MS, worker=name, token=name
        )
        self.terms[name] = self.run(call).term
        return name

    def grow(self, consumers: int) -> None:
        """Register until there are so many; leases last while this goes on."""
        while len(self.terms) < consumers:
            self.register()
            if self._made % 1000 == 0:
                self.renew_all()

    def renew_all(self) -> None:
        names = list(self.terms)
        for start in range(0, len(names), 1000):
            self.run(commands.renew(self.keys, LEASE_MS, names[start : start + 1000]))

    def renew(self) -> None:
        """What the supervisor of one pool does."""
        self.run(commands.renew(self.keys, LEASE_MS, list(self.terms)[:PROCESSES]))

    def unregister(self) -> None:
        name, term = self.terms.popitem()
        self.run(commands.unregister(self.keys, name, term))

    def reclaim(self) -> None:
        """What the supervisor does when one of its workers has died."""
        name, _ = self.terms.popitem()
        self.run(commands.reclaim(self.keys, name, CAUSE, []))

    def pull(self) -> None:
        """One that waits looks, and there is nothing."""
        name = next(iter(self.terms))
        self.run(commands.pull(self.keys, name, self.terms[name], Window(1)))

    def job(self) -> None:
        """A job comes, is delivered to one that waits, and is settled; that one waits again."""
        put = commands.enqueue_alike(self.keys, [id := new_id(), envelope("hit")], NORMAL_TERMS)
        taker = self.run(put).handed_to
        self.redis.delete(self.keys.wake(taker))
        self.run(commands.settle(self.keys, taker, self.terms[taker], Window(1), ack=[id]))

    def close(self) -> None:
        self.connection.close()


def steps(fleet: Fleet) -> dict[str, Step]:
    """In this order: there are as many consumers afterwards as before."""
    return {
        "register": fleet.register,
        "unregister": fleet.unregister,
        "register again": fleet.register,
        "reclaim (a worker died)": fleet.reclaim,
        "renew (a pool of 8)": fleet.renew,
        "a job: enqueue, direct delivery, settle": fleet.job,
        "pull (nothing there)": fleet.pull,
        "counts": lambda: fleet.run(commands.counts(fleet.keys)),
    }


def costs(bench: Bench, fleet: Fleet, times: int) -> dict[str, float]:
    """Microseconds of Redis's CPU for each step."""
    found: dict[str, float] = {}
    for name, step in steps(fleet).items():
        step()  # Redis has its script
        step() if name.startswith(("register", "unregister", "reclaim")) else None
        before = usage(bench.redis)
        for _ in range(times):
            step()
        found[name] = usage(bench.redis).since(before).cpu / times * 1e6
    return found


@row("hosts", "many pools of 8 processes at one queue of one Redis")
def hosts(bench: Bench) -> list[Figure]:
    """Each step's time with a few pools and with very many; then what these cost while nothing
    happens."""
    pools = (8, bench.size.of(16, 125, 125), bench.size.of(32, 1000, 1000))
    times = bench.size.of(10, 100, 300)
    bench.empty()
    fleet = Fleet(bench, "bench")
    found: dict[int, dict[str, float]] = {}
    try:
        fleet.grow(PROCESSES)
        costs(bench, fleet, 3)  # Redis has all scripts, and its tables are there
        empty, first = memory(bench.redis), len(fleet.terms)
        for many in pools:
            fleet.grow(many * PROCESSES)
            fleet.renew_all()
            found[many] = costs(bench, fleet, times)
        each = (memory(bench.redis) - empty) / (len(fleet.terms) - first)
    finally:
        fleet.close()
        bench.empty()
    few, many = pools[0], pools[-1]
    consumers = f"{many * PROCESSES:,} consumers"
    target = Target(3, more=False)
    figures = []
    for name, took in found[many].items():
        steps_of = ", ".join(f"{pool * PROCESSES:,}: {found[pool][name]:.0f}" for pool in pools)
        figures.append(
            Figure(
                f"{name}: µs of Redis with so many consumers: {steps_of}",
                spread([took / found[few][name]]),
                target=None if name == "counts" else target,
            )
        )
    pace = 1 / RenewalPace(LEASE_MS).interval
    renew = found[many]["renew (a pool of 8)"]
    figures += [
        Figure(f"{many:,} pools renew", spread([many * pace]), "a second"),
        Figure("of one core of Redis for these renewals", spread([many * pace * renew / 1e4]), "%"),
        Figure(
            f"of it while {consumers} register within a minute",
            spread([many * PROCESSES / 60 * found[many]["register"] / 1e4]),
            "%",
        ),
        Figure(f"commands of {consumers} that wait", spread([many * PROCESSES / 60]), "a second"),
        Figure("memory of a consumer", spread([each]), "bytes"),
    ]
    return figures
