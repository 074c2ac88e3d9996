"""Two queues beside each other, of the same kind and with the same steps. In the first one each job
becomes ready at the moment when it is due; in the second one nobody looks at the schedule but the
steps themselves. After each step that looks, both queues hold the same jobs in the same places."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import redis

from rqueue.client._sync.queue import Queue
from rqueue.errors import RQueueError
from rqueue.protocol import commands
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.clock import stop_clock
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import SCRIPTS
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.property.combining import MINE, Combined
from tests.property.sources import START_MS
from tests.support.snapshot import Snapshot, take_snapshot

NOT_DIRECTLY = "2"
"""What an enqueue says if no consumer is to get its job at once."""

MAY_STAY = ("pull", "commit", "resume")
"""Scripts that have nothing to compare if nothing is wanted, nothing is done or nothing is paused.
"""

MISSES = ("pause", "set_schedule", "remove_schedule")
"""Scripts after which ticks are missed, or are none, that nobody has looked at."""


class Prompt(Combined):
    """The first queue, which chooses the steps; `late` is the second one."""

    def __init__(self, client: redis.Redis, name: str, kind: Kind, seed: int) -> None:
        self.late = Queue(f"{name}-late", redis=client)
        stamp: dict[str, int | str] = {"v": kind.stamp}
        execute(client, commands.configure(self.late.keys, stamp), queue=self.late.name)
        execute(client, stop_clock(self.late.keys, START_MS))
        super().__init__(client, name, kind, seed)
        # whether the job before still waits depends on who looked when
        self.overlaps = ["allow"]

    def teardown(self) -> None:
        super().teardown()
        for key in self.client.scan_iter(self.late.keys.base + "*", count=10_000):
            self.client.delete(key)

    def run(self, call: ScriptCall[Any]) -> Any:
        if call.script == "enqueue":
            # who is notified, and so who gets a job directly, depends on who looked when
            call = call._replace(args=[NOT_DIRECTLY, *call.args[1:]])
        immediate = call.script == "commit" and str(call.args[6]) == "1"
        if immediate or (call.script in MISSES and self.untaken()):
            return None
        answer = super().run(call)
        same = call._replace(key=self.late.keys.meta)
        try:
            execute(self.client, same, queue=self.late.name)
        except MINE:
            raise
        except RQueueError:
            assert answer is None, f"{call.script} is refused by the late queue alone"
        self.compare(call.script)
        return answer

    def pass_time(self) -> None:
        """The clock of the first queue stops at each due time on its way."""
        by = self.random.choice([1, 900, 4000])
        until = self.before.now + by
        while True:
            now = take_snapshot(self.client, self.keys)
            known = [*now.scores("scheduled").values(), *now.scores("ticks").values()]
            times = [int(due) for due in known if now.now < due <= until]
            if not times:
                break
            move_time(self.queue, min(times) - now.now)
            execute(self.client, commands.promote(self.keys), queue=self.queue.name)
        move_time(self.queue, until - now.now)
        move_time(self.late, by)
        self.said.append(f"time passes: {by} ms")
        self.before = take_snapshot(self.client, self.keys)

    def untaken(self) -> bool:
        """True if ticks are due in the second queue that nobody has looked at."""
        late = take_snapshot(self.client, self.late.keys)
        return any(tick <= late.now for tick in late.scores("ticks").values())

    def hear(self) -> None:
        """What consumers read is their own affair."""

    def compare(self, script: str) -> None:
        late = take_snapshot(self.client, self.late.keys)
        looks = "ripen" in SCRIPTS.script(script, self.kind).asks
        times = [*late.scores("scheduled").values(), *late.scores("ticks").values()]
        if not looks or (script in MAY_STAY and any(ms <= late.now for ms in times)):
            return
        prompt, seen = places(self.before), places(late)
        if prompt != seen:
            wrong = {key: (prompt.get(key), seen.get(key)) for key in {*prompt, *seen}}
            wrong = {key: both for key, both in wrong.items() if both[0] != both[1]}
            steps = "\n  ".join(self.said[-25:])
            raise AssertionError(f"in {self.kind}, prompt and late: {wrong}\nafter:\n  {steps}")


def places(snapshot: Snapshot) -> Mapping[str, Any]:
    """Where all jobs are, in their order, and how the ended ones ended."""
    found: dict[str, Any] = {}
    for id_, place in snapshot.places:
        if id_ in snapshot.jobs and snapshot.jobs[id_][:1] != b"!":
            found.setdefault(place, []).append(id_)
    ended = {id_: record[:1] for id_, record in snapshot.records.items()}
    return found | {"ended": ended}
