"""Queues with something in every key, to be damaged, and put back in one step."""

from __future__ import annotations

from typing import Any

import redis

from rqueue.model.history_batch import pack
from rqueue.model.schedule import Timing
from rqueue.model.sort_keys import sort_key_text
from rqueue.protocol import commands
from rqueue.protocol.commands import Note, Put, Ran, Retried, Window
from rqueue.protocol.commands.clock import read_clock
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import PLAIN, Kind
from rqueue.protocol.result_wait import await_result
from rqueue.transport.redis_client import execute
from tests.support.schedules import schedule
from tests.support.snapshot import Snapshot, id_in, take_snapshot

KEYS = QueueKeys("q")
BODY = b'["t",["x"]]'
ERROR = b'{"kind":"exception","type":"ValueError"}'
BATCH = pack({"id": ["k0"]})
"""Rows of history, as a worker packs them."""

_RESTORE = """
redis.call('FLUSHDB')
for i = 1, #ARGV, 2 do redis.call('RESTORE', ARGV[i], 0, ARGV[i + 1]) end
"""


class World:
    """What Redis holds at one moment, `kept_at`. `terms`: those of its consumers."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.terms: dict[str, str] = {}
        self.kind = PLAIN
        self.values: dict[bytes, bytes] = {}
        """The jobs, by their ids, as they are stored."""
        self.kept_at = 0
        self._dumps: list[Any] = []
        self._kept: Snapshot | None = None

    def run(self, call: commands.ScriptCall[Any]) -> Any:
        return execute(self.client, call)

    def join(self, name: str, jobs: int, bytes: int = 0, **options: Any) -> None:
        window = Window(jobs, bytes)
        call = commands.register(KEYS, name, window=window, lease_ms=60_000, slots=1, **options)
        self.terms[name] = self.run(call).term

    def put(self, *ids: str, **terms: Any) -> None:
        self.run(commands.enqueue(KEYS, [Put(id, BODY, **terms) for id in ids]))

    def pull(self, name: str, jobs: int, bytes: int = 0) -> None:
        self.run(commands.pull(KEYS, name, self.terms[name], Window(jobs, bytes)))

    def settle(self, name: str, **outcomes: Any) -> None:
        self.run(commands.settle(KEYS, name, self.terms[name], None, **outcomes))

    def held(self, name: str) -> list[str]:
        found: Any = self.client.lrange(KEYS.held(name), 0, -1)
        return [id.decode() for id in found]

    @property
    def now(self) -> int:
        """The queue's time in ms."""
        return execute(self.client, read_clock(KEYS)).now

    def move(self, ms: int) -> None:
        self.client.hincrby(KEYS.meta, "clock", ms)

    def keep(self) -> World:
        """This is it."""
        self.kept_at, self._kept = self.now, None
        for key in self.client.scan_iter(match=KEYS.base + "*"):
            self._dumps += (key, self.client.dump(key))
        self.values = self.client.hgetall(KEYS.jobs)  # type: ignore[assignment]
        stamp: Any = self.client.hget(KEYS.meta, "v")
        self.kind = Kind.parse(stamp.decode()) if stamp else PLAIN
        return self

    def restore(self) -> Snapshot:
        """As it was kept, which is returned; lifetimes are left out."""
        self.client.execute_command("EVAL", _RESTORE, 0, *self._dumps)
        if self._kept is None:
            self._kept = take_snapshot(self.client, KEYS)
        return self._kept


def _past(world: World) -> None:
    """What a queue has behind it: records of two generations, dead letters, errors, a parked job,
    one that is to come at the tail, a writer's log."""
    world.join("c1", 20)
    world.put("k0", "x0", "x1", "e0", "p0", "t0")
    world.pull("c1", 20)
    world.settle("c1", ack=["k0"], reject=[("x0", ERROR), ("x1", ERROR)], batch=BATCH, rows=1)
    world.settle("c1", retry=[Retried("e0", 0, "old", True, ERROR)])
    world.settle("c1", retry=[Retried("p0", 5_000_000, "park", False, b'{"reason":"unknown"}')])
    world.settle("c1", retry=[Retried("t0", 5_000_000, "tail", True, ERROR)])
    world.move(601_000)
    world.join("c2", 4, 3 * 40)
    world.put("k1", priority=9)
    world.pull("c2", 4, 3 * 40)
    world.settle("c2", done=[("k1", None, b'"result"')], batch=BATCH, rows=1)
    world.run(commands.unregister(KEYS, "c1", world.terms["c1"]))


def busy(client: redis.Redis, **options: int) -> World:
    """Jobs wait everywhere, consumers hold some, and one waits for room."""
    client.flushdb()
    world = World(client)
    if options:
        world.run(commands.configure(KEYS, options))
    _past(world)
    note = Note("run", 1, 0, 0, 600_000, b"12345678")
    world.run(commands.enqueue_alike(KEYS, ["w0", BODY], note=note))
    world.put(*[f"a{number}" for number in range(4)], priority=9)
    world.join("c3", 3, limits={"t": (5, 2), "*": (0, 9)})
    world.pull("c3", 3)
    world.run(commands.note_running(KEYS, "c3", [Ran("a0", 1, 2), Ran("a1", 1, 2)]))
    world.put("big", priority=9)
    world.run(commands.enqueue(KEYS, [Put("huge", b'["t",["' + b"x" * 200 + b'"]]', priority=9)]))
    world.pull("c2", 4, 3 * 40)
    world.put(*[f"r{number}" for number in range(8)])
    world.put("m0", "m1")
    for id in ("m0", "m1"):
        world.run(commands.cancel(KEYS, id))
    world.put("s0", "s1", delay_ms=3_000_000)
    world.put("d0", "d1", delay_ms=4_000_000, priority=6)
    world.run(commands.promote(KEYS, ["d0", "d1"]))
    world.join("b1", 5, mode="browse")
    world.run(await_result(KEYS, "r3", wait=True))
    world.run(await_result(KEYS, "s0", wait=True))
    return world.keep()


def idle(client: redis.Redis) -> World:
    """Nothing is ready: consumers wait, of two priorities, and one of them watches the schedule."""
    client.flushdb()
    world = World(client)
    _past(world)
    world.pull("c2", 4)
    world.settle("c2", ack=["e0"])
    world.put("s0", "s1", delay_ms=3_000_000)
    world.join("c3", 3)
    world.join("c4", 1, priority=5)
    world.put("a0", priority=9)
    for name in ("c4", "c3", "c2"):
        world.pull(name, 3)
    return world.keep()


def late(client: redis.Redis) -> World:
    """As `busy`; then nobody came for hours: leases have ended, jobs are due."""
    world = busy(client)
    world.move(6_000_000)
    world._dumps = []
    return world.keep()


def lapsed(client: redis.Redis) -> World:
    """As `late`; then a renewal returned the jobs that were held, and charged those that ran."""
    world = late(client)
    world.run(commands.renew(KEYS, 1000, []))
    world._dumps = []
    return world.keep()


def timed(client: redis.Redis) -> World:
    """As `busy`, with jobs that have a time to live: held, scheduled, waiting, and waiting too
    long; and with some that keep their places until a time."""
    world = busy(client)
    world.run(commands.configure(KEYS, {"ttl_max_ms": 9_000_000}))
    world.put("v0", "v1", "v2", ttl_ms=1000)
    world.put("v3", priority=6, ttl_ms=1000)
    world.put("l0", "l1", ttl_ms=5_000_000)
    world.put("s2", delay_ms=3_000_000, ttl_ms=4_000_000)
    world.put("h0", "h1", delay_ms=1000, hold=True)
    world.put("h2", delay_ms=3_000_000, hold=True)
    world.move(2000)
    world.run(commands.promote(KEYS, []))
    world._dumps = []
    return world.keep()


def expired(client: redis.Redis) -> World:
    """As `timed`, where expired jobs become dead letters, and some have."""
    world = timed(client)
    world.run(commands.configure(KEYS, {"ttl_dead": 1}))
    world.run(commands.renew(KEYS, 1000, ["c2", "c3", "b1"]))
    world.put("v4", "v5", ttl_ms=1000)
    world.move(2000)
    world._dumps = []
    return world.keep()


def last_values(client: redis.Redis) -> World:
    """As `busy`, with jobs that have keys: held, scheduled, to be tried again, and waiting."""
    world = busy(client)
    world.run(commands.resume(KEYS))
    world.put("q0", "q1", key="k", priority=9)
    world.join("c4", 3)
    world.pull("c4", 1)
    world.put("q2", key="l")
    world.put("q3", key="l", delay_ms=3_000_000)
    for number in range(4, 7):
        world.put(f"q{number}", key=f"k{number}", priority=9)
    world._dumps = []
    return world.keep()


def sorted_(client: redis.Redis) -> World:
    """As `busy`, with jobs that have sort keys: held, scheduled, to be tried again, and waiting."""
    world = busy(client)
    world.run(commands.resume(KEYS))
    keys = [sort_key_text(key) for key in ("b", 7, "a", -1)]
    world.put("q0", "q1", sort=keys[0], priority=9)
    world.join("c4", 3)
    world.pull("c4", 1)
    world.put("q2", sort=keys[0])
    world.put("q3", sort=keys[1], delay_ms=3_000_000)
    for number, key in enumerate(keys, 4):
        world.put(f"q{number}", sort=key, priority=9)
    world._dumps = []
    return world.keep()


def sticky(client: redis.Redis) -> World:
    """As `busy`, with sticky groups: of one bucket a job is held and another waits behind it, of
    the other one is ready for its owner alone, which has no room."""
    world = busy(client, sticky=2)
    world.run(commands.resume(KEYS))
    world.put("q0", "q1", group="g", priority=9)
    world.put("q2", "q3", group="b", priority=9)
    world.join("c4", 9)
    world.pull("c4", 9)
    term = world.terms["c4"]
    world.run(commands.interest(KEYS, "c4", term, Window(0)))
    world.run(commands.settle(KEYS, "c4", term, None, release=["q2"]))
    world.put("q4", group="g", delay_ms=3_000_000)
    world._dumps = []
    return world.keep()


def uniques(client: redis.Redis) -> World:
    """As `busy`, with unique jobs: held, scheduled, waiting, and one whose period goes on."""
    world = busy(client)
    world.run(commands.resume(KEYS))
    world.put("q0", unique="ex:k0", priority=9)
    world.put("q1", unique="sx:k1", priority=9)
    world.put("q5", unique="900000x:k5", priority=9)
    world.join("c4", 3)
    world.pull("c4", 3)
    world.settle("c4", ack=["q5"])
    world.put("q2", unique="sx:k2")
    world.put("q3", unique="500x:k3", delay_ms=3_000_000)
    world._dumps = []
    return world.keep()


def limits(client: redis.Redis) -> World:
    """As `busy`, with jobs that name limits: held, ready, scheduled, to be tried again, and some
    that wait for permits; a limit was set, and what it allows more is still to be offered."""
    world = busy(client)
    world.run(commands.resume(KEYS))
    world.put("q0", limits=("crm:1",), priority=9)
    world.put("q1", limits=("crm:1",), priority=9)
    world.put("q2", limits=("all:3", "crm=a:2"), priority=9)
    world.put("h0", "h2", limits=("crm:1", "all:3"))
    world.join("c4", 2)
    world.pull("c4", 2)
    world.put("q3", limits=("all:3",))
    for name in ("q4", "q6", "q7"):
        world.put(name, limits=("@r=a:1/1000+2*1",), priority=9)
    world.pull("c4", 5)
    world.put("q8", limits=("@r=a:1/1000+2*1",), priority=9)
    world.put("q5", limits=("all:3",), delay_ms=3_000_000)
    world.client.sadd(KEYS.reopened, "all")
    world._dumps = []
    return world.keep()


def shares(client: redis.Redis) -> World:
    """As `busy`, with jobs of shares: held, ready, scheduled, to be tried again, behind others; one
    share has a weight, and some have no job that is ready."""
    world = busy(client)
    world.run(commands.resume(KEYS))
    world.run(commands.set_share(KEYS, "b", 3))
    world.put("q0", "q1", "q2", share="a", priority=9)
    world.put("h0", share="b", priority=9)
    world.put("h2", share="c", priority=9)
    world.join("c4", 3)
    world.pull("c4", 3)
    world.put("q3", "q4", share="a")
    world.put("q6", share="b")
    world.put("q5", share="a", delay_ms=3_000_000)
    world._dumps = []
    return world.keep()


def turns(client: redis.Redis) -> World:
    """As `timed`, with groups whose first jobs, or later ones, have waited too long."""
    world = timed(client)
    world.put("v6", ttl_ms=1000, group="g")
    world.put("l2", group="g")
    world.put("v7", ttl_ms=1000, group="g")
    world.put("l3", group="h")
    world.put("v8", ttl_ms=1000, group="h")
    world.move(2000)
    world._dumps = []
    return world.keep()


def ring(client: redis.Redis) -> World:
    """As `busy`, in a queue that keeps no more than it has."""
    world = busy(client)
    ready = sum(world.run(commands.counts(KEYS)).levels.values())
    world.run(commands.configure(KEYS, {"ring_jobs": ready}))
    world._dumps = []
    return world.keep()


def bounded(client: redis.Redis) -> World:
    """As `busy`, and full: a producer has a grant, others wait, and one of them died."""
    world = busy(client)
    world.run(commands.configure(KEYS, {"max_jobs": 20, "overflow": 1, "resume": 100}))
    for producer, jobs, wait_ms in (("p0", 1, 9_000_000), ("p1", 20, 500), ("p2", 2, 9_000_000)):
        world.run(commands.await_room(KEYS, producer, jobs, wait_ms))
    world.move(1000)
    world._dumps = []
    return world.keep()


def periodic(client: redis.Redis) -> World:
    """As `busy`, with schedules: one is due, one is paused, one waits for the end of its job."""
    world = busy(client)
    for name, timing, state in (
        ("s0", Timing.of(every=60, overlap="queue"), "active"),
        ("s1", Timing.of(cron="* * * * *", missed="all"), "active"),
        ("s2", Timing.of(every=5), "paused"),
    ):
        call = commands.set_schedule(KEYS, name, "", schedule(world.now, timing, state=state))
        world.run(call)
    for _ in range(3):
        world.move(61_000)
        world.run(commands.renew(KEYS, 9_000_000, ["c2", "c3", "b1"]))
    world.move(90_000)
    world._dumps = []
    return world.keep()


WORLDS = {
    **{"busy": busy, "idle": idle, "late": late, "lapsed": lapsed},
    **{"timed": timed, "expired": expired, "turns": turns, "last_values": last_values},
    "sorted": sorted_,
    "ring": ring,
    "uniques": uniques,
    "sticky": sticky,
    "limits": limits,
    "shares": shares,
    "bounded": bounded,
    "periodic": periodic,
}


def places(keys: dict[str, Any]) -> dict[str, list[str]]:
    """Where jobs are: key -> ids. What is no place for jobs any more holds none."""
    found: dict[str, list[str]] = {}
    for key, content in keys.items():
        kind = key.partition(":")[0]
        if kind in ("ready", "due", "held") and isinstance(content, list):
            found[key] = [_id(element) for element in content if isinstance(element, bytes)]
        elif kind in (
            "scheduled",
            "heads",
            "group",
            "class",
            "refused",
            "own",
            "dead",
        ) and isinstance(content, list):
            pairs = [pair for pair in content if isinstance(pair, tuple)]
            id_at = bytes if kind == "dead" else id_in
            found[key] = [_id(id_at(member)) for member, _ in pairs]
    return found


def named(keys: dict[str, Any], key: str) -> set[str]:
    """The fields of a hash, as ids."""
    content = keys.get(key)
    return {_id(field) for field in content} if isinstance(content, dict) else set()


def _id(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
