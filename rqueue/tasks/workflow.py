"""Workflows: calls of tasks that follow each other, and get each other's results.

::

    chain(fetch.s(url), parse.s(), store.s(table="pages")).enqueue()
    group(resize.s(page) for page in pages).enqueue()
    chord((part.s(i) for i in range(1000)), merge.s()).enqueue()

A workflow becomes jobs of one queue whose ids say how they hang together: the job `w` waits for
`w.0`, `w.1` and so on. Nothing here talks to Redis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, shown
from rqueue.model.parents import (
    CHAIN_MAX,
    NAMED_MAX,
    PAIRS_MAX,
    PARENTS_MAX,
    RESULTS_MAX,
    OnFailure,
    Parents,
)
from rqueue.tasks.enqueuer import (
    AsyncEnqueuer,
    Enqueuer,
    default_async_enqueuer,
    default_enqueuer,
)
from rqueue.tasks.options import Options, at_once, refuses
from rqueue.tasks.request import JobRequest
from rqueue.tasks.signature import CallChecker

if TYPE_CHECKING:
    from rqueue.client._async.workflows import AsyncWorkflowHandle
    from rqueue.client._sync.workflows import WorkflowHandle

__all__ = ["Chain", "Chord", "Group", "Signature", "Step", "Workflow", "chain", "chord", "group"]

R = TypeVar("R")


class Callee(Protocol):
    """What a call knows of its task: a `BoundTask` is one."""

    name: str
    queue: str
    defaults: Options
    check: CallChecker
    _enqueuer: Enqueuer | None
    _async_enqueuer: AsyncEnqueuer | None


class Step(NamedTuple):
    """One job of a workflow, its id among its options. waits: what it waits for. counts: the job
    that its id is derived from waits for it."""

    request: JobRequest
    waits: Parents | None = None
    counts: bool = False


class Workflow(Generic[R]):
    """Calls that make one result (a group: a list of them)."""

    on_failure: OnFailure

    def enqueue(self, *, id: str | None = None) -> WorkflowHandle[R]:
        """Enqueue it into the queue of its tasks; see `Queue.enqueue_workflow`."""
        task, queue = self._goes_to()
        # a queue, and not any enqueuer: a workflow is several jobs
        store: Any = task._enqueuer or default_enqueuer(task.name, queue)
        handle: WorkflowHandle[R] = _taker(store).enqueue_workflow(self, id=id)
        return handle

    async def aenqueue(self, *, id: str | None = None) -> AsyncWorkflowHandle[R]:
        """`enqueue` for asyncio."""
        task, queue = self._goes_to()
        store: Any = task._async_enqueuer or default_async_enqueuer(task.name, queue)
        handle: AsyncWorkflowHandle[R] = await _taker(store).enqueue_workflow(self, id=id)
        return handle

    def signatures(self) -> Iterator[Signature[Any]]:
        """All calls in it."""
        raise NotImplementedError

    def results_of(self, id: str) -> list[str]:
        """The ids of the jobs whose results are its own, where it is enqueued as `id`."""
        return [id]

    def steps(self, id: str) -> Iterator[Step]:
        """Its jobs, each behind those that wait for it; `id` is that of the last one. Raises
        BadArguments and ConfigError."""
        return self.placed(id, False, None)

    def placed(self, id: str, counts: bool, before: Before | None) -> Iterator[Step]:
        """The same. counts: the job that `id` is derived from waits for it. before: what it waits
        for itself."""
        raise NotImplementedError

    def _goes_to(self) -> tuple[Callee, str]:
        tasks = [each.task for each in self.signatures()]
        if len(queues := {task.queue for task in tasks}) > 1:
            raise ConfigError(
                "queue",
                f"the tasks of one workflow are of the queues {', '.join(sorted(queues))}: say"
                " which one with Queue(...).enqueue_workflow(workflow)",
            )
        return tasks[0], tasks[0].queue


class Before(NamedTuple):
    """What goes before a job: a workflow that becomes jobs of its own with ids derived from that of
    the job, or jobs that are known by name. many: whether their results are a list."""

    workflow: Workflow[Any] | None
    ids: tuple[str, ...] = ()
    many: bool = False
    on_failure: OnFailure = "stop"
    before: Before | None = None


@dataclass(frozen=True, slots=True)
class Signature(Workflow[R]):
    """A call of a task that is made later: `task.s(...)`. In a workflow it gets what went before
    as its first argument, unless it is `immutable`: `task.si(...)`."""

    task: Callee
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    immutable: bool = False
    successes: tuple[Signature[Any], ...] = ()
    failures: tuple[Signature[Any], ...] = ()
    on_failure: OnFailure = "stop"

    def on_success(self, call: Signature[Any]) -> Signature[R]:
        """The same call, and another one that is made with its result when it is done."""
        expect("on_success", call, Signature, "a call: task.s(...)")
        return replace(self, successes=(*self.successes, call))

    def on_error(self, call: Signature[Any]) -> Signature[R]:
        """The same call, and another one that is made, with a `Failure`, when it is dead,
        cancelled or expired."""
        expect("on_error", call, Signature, "a call: task.s(...)")
        return replace(self, failures=(*self.failures, call))

    def signatures(self) -> Iterator[Signature[Any]]:
        """This one, and its callbacks."""
        yield self
        for call in (*self.successes, *self.failures):
            yield from call.signatures()

    def request(self, id: str, given: int) -> JobRequest:
        """What it asks for as the job `id`, which gets so many arguments from others. Raises
        BadArguments and ConfigError."""
        task, options = self.task, self.task.defaults
        if options.id is not None or options.after or at_once(options) or refuses(options):
            raise ConfigError(
                "options",
                f"a call of task '{task.name}' in a workflow takes neither id, after, immediate,"
                " mandatory nor unique: the workflow says which job it is, and when it runs",
            )
        task.check((None,) * given + self.args, dict(self.kwargs))
        options = replace(options, id=id)
        return JobRequest(task.name, self.args, dict(self.kwargs), options, task.check.positional)

    def placed(self, id: str, counts: bool, before: Before | None) -> Iterator[Step]:
        """Itself, then what goes before it, then its callbacks."""
        waits = None
        if before is not None:
            takes: Any = "nothing" if self.immutable else "results" if before.many else "result"
            ids = before.ids
            total = len(ids)
            if before.workflow is not None:
                total = len(before.workflow.results_of(id)) if before.many else 1
            if takes == "results" and total > RESULTS_MAX:
                raise ConfigError(
                    "chord",
                    f"task '{self.task.name}' would get {total:,} results, at most"
                    f" {RESULTS_MAX:,} fit into one job: make it immutable (.si), and let it read"
                    " what the members stored",
                )
            waits = Parents(total, takes, before.on_failure, ids)
        yield Step(self.request(id, waits is not None and waits.takes != "nothing"), waits, counts)
        if before is not None and before.workflow is not None:
            if before.many:
                yield from before.workflow.placed(id, True, before.before)
            else:
                yield from before.workflow.placed(f"{id}.0", True, before.before)
        for number, call in enumerate(self.successes):
            yield from call.placed(f"{id}-success{number}", False, Before(None, (id,)))
        for number, call in enumerate(self.failures):
            takes = "nothing" if call.immutable else "result"
            step = Parents(1, takes, "failed", (id,))
            request = call.request(f"{id}-error{number}", takes == "result")
            yield Step(request, step)


@dataclass(frozen=True, slots=True)
class Chain(Workflow[R]):
    """Workflows one after the other; see `chain`."""

    parts: tuple[Workflow[Any], ...]
    on_failure: OnFailure = "stop"

    def signatures(self) -> Iterator[Signature[Any]]:
        """Those of its parts."""
        for part in self.parts:
            yield from part.signatures()

    def results_of(self, id: str) -> list[str]:
        """Those of its last part."""
        return self.parts[-1].results_of(id)

    def placed(self, id: str, counts: bool, before: Before | None) -> Iterator[Step]:
        """The last part, behind it the one before."""
        *earlier, last = self.parts
        if not earlier:
            yield from last.placed(id, counts, before)
            return
        first = Chain(tuple(earlier), self.on_failure) if len(earlier) > 1 else earlier[0]
        many = isinstance(earlier[-1], Group)
        if isinstance(last, Signature):
            yield from last.placed(id, counts, Before(first, (), many, self.on_failure, before))
            return
        # several jobs wait for what goes before: it has a name of its own
        name = f"{id}-before"
        names = tuple(first.results_of(name))
        waiting = len(last.results_of(id))
        if len(names) > NAMED_MAX or len(names) * waiting > PAIRS_MAX:
            raise ConfigError(
                "chain",
                f"each of {waiting:,} jobs would wait for {len(names):,} others, at most for"
                f" {NAMED_MAX}, and {PAIRS_MAX:,} times in all: put one call between the groups",
            )
        yield from first.placed(name, False, before)
        yield from last.placed(id, counts, Before(None, names, many, self.on_failure))


@dataclass(frozen=True, slots=True)
class Group(Workflow[R]):
    """Workflows that run side by side; see `group`."""

    members: tuple[Workflow[Any], ...]
    on_failure: OnFailure = "stop"

    def signatures(self) -> Iterator[Signature[Any]]:
        """Those of its members."""
        for member in self.members:
            yield from member.signatures()

    def results_of(self, id: str) -> list[str]:
        """One for each member."""
        return [f"{id}.{place}" for place in range(len(self.members))]

    def placed(self, id: str, counts: bool, before: Before | None) -> Iterator[Step]:
        """Its members; the first job of each waits for what goes before."""
        if before is not None and before.workflow is not None:
            name = f"{id}-before"
            names = tuple(before.workflow.results_of(name))
            yield from before.workflow.placed(name, False, before.before)
            before = before._replace(workflow=None, ids=names, before=None)
        for member, name in zip(self.members, self.results_of(id), strict=True):
            yield from member.placed(name, counts, before)


@dataclass(frozen=True, slots=True)
class Chord(Workflow[R]):
    """A group, and a call that gets its results; see `chord`."""

    header: Group[Any]
    callback: Signature[R]
    on_failure: OnFailure = "stop"

    def signatures(self) -> Iterator[Signature[Any]]:
        """Those of its members, and the callback."""
        yield from self.header.signatures()
        yield self.callback

    def placed(self, id: str, counts: bool, before: Before | None) -> Iterator[Step]:
        """The callback, then the members."""
        yield from self.callback.placed(
            id, counts, Before(self.header, (), True, self.on_failure, before)
        )


def chain(*parts: Workflow[Any], on_failure: OnFailure = "stop") -> Chain[Any]:
    """Calls one after the other: each gets the result of the one before as its first argument
    (behind a group the list of its results), unless it is immutable, `task.si(...)`.

    on_failure: what becomes of a call where the one before is not done: "stop", it is cancelled,
    and so are those behind it; "continue", it runs with a `Failure`; "wait", it waits until the
    dead letter is requeued and done. Raises ConfigError.
    """
    if not parts:
        raise ConfigError("chain", "it has no calls: chain(first.s(1), second.s())")
    if len(parts) > CHAIN_MAX:
        raise ConfigError(
            "chain",
            f"{len(parts):,} calls, at most {CHAIN_MAX}: let the last one enqueue what follows",
        )
    return Chain(tuple(_workflow("chain", part) for part in parts), _policy(on_failure))


def group(*members: Workflow[Any] | Iterable[Workflow[Any]]) -> Group[list[Any]]:
    """Calls side by side: `group(a.s(1), a.s(2))`, or `group(a.s(i) for i in range(9))`; its result
    is the list of theirs. Raises ConfigError."""
    if len(members) == 1 and not isinstance(members[0], Workflow):
        members = _members(members[0])
    made = tuple(_workflow("group", member) for member in members)
    if any(isinstance(member, Group) for member in made):
        raise ConfigError("group", "a group in a group: write its members into the one")
    if not 0 < len(made) <= PARENTS_MAX:
        raise ConfigError("group", f"{len(made):,} calls: 1 to {PARENTS_MAX:,}")
    return Group(made)


def chord(
    header: Iterable[Workflow[Any]] | Group[Any],
    callback: Signature[R],
    *,
    on_failure: OnFailure = "stop",
) -> Chord[R]:
    """Calls side by side, and one that is made, with the list of their results, when all have
    ended. on_failure: as of `chain`, of the callback. Raises ConfigError."""
    expect("callback", callback, Signature, "a call: task.s(...)")
    header = header if isinstance(header, Group) else group(header)
    return Chord(header, callback, _policy(on_failure))


def _members(given: object) -> tuple[Any, ...]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ConfigError("group", f"{shown(given)} is no list of calls: task.s(...)")
    return tuple(given)


def _workflow(what: str, part: object) -> Workflow[Any]:
    if not isinstance(part, Workflow):
        raise ConfigError(what, f"{shown(part)} is no call of a task: task.s(...)")
    return part


def _policy(on_failure: OnFailure) -> OnFailure:
    if on_failure not in ("stop", "continue", "wait"):
        said = "none of 'stop', 'continue', 'wait'"
        raise ConfigError("on_failure", f"{shown(on_failure)} is {said}")
    return on_failure


def _taker(store: Any) -> Any:
    if not hasattr(store, "enqueue_workflow"):
        raise ConfigError("sender", f"{shown(store)} takes single jobs; a queue takes workflows")
    return store
