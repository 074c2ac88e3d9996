"""Schedules without I/O: what a client stores, and how the ticks of one are computed anew.

Who renews leases, and who reads or changes a schedule, computes ticks where few are left
(`refilling`). Any client may, several at once: what another one changed meanwhile stays as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from rqueue.errors import ConfigError, Forged, RQueueError, Unsigned
from rqueue.logs import logger
from rqueue.model.schedule import AHEAD_MS, MOST, Timing
from rqueue.model.schedule_info import ScheduleInfo, ScheduleState
from rqueue.model.signing import Signer
from rqueue.model.tick import tick_id
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.schedules import READ_MOST, read_schedules, refill_schedule
from rqueue.protocol.course import Calls, Course, arun_course, run_course
from rqueue.protocol.keys import QueueKeys
from rqueue.tasks.options import Options, at_once

__all__ = [
    "PendingRefill",
    "arefill",
    "arefill_soon",
    "check_options",
    "refill",
    "refill_soon",
    "refilling",
    "signatures",
    "stored",
    "verify",
]

log = logger("rqueue")

FEW, SOON_MS = 4, AHEAD_MS // 2
"""Ticks known ahead of which fewer are too few, and for how long they are to last: `RECORD_FEW` and
`RECORD_SOON` of the script."""


def check_options(options: Options) -> None:
    """Raise ConfigError where a periodic job has options that only one job can have."""
    if isinstance(options.unique, UniqueKey) and options.unique.replaces:
        raise ConfigError(
            "unique",
            f"the ticks say when a periodic job is due, not {options.unique.on_conflict!r}",
        )
    for name in ("id", "at_ms", "delay_ms", "max_wait", "replicas", "fsync", "confirm_ms"):
        if getattr(options, name) is not None:
            raise ConfigError(name, "one job alone can have it, not the jobs of a schedule")
    if options.hold:
        raise ConfigError("hold", "a periodic job has no due time of its own")
    if options.after:
        raise ConfigError("after", "a periodic job waits for no others")
    if name := at_once(options):
        raise ConfigError(name, "a periodic job is enqueued by its queue, and waits for a worker")


def signatures(
    signer: Signer | None, queue: str, name: str, terms: str, job: bytes, ticks: Sequence[int]
) -> dict[str, str]:
    """What stands before the envelope of each tick; nothing where jobs are not signed."""
    if signer is None:
        return {}
    return {str(at): _prefix(signer, queue, tick_id(name, at), terms, job, at) for at in ticks}


def _prefix(signer: Signer, queue: str, id: str, terms: str, job: bytes, at: int) -> str:
    return signer.sign_for(queue, id, job, terms, at)[: -len(job)].decode()


def stored(
    signer: Signer | None,
    info: ScheduleInfo,
    timing: Timing,
    now: int,
    state: ScheduleState,
    *,
    anew: bool,
) -> dict[str, Any]:
    """A schedule as the script takes it, with this timing and state. anew: its ticks are computed
    from now on; else those that are known stay."""
    nexts = timing.ahead(now, now + AHEAD_MS) if anew else list(info.nexts)
    queue, job = info.queue, info.job.encode()
    record: dict[str, Any] = {
        "task": info.task,
        "terms": info.terms,
        "job": info.job,
        "timing": timing.text,
        "state": state,
        "missed": timing.missed,
        "overlap": timing.overlap,
        "jitter": timing.jitter_ms,
        "window": timing.window_ms,
        "grace": timing.grace_ms(now),
        "nexts": nexts,
    }
    if info.edited:
        record["edited"] = True
    if signer is not None:
        record["signed"] = signatures(signer, queue, info.name, info.terms, job, nexts)
        seal = seal_body(timing, info.terms, info.job)
        record["seal"] = _prefix(signer, queue, _seal_id(info.name), info.terms, seal, now)
    elif timing.every_ms:
        record["every"] = timing.every_ms
        record["nexts"] = nexts[:1]
    return record


def seal_body(timing: Timing, terms: str, job: str) -> bytes:
    """What the signature of a schedule covers."""
    return ScheduleInfo("", "", "", timing, terms=terms, job=job).body


def _seal_id(name: str) -> str:
    return f"schedule {name}"


def verify(signer: Signer | None, info: ScheduleInfo) -> None:
    """Whether a client with the keys said what this schedule runs, and when. Raises Unsigned and
    Forged: its ticks are not to be signed."""
    if signer is not None:
        signer.verify(info.queue, _seal_id(info.name), info.seal.encode() + info.body)


def refilling(keys: QueueKeys, names: Sequence[str], signer: Signer | None) -> Calls[int]:
    """Compute the next ticks of these schedules, where few are left; how many have more now."""
    done = 0
    names = list(names)
    for start in range(0, len(names), READ_MOST):
        read = yield read_schedules(keys, names[start : start + READ_MOST])
        for info in read.found:
            ahead = [tick for tick in info.nexts if tick > read.now]
            lasts = len(ahead) >= FEW and ahead[-1] >= read.now + SOON_MS
            if info.state != "active" or lasts or len(info.nexts) == MOST:
                continue
            if info.timing.every_ms and not info.seal:
                continue
            if info.seal and signer is None:
                # a client that has the keys does it
                continue
            try:
                verify(signer, info)
            except (Unsigned, Forged) as error:
                log.error("schedule %s of queue %s ends: %s", info.name, keys.queue, error)
                continue
            ticks = info.timing.refilled(info.nexts, info.after_ms, read.now)
            if not ticks:
                continue
            job = info.job.encode()
            known = [*ticks, *([info.owed_ms] if info.owed_ms else ())]
            signed = signatures(signer, keys.queue, info.name, info.terms, job, known)
            done += yield refill_schedule(keys, info.name, info.version, ticks, signed)
    return done


class PendingRefill:
    """`refilling` for the supervisor's list of what is to be done."""

    def __init__(self, keys: QueueKeys, names: Sequence[str], signer: Signer | None) -> None:
        self.queue = keys.queue
        self._course = Course(refilling(keys, names, signer))

    def call(self) -> ScriptCall[Any] | None:
        """What to send now."""
        return self._course.call

    def answered(self, reply: Any) -> bool:
        """Go on until nothing is to be sent."""
        self._course.answered(reply)
        return self._course.call is not None

    def refused(self, error: RQueueError) -> None:
        """The next renewal asks again."""
        self._course.call = None
        log.warning("queue %s: ticks are not computed: %s", self.queue, error)


def refill(
    run: Callable[[ScriptCall[Any]], Any],
    keys: QueueKeys,
    names: Sequence[str],
    signer: Signer | None = None,
) -> int:
    """Compute the next ticks of these schedules; of how many. Raises the server errors."""
    return run_course(refilling(keys, names, signer), run)


async def arefill(
    run: Callable[[ScriptCall[Any]], Awaitable[Any]],
    keys: QueueKeys,
    names: Sequence[str],
    signer: Signer | None = None,
) -> int:
    """`refill` for asyncio."""
    return await arun_course(refilling(keys, names, signer), run)


def refill_soon(
    run: Callable[[ScriptCall[Any]], Any],
    keys: QueueKeys,
    names: Sequence[str],
    signer: Signer | None = None,
) -> None:
    """`refill` behind the renewal of a lease: where it fails, the next one asks again."""
    try:
        refill(run, keys, names, signer)
    except RQueueError as error:
        log.debug("queue %s: ticks are computed later: %s", keys.queue, error)


async def arefill_soon(
    run: Callable[[ScriptCall[Any]], Awaitable[Any]],
    keys: QueueKeys,
    names: Sequence[str],
    signer: Signer | None = None,
) -> None:
    """`refill_soon` for asyncio."""
    try:
        await arefill(run, keys, names, signer)
    except RQueueError as error:
        log.debug("queue %s: ticks are computed later: %s", keys.queue, error)
