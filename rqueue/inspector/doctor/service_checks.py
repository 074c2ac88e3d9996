"""Whether anybody runs what waits: no fault of a queue, but what people ask the doctor for."""

from __future__ import annotations

import redis

from rqueue.inspector.doctor.findings import Finding
from rqueue.inspector.queues import queue_info
from rqueue.inspector.unheard import REFUSED
from rqueue.protocol.keys import QueueKeys
from rqueue.text.numbers import many

WAITING = "ready, scheduled or parked"
"""Where the jobs are that `QueueInfo.waiting` counts."""


def check_service(client: redis.Redis, keys: QueueKeys) -> list[Finding]:
    """Notes on jobs that wait because no worker serves their queue, it is paused, or none of its
    workers knows their task. Raises UnknownQueue."""
    info = queue_info(client, keys)
    found: list[Finding] = []

    def note(kind: str, count: int, says: str) -> None:
        found.append(
            Finding(
                "service", kind, keys.queue, "", f"{many(count, 'job')} {says}", severity="note"
            )
        )

    if info.waiting and not info.acquiring:
        note("unserved", info.waiting, f"{WAITING}, and no worker serves it: is its name right?")
    for labels, jobs in info.unheard.items() if info.acquiring else ():
        if labels == REFUSED:
            note("unheard", jobs, "ready, and all registered consumers have refused them")
        else:
            note("unheard", jobs, f"with {labels} ready, and no registered consumer selects them")
    if info.parked and info.acquiring:
        note("parked", info.parked, "waiting for a worker that knows the task")
    if info.waiting and info.paused:
        note(
            "paused", info.waiting, f"{WAITING}, and the queue is paused: 'rqueue resume' delivers"
        )
    return found
