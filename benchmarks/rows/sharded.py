"""A queue that is spread over shards: two servers against one, and by what its steps cost, as
measured here, how far it grows with more; and whether a shard that opens under load keeps order."""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from typing import Literal, NamedTuple

from benchmarks.lab.bench import Bench
from benchmarks.lab.loading import envelope
from benchmarks.lab.rounds import ratios, spread
from benchmarks.lab.server import private_server, usage
from benchmarks.rows.row import Figure, Target, row
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.client._sync.shards import WIDEST
from rqueue.model.envelope import unpack
from rqueue.model.history_batch import pack
from rqueue.model.ids import new_id
from rqueue.model.shard_table import Shard, ShardTable
from rqueue.protocol import commands
from rqueue.protocol.commands.enqueue import BATCH, Put
from rqueue.protocol.commands.settle import Window
from rqueue.protocol.commands.shards import inform_shard, of_version, set_shards
from rqueue.protocol.job_packer import Call
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.options import Options
from rqueue.text.numbers import many
from rqueue.transport.connection import Connection
from rqueue.transport.lease_renewer import RenewalPace

KEYS = 10_000
"""Of customers, or whatever keys stand for."""

WINDOW = 100
SHARDS = (2, 8, 64)
LEASE_MS = 30_000
SIDES = 2


Word = Literal["", "key", "group"]
"""What says where a job goes."""


def calls(count: int, word: Word = "") -> list[Call]:
    """Jobs of many keys or groups, or of none."""
    options = [
        Options(**{word: f"customer-{n}"}) if word else Options()  # type: ignore[arg-type]
        for n in range(KEYS)
    ]
    return [Call("hit", [], None, options[n % KEYS]) for n in range(count)]


# -- two servers, and one --------------------------------------------------------------------------


class Way(NamedTuple):
    """Into how many shards (0: a queue that is not spread), on how many servers, by which word.

    Without shards a key would be another thing: of its jobs only the latest one would wait. What
    keeps the order of customers there, and over shards too, are groups.
    """

    shards: int
    servers: int
    word: Word

    def __str__(self) -> str:
        into = many(self.shards, "shard") if self.shards else "no shards"
        return f"{into}, {many(self.servers, 'server')}, {self.word or 'no key'}"


WORDS: tuple[Word, ...] = ("key", "", "group")
WAYS = (
    Way(0, 1, ""),
    *(Way(SIDES, servers, word) for word in WORDS for servers in (1, 2)),
    Way(0, 1, "group"),
)


def together(prepare: Callable[[int], Callable[[], object]]) -> float:
    """Seconds that two processes take, each with its own half, once both are prepared."""
    context = get_context("fork")
    begin, workers = context.Barrier(SIDES + 1), []
    for side in range(SIDES):

        def run(side: int = side) -> None:
            work = prepare(side)
            begin.wait()
            work()
            os._exit(0)

        workers.append(context.Process(target=run))
    for one in workers:
        one.start()
    begin.wait()
    began = time.perf_counter()
    for one in workers:
        one.join()
    if any(one.exitcode for one in workers):
        raise RuntimeError("a process of this row has failed")
    return time.perf_counter() - began


def rates(name: str, way: Way, urls: list[str], count: int) -> tuple[float, float]:
    """Jobs a second by two producers, which have enqueued before, then by two consumers. urls: of
    as many servers as the way has. Raises RuntimeError where other jobs were done than were
    enqueued."""
    if way.shards:
        table_of(name, [urls[shard % len(urls)] for shard in range(way.shards)])

    def produce(_side: int) -> Callable[[], object]:
        queue, jobs = Queue(name, urls[0]), calls(count // SIDES, way.word)
        queue.enqueue_many(jobs[:BATCH])
        return partial(queue.enqueue_many, jobs[BATCH:])

    places = [(f"{name}~{side}", urls[side % len(urls)]) for side in range(SIDES)]
    if not way.shards:
        places = [(name, urls[0])] * SIDES

    def consume(side: int) -> Callable[[], object]:
        return partial(drain, Queue(*places[side]), f"side-{side}")

    enqueued = together(produce)
    drained = together(consume)
    done = 0
    for place in dict.fromkeys(places):
        with Queue(*place) as queue:
            done += int(queue.counts().meta.get("acked", 0))
    if done != count:
        raise RuntimeError(f"{done} of {count} jobs were done")
    return (count - SIDES * BATCH) / enqueued, count / drained


def table_of(name: str, urls: list[str]) -> None:
    """A queue with a shard on each of these servers; the first one has the table."""
    with ShardedQueue(name, urls[0], shards=1) as queue:
        queue.table()
        for url in urls[1:]:
            queue.open(place=url, order=False)


def drain(queue: Queue, consumer: str) -> None:
    """All jobs, a hundred in one step."""
    keys, window = queue.keys, Window(WINDOW)
    connection = Connection(queue.redis, timeout=60)
    call = commands.register(keys, consumer, window=window, lease_ms=600_000)
    term = connection.run(call).term
    jobs = connection.run(commands.pull(keys, consumer, term, window)).jobs
    while jobs:
        jobs = connection.run(settled(keys, consumer, term, jobs[::2])).jobs
    connection.close()


def settled(
    keys: QueueKeys, consumer: str, term: str, ids: list[bytes]
) -> commands.ScriptCall[commands.Pulled]:
    """All these are done, and more are asked for."""
    batch = pack({"id": ids, "task": "hit", "outcome": "ack", "worker": consumer})
    return commands.settle(
        keys, consumer, term, Window(WINDOW), ack=ids, batch=batch, rows=len(ids)
    )


# -- steps, and what follows from them -------------------------------------------------------------


def step_of(shards: int) -> int:
    """Jobs that `enqueue_many` has for one shard in a step, of so many shards."""
    return BATCH * min(WIDEST, shards) // shards


class Costs:
    """Microseconds of Redis for a job that is enqueued with so many others in one step (`enqueue`),
    for one that is pulled and settled, for a shard that is informed by a pool, and of the client
    for a key (by number of shards), alone (`route`) and among those of a batch (`route_many`): of
    CPU, network and all."""

    def __init__(self, bench: Bench) -> None:
        self._redis = bench.redis
        self._connection = Connection(bench.redis, timeout=60)
        self._keys = QueueKeys("bench~0")
        self._of = QueueKeys("bench")
        fields = {"version": "1", "moving": "", "0": Shard(0).text}
        self._connection.run(set_shards(self._of, 0, fields))
        self._connection.run(inform_shard(self._keys, "bench", 1, fields=fields))
        times = bench.size.of(40, 100, 200)
        sizes = sorted({step_of(shards) for shards in (1, *SHARDS)})
        self.enqueue = {size: self._enqueue(size, times) for size in sizes}
        self.settle = self._settle()
        self.inform = self._timed(self._inform, times)
        self.route = {shards: self._route(shards, times * 50) for shards in (1, *SHARDS)}
        self.route_many = {shards: self._route_many(shards, times) for shards in (1, *SHARDS)}
        self._connection.close()

    def _timed(self, step: Callable[[], object], times: int) -> float:
        step()
        before = usage(self._redis)
        for _ in range(times):
            step()
        return usage(self._redis).since(before).cpu / times * 1e6

    def _inform(self) -> None:
        self._connection.run(inform_shard(self._keys, "bench", 1))

    def _enqueue(self, size: int, times: int) -> float:
        def step() -> None:
            puts = [Put(new_id(), envelope("hit")) for _ in range(size)]
            self._connection.run(of_version(commands.enqueue(self._keys, puts), 1))

        return self._timed(step, max(times, WINDOW * 4 // size)) / size

    def _settle(self) -> float:
        run, done = self._connection.run, 0
        register = commands.register(self._keys, "c", window=Window(WINDOW), lease_ms=600_000)
        term = run(register).term
        jobs = run(commands.pull(self._keys, "c", term, Window(WINDOW))).jobs
        before = usage(self._redis)
        while jobs:
            ids = jobs[::2]
            done += len(ids)
            jobs = run(settled(self._keys, "c", term, ids)).jobs
        return usage(self._redis).since(before).cpu / max(1, done) * 1e6

    @staticmethod
    def _route(shards: int, times: int) -> float:
        table = ShardTable("bench", 1, "", map(Shard, range(shards)))
        table.shard_of("first")
        before = time.process_time()
        for number in range(times):
            table.shard_of(f"customer-{number}")
        return (time.process_time() - before) / times * 1e6

    @staticmethod
    def _route_many(shards: int, times: int) -> float:
        table = ShardTable("bench", 1, "", map(Shard, range(shards)))
        table.numbers_of(["first"])
        batches = [[f"customer-{turn}-{n}" for n in range(BATCH)] for turn in range(times)]
        before = time.process_time()
        for keys in batches:
            table.numbers_of(keys)
        return (time.process_time() - before) / times / BATCH * 1e6

    def of_job(self, shards: int) -> float:
        """Of Redis for a job's whole way, where batches are cut into so many parts."""
        return self.enqueue[step_of(shards)] + self.settle

    def grows(self, shards: int, busiest: float) -> float:
        """How much more so many servers do than one. Each serves one shard with one pool; every
        pool tells all shards of the table with each renewal of its leases, and the longest shard
        has so much more than the others."""
        informed = shards * self.inform / RenewalPace(LEASE_MS).interval / 1e6
        return shards * (1 - informed) * self.of_job(1) / self.of_job(shards) / busiest


def by_key(shards: int) -> float:
    """How much more the busiest shard has than its part, where each key has as many jobs."""
    table = ShardTable("bench", 1, "", map(Shard, range(shards)))
    found = Counter(table.shard_of(f"customer-{number}").number for number in range(KEYS))
    return max(found.values()) * shards / KEYS


def by_length(shards: int, chance: random.Random) -> float:
    """The same of jobs without keys, which go into the shorter of two."""
    lengths = [0] * shards
    for _ in range(KEYS):
        one, other = chance.sample(range(shards), 2)
        lengths[one if lengths[one] <= lengths[other] else other] += 1
    return max(lengths) * shards / KEYS


# -- a shard that opens ----------------------------------------------------------------------------


def opening(bench: Bench, waiting: int) -> tuple[float, int]:
    """ms from when a shard opens until it delivers, while jobs come and go; and jobs that were
    delivered before an earlier one of their key."""
    keys, sent, seen, wrong = 50, Counter[int](), Counter[int](), 0
    with ShardedQueue("opens", bench.url, shards=2) as queue:

        def enqueue(count: int) -> None:
            some = []
            for _ in range(count):
                key = random.randrange(keys)
                some.append(Call("hit", [key, sent[key]], None, Options(key=f"k{key}")))
                sent[key] += 1
            queue.enqueue_many(some)

        enqueue(waiting)
        with ExitStack() as open_:
            consumers = [open_.enter_context(its.consumer(jobs=WINDOW)) for its in queue.queues()]
            began, ended, opened = 0.0, 0.0, False
            while not ended or sum(seen.values()) < sum(sent.values()):
                if not opened:
                    queue.open()
                    began, opened = time.perf_counter(), True
                    consumers.append(open_.enter_context(queue.queues()[2].consumer(jobs=WINDOW)))
                if not ended:
                    enqueue(20)
                for consumer in consumers:
                    jobs = consumer.pull()
                    for job in jobs:
                        key, number = unpack(job.body)[1]
                        wrong += number != seen[key]
                        seen[key] += 1
                    consumer.settle(ack=jobs)
                if not ended and not queue.advance().moving:
                    ended = time.perf_counter()
    return (ended - began) * 1000, wrong


@row("sharded", "a queue over shards: two servers against one, and by its steps to 64")
def sharded(bench: Bench) -> list[Figure]:
    """One server and two by turns; what steps cost; and a shard that opens."""
    count = bench.size.of(1000, 20_000, 40_000)
    enqueued: defaultdict[Way, list[float]] = defaultdict(list)
    drained: defaultdict[Way, list[float]] = defaultdict(list)
    with private_server(bench.server, aof=bench.aof) as other:
        for turn in range(bench.rounds):
            for way in WAYS:
                bench.say(f"round {turn + 1} of {bench.rounds}, {way}")
                bench.empty()
                urls = [bench.url, other.tcp_url][: way.servers]
                into, out = rates(f"spread-{new_id()}", way, urls, count)
                enqueued[way].append(into)
                drained[way].append(out)
    bench.empty()
    bench.say("what steps cost")
    costs = Costs(bench)
    opened = []
    for turn in range(bench.rounds):
        bench.say(f"round {turn + 1} of {bench.rounds}, a shard that opens")
        bench.empty()
        opened.append(opening(bench, bench.size.of(200, 2000, 5000)))
    bench.empty()
    two, plain, at_least = Way(SIDES, 2, "key"), Way(0, 1, ""), Target(1.0)
    figures, unlike = [], []
    for word, said in zip(WORDS, ("by key", "without keys", "into groups"), strict=True):
        found, name = enqueued[Way(SIDES, 2, word)], f"enqueue {said}"
        here = ratios(found, enqueued[Way(SIDES, 1, word)])
        figures.append(Figure(f"{name}, two shards: 2 servers against 1", here, target=at_least))
        here = ratios(found, enqueued[Way(0, 1, word if word == "group" else "")])
        unlike.append(Figure(f"{name}: two shards at 2 servers against no shards", here))
    figures += [
        *unlike,
        Figure(
            "drain, two processes, two shards: 2 servers against 1",
            ratios(drained[two], drained[two._replace(servers=1)]),
            target=at_least,
        ),
        Figure(
            "drain, two processes: two shards at 2 servers against no shards",
            ratios(drained[two], drained[plain]),
            target=at_least,
        ),
        Figure("pull and settle, a job, in Redis", spread([costs.settle]), "µs"),
        Figure("inform a shard, in Redis", spread([costs.inform]), "µs"),
    ]
    for size, us in costs.enqueue.items():
        figures.append(Figure(f"enqueue, a job, in Redis, {size} at a time", spread([us]), "µs"))
    for shards in (1, *SHARDS):
        said = f"find the shard of a key among {shards}, in the client"
        figures.append(Figure(said, spread([costs.route[shards]]), "µs"))
        figures.append(Figure(f"{said}, {BATCH} at once", spread([costs.route_many[shards]]), "µs"))
    chance = random.Random(1)
    for shards in SHARDS:
        keyed, others = by_key(shards), by_length(shards, chance)
        figures += [
            Figure(
                f"{shards} servers against 1, {KEYS:,} keys (by these costs; the busiest shard has"
                f" {keyed:.2f} of its part)",
                spread([costs.grows(shards, keyed)]),
            ),
            Figure(
                f"{shards} servers against 1, no keys (the same; {others:.2f})",
                spread([costs.grows(shards, others)]),
            ),
        ]
    return [
        *figures,
        Figure(
            "a shard opens under load, until it delivers", spread([ms for ms, _ in opened]), "ms"
        ),
        Figure(
            "jobs before an earlier one of their key meanwhile",
            spread([float(wrong) for _, wrong in opened]),
            "jobs",
            Target(0, more=False, every=True),
        ),
    ]
