"""The end of a soak: no more faults and no more jobs, and all that is left has to come to its end.

What the queues say then goes into the records too, so that the verdict needs no Redis.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import redis

from rqueue.errors import Undecodable
from rqueue.inspector import Inspector
from rqueue.model.history_batch import read_entry
from rqueue.tasks.options import Options
from tests.soak.field import Field
from tests.soak.tasks import Wanted

PRODUCERS_S = 40.0
POOLS_S = 20.0
PAGE = 500
EXPECTED_KEYS = ("meta", "history", "rates")
"""What stays of a queue that is at rest (of rates the last buckets that were used); all other keys
must have a lifetime."""

TRACEBACK = "Traceback (most recent call last"
WANTED = f"{Wanted.__module__}.{Wanted.__name__}"

LAST = "last"
"""Who publishes the last jobs."""

KEEP_S = 1.0
"""How long their records last."""


class Ending:
    """Ends a field in order. `say`: called with what it waits for."""

    def __init__(self, field: Field, say: Callable[[str], None], patience: float = 90.0) -> None:
        self._field = field
        self._say = say
        self._patience = patience
        self._record = field.recorder.write

    def run(self) -> None:
        """All of it."""
        self._calm()
        self._say("producers end")
        for name in self._field.keeper.end("producer", PRODUCERS_S):
            self._record("late", program=name)
        for name in self._field.keeper.end("relay", PRODUCERS_S):
            self._record("late", program=name)
        self._field.finish()
        for name in self._field.retire_old_code(POOLS_S):
            self._record("late", program=name)
        self._field.late_pool()
        self._say("what is left runs")
        with self._field.inspector() as inspector:
            self._drained(inspector)
            for scenario in self._field.scenarios:
                scenario.look(self._field)
            self._ended(inspector.redis)
            self._last_jobs()
            self._drained(inspector)
            self._doctor(inspector)
            self._history(inspector)
            self._counters(inspector)
            self._dead(inspector)
            self._say("consumers and pools end")
            for kind in ("consumer", "pool"):
                for name in self._field.keeper.end(kind, POOLS_S):
                    self._record("late", program=name)
            self._processes()
            self._leftovers(inspector.redis)
        for program in self._field.keeper.programs:
            self._log(program.name, program.log)

    def _calm(self) -> None:
        if not self._field.server.master.alive:
            self._field.server.master.start()
        for proxy in self._field.server.proxies.values():
            proxy.release()
            proxy.accept()
            proxy.dribble(0)
        for name in self._field.plain_queues:
            queue = self._field.queue(name)
            queue.resume()
            queue.close()

    def _drained(self, inspector: Inspector) -> None:
        """Wait until all queues are at rest, as long as jobs end: however slow the machine is."""
        least, until = math.inf, time.monotonic() + self._patience
        while time.monotonic() < until:
            left = sum(map(_left, inspector.queues()))
            if not left:
                break
            if left < least:
                least, until = left, time.monotonic() + self._patience
            self._field.wait(0.1)
        for info in inspector.queues():
            if _left(info):
                self._record(
                    "left over",
                    queue=info.name,
                    ready=info.ready,
                    scheduled=info.scheduled,
                    held=info.held,
                    blocked=info.blocked,
                    deferred=info.deferred,
                    outgoing=info.outgoing,
                )

    def _doctor(self, inspector: Inspector) -> None:
        """What it finds, and still finds when it has looked again for a while: a lease may have
        ended whose next renewal is to come."""
        doctor = inspector.doctor()
        until = time.monotonic() + min(self._patience, 2 * self._field.lease)
        while True:
            findings = [
                (name, finding)
                for name in inspector.queue_names()
                for finding in doctor.check_queue(name)
                if finding.severity == "problem"
            ]
            if not findings or time.monotonic() > until:
                break
            self._field.wait(0.2)
        for name, finding in findings:
            self._record("finding", queue=name, kind=finding.kind, said=finding.says[:300])

    def _counters(self, inspector: Inspector) -> None:
        """What the queues that pools serve say themselves of how their jobs ended."""
        for scenario in self._field.scenarios:
            for name in scenario.queues if scenario.served != "shards" else ():
                counters = inspector.queue(name).counters
                self._record("counters", queue=name, counters=counters)

    def _history(self, inspector: Inspector) -> None:
        # what Redis's clock says, as the machine's monotonic one: they are on one host
        offset = time.time() - time.monotonic()
        for name in inspector.queue_names():
            queue = self._field.queue(name)
            start = "-"
            while True:
                page: Any = inspector.redis.xrange(queue.keys.history, start, "+", count=PAGE)
                for entry, fields in page:
                    start = "(" + entry.decode()
                    written = int(entry.partition(b"-")[0]) / 1000 - offset
                    try:
                        rows = read_entry(fields, name)
                    except Undecodable as error:
                        self._record("bad history", queue=name, said=str(error)[:300])
                        continue
                    for row in rows:
                        self._record(
                            "row",
                            queue=name,
                            id=row["id"],
                            outcome=row["outcome"],
                            attempts=row["attempts"],
                            crashes=row.get("crashes", 0),
                            deliveries=row["deliveries"],
                            error=row["error"],
                            deaths=(row.get("cause") or {}).get("deaths", 0),
                            worker=row["worker"],
                            lasted=(row["finished"] - row["started"]) / 1000,
                            task=row["task"],
                            written=written,
                        )
                if len(page) < PAGE:
                    break
            queue.close()

    def _ended(self, client: redis.Redis) -> None:
        """The records of ended jobs: consumers of one's own may write no history."""
        for name in self._field.plain_queues:
            queue = self._field.queue(name)
            for key in (queue.keys.ended, queue.keys.ended_old):
                for id_, _ in client.hscan_iter(key, count=1000):
                    self._record("ended job", queue=name, id=id_.decode())
            queue.close()

    def _dead(self, inspector: Inspector) -> None:
        for name in inspector.queue_names():
            for job in inspector.dead(name):
                kind = (job.cause or {}).get("kind", "")
                self._record("dead", queue=name, id=job.id, kind=kind, attempts=job.attempts)
            inspector.purge_dead(name)

    def _processes(self) -> None:
        until = time.monotonic() + 3
        while self._field.run.processes() and time.monotonic() < until:
            self._field.wait(0.05)
        for pid in self._field.run.processes():
            with suppress(OSError):
                said = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                self._record("process left", process=pid, said=said.decode()[:200])

    def _last_jobs(self) -> None:
        """One more job for each queue, whose records are to be gone soon, and the older ones."""
        for name in self._field.plain_queues:
            queue = self._field.queue(name)
            queue.configure(keep=KEEP_S)
            queue.send(
                "soak.step", (f"{LAST}-{name}", 1, 0.0, ""), options=Options(id=f"{LAST}-{name}")
            )
            queue.close()

    def _leftovers(self, client: redis.Redis) -> None:
        """Keys that nothing needs any more, and that have no lifetime."""
        expected = set()
        for name in self._field.plain_queues:
            queue = self._field.queue(name)
            expected |= {f"{queue.keys.base}{suffix}" for suffix in EXPECTED_KEYS}
            queue.close()
        found = {key.decode() for key in client.scan_iter("rqueue:*", count=1000)}
        spread = tuple(f"rqueue:{{{name}" for name in self._field.queues_of("shards"))
        for key in sorted(found - expected):
            if spread and key.startswith(spread):
                continue  # the table, and what the shards know of it
            if client.pttl(key) < 0:
                self._record("key left", key=key)

    def _log(self, program: str, path: Path) -> None:
        """What a program said of itself that it must never say: tracebacks but for those of jobs
        that were asked to fail, and that it is at fault."""
        trace = ""
        for line in path.read_text(errors="replace").splitlines():
            if line.startswith(TRACEBACK):
                trace = line
            elif trace and not line.startswith((" ", "\t")):
                if WANTED not in line:
                    self._record("log", program=program, said=line[:300])
                trace = ""
            elif "a bug in rqueue" in line:
                self._record("log", program=program, said=line[:300])
        if trace:
            self._record("log", program=program, said=trace)


def _left(info: Any) -> int:
    waiting = info.ready + info.scheduled + info.held + info.blocked
    return int(waiting + info.deferred + info.outgoing)
