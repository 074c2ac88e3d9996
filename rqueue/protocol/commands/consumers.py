"""Build the calls of a consumer's life: register, interest, renew, reclaim, unregister."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from orjson import dumps

from rqueue.model.selector import Selector
from rqueue.protocol.call import Arg, ScriptCall, text
from rqueue.protocol.commands.settle import Window
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import selectors

Mode = Literal["acquire", "browse"]


class Registered(NamedTuple):
    """The term is the fencing number of this registration: every later call carries it."""

    now: int
    term: str
    state: str


class Died(NamedTuple):
    """A job that is dead because it crashed once too often. `cause`: of the last crash, JSON."""

    id: str
    task: str
    cause: bytes


class Renewed(NamedTuple):
    """`gone`: consumers whose lease had ended. `reclaimed`: dead ones that left, their jobs given
    back; `died`: those of the jobs that are dead now. `more`: other dead ones hold jobs still;
    renew again at once. `outgoing`: jobs on their way to other queues, to be sent now
    (`rqueue.protocol.forwarding`). `lacking`: schedules whose next ticks are to be computed
    (`rqueue.protocol.scheduling`)."""

    now: int
    gone: list[str]
    reclaimed: int
    more: bool
    died: Sequence[Died] = ()
    outgoing: int = 0
    lacking: Sequence[str] = ()


class Ran(NamedTuple):
    """A job that a worker was running. `acquired_ms`, `started_ms`: when the worker got it, and
    when it began, by Redis's clock; 0 = not known."""

    id: str
    acquired_ms: int = 0
    started_ms: int = 0


class Left(NamedTuple):
    """`held`: jobs that it still holds; call again until 0. `died`: those that are dead now."""

    now: int
    held: int
    died: Sequence[Died] = ()


def _read_registered(reply: Any) -> Registered:
    return Registered(reply[0], text(reply[1]), text(reply[2]))


def _read_renewed(reply: Any) -> Renewed:
    now, gone, reclaimed, more, died, *rest = reply
    names = [text(name) for name in gone]
    outgoing = rest[0] if rest else 0
    lacking = [name.decode("utf-8", "surrogateescape") for name in rest[1]] if rest[1:] else ()
    return Renewed(now, names, reclaimed, bool(more), _read_died(died), outgoing, lacking)


def _read_died(flat: Sequence[bytes]) -> list[Died]:
    return [
        Died(text(id), text(task), cause)
        for id, task, cause in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    ]


def _read_left(reply: Any) -> Left:
    return Left(reply[0], reply[1], _read_died(reply[2]) if len(reply) > 2 else ())


def _read_noted(reply: Any) -> int:
    return int(reply[1])


def _flat(jobs: Sequence[Ran]) -> list[Arg]:
    return [part for job in jobs for part in job]


def _read_state(reply: Any) -> str:
    return text(reply[1])


def register(
    keys: QueueKeys,
    consumer: str,
    *,
    mode: Mode = "acquire",
    priority: int = 0,
    window: Window = Window(1),  # noqa: B008 - a NamedTuple of two numbers
    lease_ms: int,
    slots: int = 1,
    worker: str = "",
    limits: Mapping[str, tuple[int, int]] | None = None,
    token: str = "",
    select: Selector | None = None,
) -> ScriptCall[Registered]:
    """Add a consumer. A name is used once: a new incarnation takes a new name (H-12).

    limits: attempts and crashes that a task's jobs may have, by its name; 0 where the task says
    nothing, "*" for all tasks. What a job says itself wins, what the queue says does not. token: of
    the client that registers; with it the call may be repeated where its reply was lost, and
    answers the same. select: only jobs with such labels; the queue takes on the policy `selectors`.
    """
    mode_ = f"{mode} {select.postfix}" if select else mode
    needs = (selectors.POLICY.name,) if select else ()
    args: list[Arg] = [
        consumer,
        mode_,
        priority,
        window.jobs,
        window.bytes,
        lease_ms,
        slots,
        worker,
    ]
    args += (dumps(limits) if limits else "", token)
    return ScriptCall("register", keys.meta, args, _read_registered, needs)


def interest(keys: QueueKeys, consumer: str, term: str, window: Window) -> ScriptCall[str]:
    """Set the window without pulling (Q-38, Q-39); returns the list the consumer is in then."""
    args: list[Arg] = [consumer, term, window.jobs, window.bytes]
    return ScriptCall("interest", keys.meta, args, _read_state)


def renew(keys: QueueKeys, lease_ms: int, consumers: Sequence[str]) -> ScriptCall[Renewed]:
    """Renew leases; with no consumers it is only a look after what others left behind."""
    return ScriptCall("renew", keys.meta, [lease_ms, *consumers], _read_renewed)


def note_running(keys: QueueKeys, consumer: str, running: Sequence[Ran]) -> ScriptCall[int]:
    """Note what a consumer has been running for a while, in place of what was noted before: the end
    of its lease charges these jobs and no others (X-24). Answers how many were noted."""
    return ScriptCall("note_running", keys.meta, [consumer, *_flat(running)], _read_noted)


def reclaim(
    keys: QueueKeys, consumer: str, cause: bytes, charged: Sequence[Ran]
) -> ScriptCall[Left]:
    """Take back what a dead consumer held; only the `charged` (running) jobs count an attempt and a
    crash. cause: JSON object."""
    return ScriptCall("reclaim", keys.meta, [consumer, cause, *_flat(charged)], _read_left)


def unregister(keys: QueueKeys, consumer: str, term: str) -> ScriptCall[Left]:
    """Take a consumer off the queue; what it holds goes back uncounted (X-21)."""
    return ScriptCall("unregister", keys.meta, [consumer, term], _read_left)
