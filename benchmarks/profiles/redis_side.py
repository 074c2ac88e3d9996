"""Where each microsecond of a job goes inside Redis: the commands of its scripts, Lua, the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope, load
from benchmarks.lab.rounds import Spread, spread
from benchmarks.lab.server import SCRIPTS, Usage, usage
from rqueue.model.history_batch import pack
from rqueue.model.ids import new_id
from rqueue.model.terms import NORMAL_TERMS, Terms
from rqueue.protocol import commands
from rqueue.protocol.commands.settle import Window
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.connection import Connection

LUA = "Lua: the script less its commands"
REST = "the rest: reading, parsing, answering, waking up"

Step = Callable[[Bench, Connection, QueueKeys, int], Iterator[None]]


@dataclass(frozen=True)
class Profile:
    """µs of Redis for each job, by step; `cpu` is all of it. Redis times commands by the wall
    clock: on a loaded machine they take longer than its CPU, and the rest is what is left."""

    mode: str
    jobs: int
    steps: dict[str, Spread]
    cpu: Spread

    def to_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "mode": self.mode,
            "jobs": self.jobs,
            "steps": {name: found.to_json() for name, found in self.steps.items()},
            "cpu": self.cpu.to_json(),
        }


TIMED = Terms(ttl_ms=3_600_000).text
"""Of jobs with a time to live that does not end here."""


def _enqueue(terms: str = NORMAL_TERMS, at_once: int = 1) -> Step:
    def step(bench: Bench, connection: Connection, keys: QueueKeys, jobs: int) -> Iterator[None]:
        body = envelope("hit")
        load(bench.redis, keys, body, 1000, terms)  # hashes as large as those of a queue in use
        yield
        for _ in range(jobs // at_once):
            flat = [part for _ in range(at_once) for part in (new_id(), body)]
            connection.run(commands.enqueue_alike(keys, flat, terms))

    return step


def _enqueued(value: bytes) -> int:
    return int(value.partition(b";")[0].split(b",", 2)[1])


def _settle(window: int, terms: str = NORMAL_TERMS) -> Step:
    def step(bench: Bench, connection: Connection, keys: QueueKeys, jobs: int) -> Iterator[None]:
        load(bench.redis, keys, envelope("hit"), jobs + window, terms)
        name = "profile"
        term = connection.run(
            commands.register(keys, name, window=Window(window), lease_ms=600_000)
        ).term
        now, *_, found = connection.run(commands.pull(keys, name, term, Window(window)))
        yield
        for _ in range(jobs // window):
            ids, values = found[::2], found[1::2]
            batch = pack(
                {
                    "id": ids,
                    "task": "hit",
                    "queue": keys.queue,
                    "enqueued": list(map(_enqueued, values)),
                    "acquired": now,
                    "started": now,
                    "finished": now,
                    "worker": name,
                    "outcome": "ack",
                    "body_size": 9,
                    "level": 4,
                }
            )
            call = commands.settle(
                keys, name, term, Window(window), ack=ids, batch=batch, rows=len(ids)
            )
            now, *_, found = connection.run(call)

    return step


MODES: dict[str, tuple[Step, int]] = {
    "enqueue, one at a time": (_enqueue(), 1),
    "enqueue, 250 at a time": (_enqueue(at_once=250), 25),
    "settle and pull, one at a time": (_settle(1), 1),
    "settle and pull, 250 at a time": (_settle(250), 25),
    "ttl: enqueue, one at a time": (_enqueue(TIMED), 1),
    "ttl: enqueue, 250 at a time": (_enqueue(TIMED, 250), 25),
    "ttl: settle and pull, one at a time": (_settle(1, TIMED), 1),
    "ttl: settle and pull, 250 at a time": (_settle(250, TIMED), 25),
}
"""How it is done, and how many times more jobs that takes."""


def profile(bench: Bench, mode: str) -> Profile:
    """Do it in a loop from one connection, and ask Redis what it spent."""
    step, more = MODES[mode]
    jobs = bench.size.of(250, 5_000, 20_000) * more
    seen: list[dict[str, float]] = []
    cpu: list[float] = []
    for _ in range(bench.rounds):
        bench.empty()
        connection = Connection(bench.redis)
        run = step(bench, connection, QueueKeys("bench"), jobs)
        next(run)
        before = usage(bench.redis)
        for _ in run:
            raise AssertionError("a step yields once")
        spent = usage(bench.redis).since(before)
        connection.close()
        seen.append(_shares(spent, jobs))
        cpu.append(spent.cpu / jobs * 1e6)
    names = sorted(seen[0], key=lambda name: (name in (LUA, REST), -seen[0][name]))
    steps = {name: spread([one.get(name, 0.0) for one in seen]) for name in names}
    return Profile(mode, jobs, steps, spread(cpu))


def _shares(spent: Usage, jobs: int) -> dict[str, float]:
    inside = {
        name.upper(): us / jobs
        for name, us in spent.usec.items()
        if name not in SCRIPTS and name not in ("info", "auth", "hello")
    }
    script = spent.script_us / jobs
    rest = spent.cpu / jobs * 1e6 - script
    return {**inside, LUA: script - sum(inside.values()), REST: rest}


def show(console: Console, found: Profile) -> None:
    """Print one profile."""
    table = Table(title=f"{found.mode}: µs of Redis a job", title_justify="left")
    table.add_column("step", overflow="fold")
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("min – max", justify="right", no_wrap=True)
    for name, one in found.steps.items():
        if name == LUA:
            table.add_section()
        table.add_row(name, f"{one.middle:.2f}", f"{one.low:.2f} – {one.high:.2f}")
    table.add_section()
    one = found.cpu
    table.add_row("all of it", f"{one.middle:.2f}", f"{one.low:.2f} – {one.high:.2f}")
    console.print(table)
