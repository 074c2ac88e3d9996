"""Two tenants send jobs: alpha evenly, beta many at once now and then; and their storage goes away
for a while."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rqueue.client._sync.queue import Call, Queue
from rqueue.demo import tenants

__all__ = ["Traffic"]

WAVES, WAVE_S = 40, 0.5
BURST = 5
"""Waves whose jobs beta sends at once."""
AWAY = (12, 22)
"""Waves from which, and until which, the storage is away."""


class Traffic:
    """Sends one job of each task for each file and tenant, in a thread; `jobs` are their ids.

    outage: file that is there while the storage is away. say: called with each event.
    """

    def __init__(
        self, url: str, paths: Sequence[str], outage: Path, say: Callable[[str], None]
    ) -> None:
        self.jobs: set[str] = set()
        self._url = url
        self._outage = outage
        self._say = say
        self._go = threading.Event()
        self._failure: Exception | None = None
        self._calls = {
            tenant: [
                Call(task.options(headers={"tenant": tenant}), (path,))
                for path in paths
                for task in (tenants.parse, tenants.squeeze)
            ]
            for tenant in tenants.TENANTS
        }
        self._thread = threading.Thread(target=self._run, name="tenants", daemon=True)

    def __len__(self) -> int:
        return sum(map(len, self._calls.values()))

    @property
    def half_sent(self) -> bool:
        """Whether it is past its middle."""
        return len(self.jobs) >= len(self) / 2

    def start(self) -> None:
        """Send the first wave, and no more before `go`."""
        self._thread.start()

    def go(self) -> None:
        """Send the others; it takes `WAVES * WAVE_S` seconds."""
        self._go.set()

    def join(self) -> None:
        """Wait for the end. Raises what kept it from sending."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._send()
        except Exception as error:
            self._failure = error
        finally:
            self._outage.unlink(missing_ok=True)

    def _send(self) -> None:
        queues = {name: Queue(name, self._url) for name in tenants.QUEUES}
        pause = threading.Event()
        steady, bursting = tenants.TENANTS
        for wave in range(WAVES):
            if wave == AWAY[0]:
                self._outage.touch()
                self._say("the storage is away: every third file cannot be read")
            if wave == AWAY[1]:
                self._outage.unlink()
                self._say("the storage is back")
            calls = self._part(steady, wave, wave + 1)
            if (wave + 1) % BURST == 0:
                calls += self._part(bursting, wave + 1 - BURST, wave + 1)
            for name, queue in queues.items():
                mine = [call for call in calls if _queue(call) == name]
                self.jobs |= {handle.id for handle in queue.enqueue_many(mine)}
            self._go.wait()
            pause.wait(WAVE_S)
        for queue in queues.values():
            queue.close()

    def _part(self, tenant: str, first: int, last: int) -> list[Call]:
        calls = self._calls[tenant]
        return calls[first * len(calls) // WAVES : last * len(calls) // WAVES]


def _queue(call: Call) -> str:
    task: Any = call.task
    name: str = task.queue
    return name
