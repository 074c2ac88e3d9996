"""The jobs that a workflow becomes, one by one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.model.parents import NAMED_MAX, PAIRS_MAX, Dependant, OnFailure, Parents
from rqueue.tasks.enqueuer import AsyncEnqueuer, Enqueuer
from rqueue.tasks.options import Options
from rqueue.tasks.request import JobRequest
from rqueue.tasks.signature import CallChecker

__all__ = [
    "Callee",
    "Spread",
    "Step",
    "checked_policy",
    "members_of",
    "names_waited_for",
    "taker_of",
]


class Callee(Protocol):
    """What a call knows of its task: a `BoundTask` is one."""

    name: str
    queue: str
    defaults: Options
    check: CallChecker
    _enqueuer: Enqueuer | None
    _async_enqueuer: AsyncEnqueuer | None


class Step(NamedTuple):
    """One job of a workflow, its id among its options, and its queue: "" = that of all. waits: what
    it waits for. counts: the job that its id is derived from waits for it. dependants: in a
    workflow of several queues, jobs that wait for it. call: the signature that it is made of."""

    request: JobRequest
    waits: Parents | None = None
    counts: bool = False
    dependants: tuple[str, ...] = ()
    call: Any = None


class Spread:
    """What is known of a workflow while its jobs are made, each for the queue of its task."""

    def __init__(self) -> None:
        self._dependants: dict[str, list[Dependant]] = {}

    def note(self, steps: Iterable[Step]) -> None:
        """Those that these name are waited for."""
        for step in steps:
            for place, id_ in enumerate(step.waits.ids if step.waits else ()):
                self.add(id_, step, place)

    def add(self, id: str, step: Step, place: int = 0) -> None:
        """The job `id` has this place among those that another one waits for."""
        assert step.waits is not None
        wants = step.waits.takes != "nothing"
        one = Dependant(step.request.queue, wants, str(step.request.options.id), place)
        self._dependants.setdefault(id, []).append(one)

    def dependants(self, id: str, queue: str, origin: Dependant | None) -> tuple[str, ...]:
        """Those of the job `id` of this queue, as it says them itself. origin: the one that its id
        is derived from."""
        some = self._dependants.pop(id, [])
        if origin is not None and origin.queue != queue:
            some.insert(0, origin)
        return tuple((one._replace(queue="") if one.queue == queue else one).text for one in some)


def members_of(given: object) -> tuple[Any, ...]:
    """The calls of a group. Raises ConfigError."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ConfigError("group", f"{shown(given)} is no list of calls: task.s(...)")
    return tuple(given)


def names_waited_for(names: Sequence[str], waiting: int) -> tuple[str, ...]:
    """The ids of jobs for which several wait by their names. waiting: how many wait. Raises
    ConfigError where they are too many."""
    if len(names) > NAMED_MAX or len(names) * waiting > PAIRS_MAX:
        raise ConfigError(
            "chain",
            f"each of {waiting:,} jobs would wait for {len(names):,} others, at most for"
            f" {NAMED_MAX}, and {PAIRS_MAX:,} times in all: put one call between the groups",
        )
    return tuple(names)


def checked_policy(on_failure: OnFailure) -> OnFailure:
    """Raises ConfigError where it is none."""
    if on_failure not in ("stop", "continue", "wait"):
        said = "none of 'stop', 'continue', 'wait'"
        raise ConfigError("on_failure", f"{shown(on_failure)} is {said}")
    return on_failure


def taker_of(store: Any) -> Any:
    """A queue, of what stores jobs. Raises ConfigError where it is none."""
    if not hasattr(store, "enqueue_workflow"):
        raise ConfigError("sender", f"{shown(store)} takes single jobs; a queue takes workflows")
    return store
