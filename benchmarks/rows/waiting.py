"""What one job costs inside Redis while a million others wait, in queues of several kinds, and
while none do; and while the producers of a full queue wait too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import BATCH, BODY
from benchmarks.lab.rounds import spread
from benchmarks.lab.script_queue import script_queue
from benchmarks.rows.row import Figure, Target, row
from benchmarks.rows.selectors import CLASSES, labelled
from rqueue.model.history_batch import pack
from rqueue.model.ids import new_id
from rqueue.model.selector import selector
from rqueue.model.sort_keys import sort_key_text
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Window
from rqueue.protocol.commands.room import await_room
from rqueue.protocol.policies import PLAIN, Kind

HOUR_MS = 3_600_000
GROUPS = 10_000
MOST_BYTES = 10**15
STEPS = ("enqueue", "pull", "settle")


def _plain(number: int) -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True)
class Way:
    """A kind of queue: its policy, its options, and what the n-th of its jobs says. select: what
    the consumer selects. full: the limit is what waits when the measuring begins, and so many
    producers wait for room."""

    policy: str = ""
    terms: Callable[[int], Mapping[str, Any]] = _plain
    options: Mapping[str, int] = field(default_factory=dict)
    select: str = ""
    full: int = 0

    @property
    def kind(self) -> Kind:
        """What is in `meta`."""
        return Kind.of([self.policy]) if self.policy else PLAIN


def _ways(jobs: int, producers: int) -> dict[str, Way]:
    half = f"shard < {CLASSES // 2}"
    return {
        "plain": Way(),
        "ttl": Way("ttl", lambda n: {"ttl_ms": HOUR_MS + n}),
        f"{GROUPS:,} groups": Way("groups", lambda n: {"group": str(n % GROUPS)}),
        "a group for each": Way("groups", lambda n: {"group": str(n)}),
        f"selectors, half of {CLASSES} classes": Way("selectors", select=half),
        "sorted": Way("sorted", lambda n: {"sort": sort_key_text((n * 7919) % 1_000_003)}),
        "last value, a key for each": Way("last_value", lambda n: {"key": str(n)}),
        "unique": Way("unique", lambda n: {"unique": UniqueKey(str(n)).text}),
        "ring, not full": Way("ring", options={"ring_jobs": 2 * jobs + 10_000}),
        "ring in bytes, not full": Way("ring_bytes", options={"ring_bytes": MOST_BYTES}),
        "one live consumer": Way("exclusive", options={"live_consumers": 1}),
        "bounded": Way("bounded", options={"max_jobs": 2 * jobs + 10_000}),
        "bounded in bytes": Way("max_bytes", options={"max_bytes": MOST_BYTES}),
        f"bounded and full, {producers:,} producers wait": Way("bounded", full=producers),
    }


def _microseconds(bench: Bench, way: Way, waiting: int, loops: int) -> dict[str, float]:
    """Redis's time in scripts for each step of one job, beside so many that wait."""
    number = 0

    def put() -> Put:
        nonlocal number
        number += 1
        return Put(new_id(), labelled(number) if way.select else BODY, **way.terms(number))

    with script_queue(bench, way.kind, **way.options) as queue:
        keys, held = queue.keys, list[bytes]()
        for first in range(0, waiting, BATCH):
            queue.run(commands.enqueue(keys, [put() for _ in range(min(BATCH, waiting - first))]))
        with queue.timed() as enqueue:
            for _ in range(loops):
                queue.run(commands.enqueue(keys, [put()]))
        if way.full:
            options = {"max_jobs": waiting + loops, "overflow": 1, "resume": 100}
            queue.run(commands.configure(keys, options))
            for producer in range(way.full):
                queue.run(await_room(keys, f"p{producer}", 1, HOUR_MS))
        term = queue.register("c", Window(1), selector(way.select) if way.select else None)
        with queue.timed() as pull:
            while len(held) < loops:
                jobs = queue.run(commands.pull(keys, "c", term, Window(len(held) + 1))).jobs
                if not jobs:
                    break
                held.append(jobs[0])
        with queue.timed() as settle:
            for id_ in held:
                batch = pack({"id": [id_], "task": "hit", "outcome": "ack", "worker": "c"})
                call = commands.settle(keys, "c", term, None, ack=[id_], batch=batch, rows=1)
                queue.run(call)
    return {
        "enqueue": enqueue.us / loops,
        "pull": pull.us / len(held),
        "settle": settle.us / len(held),
    }


@row("waiting", "Redis time of each step of one job, by kind, while others wait and while none do")
def waiting(bench: Bench) -> list[Figure]:
    """Full and empty in turn, so that a noisy machine is noisy for both."""
    jobs = bench.size.of(50, 50_000, 1_000_000)
    loops, producers = bench.size.of(5, 300, 300), bench.size.of(10, 1000, 1000)
    times: dict[tuple[str, str], list[float]] = {}
    shares: dict[str, list[float]] = {}
    for _ in range(bench.rounds):
        for what, way in _ways(jobs, producers).items():
            none = _microseconds(bench, way, 0, loops)
            many = _microseconds(bench, way, jobs, loops)
            for step in STEPS:
                times.setdefault((what, step), []).append(many[step])
            shares.setdefault(what, []).append(sum(many.values()) / sum(none.values()))
    return [
        *(
            Figure(f"{what}: all steps, of those in an empty queue", spread(share), "×", _MOST)
            for what, share in shares.items()
        ),
        *(Figure(f"{what}: {step}", spread(us), "µs") for (what, step), us in times.items()),
    ]


_MOST = Target(3, 1.5, more=False)
