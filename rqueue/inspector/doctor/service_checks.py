"""Whether anybody runs what waits: no fault of a queue, but what people ask the doctor for."""

from __future__ import annotations

import redis

from rqueue.inspector.consumers import code_that_runs_on
from rqueue.inspector.doctor.findings import Finding
from rqueue.inspector.jobs import jobs_page
from rqueue.inspector.queues import QueueInfo, queue_info
from rqueue.inspector.unheard import REFUSED
from rqueue.model.schedule_info import OVERDUE_MS, ScheduleInfo
from rqueue.protocol.commands import counts as counted
from rqueue.protocol.commands.consumer_rows import registered_names
from rqueue.protocol.commands.schedules import read_schedules
from rqueue.protocol.keys import QueueKeys
from rqueue.text.numbers import many
from rqueue.transport.redis_client import execute

WAITING = "ready, scheduled or parked"
"""Where the jobs are that `QueueInfo.waiting` counts."""

REWOUND_MS = 24 * 3_600_000
"""How long the doctor says that the clock went back."""

SHOWN = 20
"""Parked jobs of which the doctor names the tasks."""


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
        note("parked", info.parked, f"waiting for a worker that knows {_unknown(client, keys)}")
    if info.waiting and info.paused:
        note(
            "paused", info.waiting, f"{WAITING}, and the queue is paused: 'rqueue resume' delivers"
        )
    names = execute(client, registered_names(keys)) if info.acquiring else []
    for one in code_that_runs_on(client, keys, names):
        says = f"{one} in {one.consumer}: 'rqueue cancel {one.id} --kill' ends its process"
        found.append(Finding("service", "runs-on", keys.queue, one.id, says, severity="note"))
    if info.schedules:
        found += _schedules(client, info, keys)
    return found + _clock(client, keys)


def _clock(client: redis.Redis, keys: QueueKeys) -> list[Finding]:
    """A note for a day after the clock of Redis has gone back."""
    counts = execute(client, counted(keys, oldest=False), queue=keys.queue)
    at, _, by = counts.meta.get("rewound", "0 0").partition(" ")
    if abs(counts.now - int(at)) > REWOUND_MS:
        return []
    says = (
        f"the clock of Redis went back, by {int(by) / 1000:.0f} s or more: rates, intervals and"
        " throttled jobs were set right; delayed jobs come later by that"
    )
    remedy = "see that the hosts of Redis, and of its replicas, keep the time"
    return [Finding("service", "clock", keys.queue, "", says, remedy, "note")]


def _unknown(client: redis.Redis, keys: QueueKeys) -> str:
    """The tasks of parked jobs, of the first ones."""
    parked = jobs_page(client, keys, "parked", limit=SHOWN).jobs
    names = sorted({job.task for job in parked if job.task})
    if not names:
        return "the task"
    return f"task {', '.join(map(repr, names[:3]))}" + (", ..." if len(names) > 3 else "")


def _schedules(client: redis.Redis, info: QueueInfo, keys: QueueKeys) -> list[Finding]:
    """Notes on schedules whose ticks nobody looks for, and on those that no code declares."""
    found: list[Finding] = []
    overdue: list[ScheduleInfo] = []
    retired: list[str] = []
    cursor = "0"
    while True:
        page = execute(client, read_schedules(keys, cursor=cursor), queue=keys.queue)
        overdue += [one for one in page.found if one.overdue_ms >= OVERDUE_MS]
        retired += [one.name for one in page.found if one.state == "retired"]
        cursor = page.cursor
        if cursor == "0":
            break

    def note(kind: str, says: str) -> None:
        found.append(Finding("service", kind, keys.queue, "", says, severity="note"))

    if overdue and info.overdue_ms:
        first = max(overdue, key=lambda one: one.overdue_ms)
        why = "no worker looked" if info.acquiring else "no worker serves the queue"
        late = round(first.overdue_ms / 1000)
        said = "is overdue" if len(overdue) == 1 else "are overdue"
        says = f"{many(len(overdue), 'schedule')} {said}, {first.name!r} by {late} s: {why}"
        note("overdue", says)
    if retired:
        names = ", ".join(sorted(retired)[:3]) + (", ..." if len(retired) > 3 else "")
        note("retired", f"no worker's code declares {names} any more: retired, no ticks")
    return found
