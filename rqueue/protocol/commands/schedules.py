"""Build the calls of periodic jobs: read schedules, set, refill, run and remove them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from orjson import dumps

from rqueue.errors import Undecodable
from rqueue.model.schedule_info import ScheduleInfo
from rqueue.protocol.call import Arg, ScriptCall, text
from rqueue.protocol.commands.enqueue import policies_of
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import schedules

READ_MOST = 100
"""Names that one call reads."""


class FoundSchedules(NamedTuple):
    """`found`: those that can be read. `damaged`: names of the others. `cursor`: of the next page,
    "0" = there is none."""

    now: int
    cursor: str
    found: list[ScheduleInfo]
    damaged: list[str]


def read_schedules(
    keys: QueueKeys, names: Sequence[str] = (), cursor: str = ""
) -> ScriptCall[FoundSchedules]:
    """The schedules of these names, at most `READ_MOST`, or a page of all: `cursor` is "0", then
    what the last page said."""

    def read(reply: Any) -> FoundSchedules:
        now, after, *flat = reply
        answer = FoundSchedules(now, text(after), [], [])
        for name, stored, next_ in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
            name = name.decode("utf-8", "surrogateescape")
            next_ms = int(float(next_)) if next_ else 0
            try:
                answer.found.append(ScheduleInfo.read(keys.queue, name, stored, next_ms, now))
            except Undecodable:
                answer.damaged.append(name)
        return answer

    return ScriptCall("read_schedules", keys.meta, [cursor, *names], read)


def set_schedule(
    keys: QueueKeys, name: str, version: str, schedule: Mapping[str, Any]
) -> ScriptCall[str]:
    """Make a schedule (version "": there is none), or change the one that is of this version.
    Answers made, changed, or other: it was changed meanwhile, and nothing is."""
    needs = (schedules.POLICY.name, *policies_of(schedule["terms"]))
    args: list[Arg] = [name, version, dumps(schedule)]
    return ScriptCall("set_schedule", keys.meta, args, _read_word, needs)


def declare_schedule(
    keys: QueueKeys,
    consumer: str,
    term: str,
    app: str,
    name: str,
    hash: str,
    schedule: Mapping[str, Any],
) -> ScriptCall[str]:
    """A consumer's code declares a schedule, for as long as the consumer lives. app: the modules
    that its process runs; hash: of what the code says. Answers made, changed, or same."""
    needs = (schedules.POLICY.name, *policies_of(schedule["terms"]))
    args: list[Arg] = [consumer, term, app, name, hash, dumps(schedule)]
    return ScriptCall("declare_schedule", keys.meta, args, _read_word, needs)


def declare_none(keys: QueueKeys, consumer: str, term: str, app: str) -> ScriptCall[str]:
    """The code of a consumer declares no schedule of this queue, which has some."""
    args: list[Arg] = [consumer, term, app, "", "", ""]
    return ScriptCall("declare_schedule", keys.meta, args, _read_word)


def refill_schedule(
    keys: QueueKeys, name: str, version: str, ticks: Sequence[int], signed: Mapping[str, str]
) -> ScriptCall[bool]:
    """The ticks of a schedule that is of this version, computed anew. signed: by tick, what stands
    before the envelope. False: it was changed meanwhile, and nothing is."""
    args: list[Arg] = [name, version, dumps(ticks), dumps(signed)]
    return ScriptCall("refill_schedule", keys.meta, args, _read_flag)


class Ran(NamedTuple):
    """What an enqueue beside the ticks answers. id: of the job, "" where there is no such schedule.
    created: whether it was enqueued. conflict: the state of that job, where it is another one that
    has its unique key."""

    id: str
    created: bool = False
    conflict: str = ""


def run_schedule(keys: QueueKeys, name: str, at: int = 0, signed: str = "") -> ScriptCall[Ran]:
    """Enqueue the job of a schedule now. at: the tick that the id says, 0 = now."""
    return ScriptCall("run_schedule", keys.meta, [name, at or "", signed], _read_ran)


def remove_schedule(keys: QueueKeys, name: str) -> ScriptCall[bool]:
    """Remove a schedule; whether there was one."""
    return ScriptCall("remove_schedule", keys.meta, [name], _read_flag)


def _read_ran(reply: Any) -> Ran:
    _, id_, created, conflict = reply
    return Ran(id_.decode("utf-8", "surrogateescape"), bool(created), text(conflict))


def _read_word(reply: Any) -> str:
    return text(reply[1])


def _read_flag(reply: Any) -> bool:
    return bool(reply[1])
