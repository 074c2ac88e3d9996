"""Schedules as scripts take them, for tests of scripts alone; and what must hold of stored ones."""

from __future__ import annotations

from typing import Any

from orjson import JSONDecodeError, loads

from rqueue.model.schedule import Timing
from rqueue.model.schedule_info import ScheduleInfo
from rqueue.protocol.scheduling import stored
from tests.support.snapshot import Snapshot

FEW, SOON_MS = 4, 450_000


def schedule(
    now: int, timing: Timing, *, state: Any = "active", terms: str = "4,,0,", job: str = '["t"]'
) -> dict[str, Any]:
    """A schedule that begins now."""
    info = ScheduleInfo("", "q", "t", timing, terms=terms, job=job)
    return stored(None, info, timing, now, state, anew=True)


def records(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """The schedules that can be read, by name."""
    found = {}
    for name, text in snapshot.hash("schedules").items():
        try:
            found[name.decode()] = loads(text)
        except JSONDecodeError:
            continue
    return found


def of_schedules(snapshot: Snapshot) -> list[str]:
    """An active schedule is noted at its next tick; who waits watches for it."""
    wrong = []
    known, ticks = records(snapshot), snapshot.scores("ticks")
    meant, lacking, owing = {}, set(), set()
    for name, record in known.items():
        nexts = list(record["nexts"])
        if record["state"] == "active" and nexts and not record.get("waits"):
            meant[name] = nexts[0]
        few = len(nexts) < FEW or nexts[-1] - nexts[0] < SOON_MS or "waits" in record
        few = few and "every" not in record
        if record["state"] == "active" and few:
            lacking.add(name)
        if "owed" in record:
            owing.add(name)
        if nexts != sorted(set(nexts)) or (nexts and nexts[0] <= record.get("after", 0)):
            wrong.append(f"the ticks of {name} after {record.get('after')} are {nexts}")
    if ticks != meant:
        wrong.append(f"ticks are noted at {ticks}, meant are {meant}")
    if (found := snapshot.members("refills")) != lacking:
        wrong.append(f"to be refilled are {sorted(found)}, meant are {sorted(lacking)}")
    if (found := {name.decode() for name in snapshot.hash("owed")}) != owing:
        wrong.append(f"{sorted(found)} owe a tick, meant are {sorted(owing)}")
    interested = snapshot.scores("interested")
    watched = snapshot.meta.get("paused") == "1" or not interested or snapshot.scores("notified")
    if ticks and not watched and snapshot.meta.get("timer") not in interested:
        wrong.append(
            f"the next tick is at {min(ticks.values())}, {sorted(interested)} are interested, and"
            f" the timer is with {snapshot.meta.get('timer')}"
        )
    return wrong
