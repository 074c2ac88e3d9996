"""Workflows: calls of tasks that follow each other, and get each other's results.

::

    chain(fetch.s(url), parse.s(), store.s(table="pages")).enqueue()
    group(resize.s(page) for page in pages).enqueue()
    chord((part.s(i) for i in range(1000)), merge.s()).enqueue()

A workflow becomes jobs whose ids say how they hang together: the job `w` waits for `w.0`, `w.1` and
so on. They are of one queue, or each of that of its task: then who is waited for says so itself.
Nothing here talks to Redis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rqueue.errors import ConfigError
from rqueue.model.expect import expect, shown
from rqueue.model.ids import check_id
from rqueue.model.parents import (
    CHAIN_MAX,
    PARENTS_MAX,
    QUEUES_MAX,
    RESULTS_MAX,
    Dependant,
    OnFailure,
    Parents,
)
from rqueue.tasks.enqueues import Enqueues
from rqueue.tasks.options import at_once
from rqueue.tasks.other_words import explained
from rqueue.tasks.request import JobRequest
from rqueue.tasks.signature import GIVEN
from rqueue.tasks.workflow_steps import (
    Callee,
    Spread,
    Step,
    checked_policy,
    members_of,
    names_waited_for,
)

__all__ = ["Chain", "Chord", "Group", "Signature", "Workflow", "chain", "chord", "group"]

R = TypeVar("R")
T = TypeVar("T")


class Workflow(Enqueues[R]):
    """Calls that make one result (a group: a list of them)."""

    on_failure: OnFailure
    size: int
    """Its jobs, its callbacks included."""
    depth: int
    """Calls of its longest way from the first to the last."""

    def _measure(self, size: int, depth: int) -> None:
        """Note both. Raises ConfigError for more than a workflow may have."""
        if size > PARENTS_MAX:
            raise ConfigError(
                "workflow",
                f"it has {size:,} jobs, at most {PARENTS_MAX:,}: let some of them enqueue what"
                " follows",
            )
        if depth > CHAIN_MAX:
            raise ConfigError(
                "workflow",
                f"{depth:,} calls follow one another in it, at most {CHAIN_MAX}: let the last one"
                " enqueue what follows",
            )
        object.__setattr__(self, "size", size)  # what it is made of does not change
        object.__setattr__(self, "depth", depth)

    def __or__(self, then: Workflow[T]) -> Chain[T]:
        """`first | second` is `chain(first, second)`. Raises ConfigError."""
        return chain(*_in_a_row(self), *_in_a_row(then))

    if not TYPE_CHECKING:

        def __ror__(self, first: object) -> Any:
            return chain(first, self)  # which says that it is no call

    def signatures(self) -> Iterator[Signature[Any]]:
        """All calls in it."""
        raise NotImplementedError

    def calls(self, id: str) -> dict[str, Signature[Any]]:
        """The ids that its jobs have if it is enqueued under `id`, and the call that each one is.
        Nothing is enqueued. Raises BadArguments and ConfigError."""
        return {
            str(step.request.options.id): step.call
            for step in self.steps(check_id(id))
            if step.call is not None
        }

    def results_of(self, id: str) -> list[str]:
        """The ids of the jobs whose results are its own, where it is enqueued as `id`."""
        return [id]

    def ends(self) -> list[Signature[Any]]:
        """The calls whose results are its own."""
        raise NotImplementedError

    def steps(self, id: str, *, spread: bool = False) -> Iterator[Step]:
        """Its jobs; `id` is that of the last one. spread: each is for the queue of its task; else
        each stands behind those that wait for it by its id. Raises BadArguments and ConfigError."""
        return self.placed(id, None, None, Spread() if spread else None)

    def placed(
        self, id: str, to: Dependant | None, before: Before | None, spread: Spread | None
    ) -> Iterator[Step]:
        """The same. to: the job that `id` is derived from waits for it. before: what it waits for
        itself."""
        raise NotImplementedError

    def _goes_to(self) -> tuple[Callee, bool]:
        """The task whose queue gets its last call, and whether others go elsewhere."""
        queues = {each.task.queue for each in self.signatures()}
        if len(queues) > QUEUES_MAX:
            said = f"{len(queues)} queues in one workflow, at most {QUEUES_MAX}"
            raise ConfigError("queue", said)
        ends = self.ends()
        if not ends:
            raise ConfigError("group", "it has no calls, so there is nothing to enqueue")
        return ends[0].task, len(queues) > 1


class Before(NamedTuple):
    """What goes before a job: a workflow that becomes jobs of its own with ids derived from that of
    the job, or jobs that are known by name, in these queues. many: whether their results are a
    list."""

    workflow: Workflow[Any] | None
    ids: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
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
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Measure it, with its callbacks."""
        behind = self.successes + self.failures
        size = 1 + sum([call.size for call in behind])
        self._measure(size, 1 + max([call.depth for call in behind], default=0))

    @property
    def name(self) -> str:
        """The name of its task."""
        return self.task.name

    @property
    def queue(self) -> str:
        """The queue that it goes to, unless all of its workflow go to another one."""
        return self.task.queue

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

    def ends(self) -> list[Signature[Any]]:
        """Itself."""
        return [self]

    def request(self, id: str, given: int, queue: str = "") -> JobRequest:
        """What it asks for as the job `id`, which gets so many arguments from others. Raises
        BadArguments and ConfigError."""
        task, options = self.task, self.task.defaults
        apart = options.unique or options.limit  # no queue has these and workflows
        if options.id is not None or options.after or apart or at_once(options):
            raise ConfigError(
                "options",
                f"a call of task '{task.name}' in a workflow takes neither id, after, immediate,"
                " mandatory, unique nor limit: the workflow says which job it is, and when it runs",
            )
        task.check((GIVEN,) * given + self.args, dict(self.kwargs))
        options = options.under(id)
        kwargs = dict(self.kwargs)
        return JobRequest(task.name, self.args, kwargs, options, task.check.positional, queue)

    def placed(
        self, id: str, to: Dependant | None, before: Before | None, spread: Spread | None
    ) -> Iterator[Step]:
        """Itself, then what goes before it, then its callbacks."""
        queue = "" if spread is None else self.task.queue
        waits = None if before is None else self._parents(id, before, spread)
        wants = waits is not None and waits.takes != "nothing"
        callbacks = [*self._callbacks(id, queue)]
        dependants: tuple[str, ...] = ()
        if spread is not None:
            for step in callbacks:
                if step.waits is not None and step.waits.ids == (id,):
                    spread.add(id, step)
            dependants = spread.dependants(id, queue, to)
        counts = to is not None and to.queue == queue
        yield Step(self.request(id, wants, queue), waits, counts, dependants, self)
        if before is not None and before.workflow is not None:
            name = id if before.many else f"{id}.0"
            yield from before.workflow.placed(name, Dependant(queue, wants), before.before, spread)
        yield from callbacks

    def _parents(self, id: str, before: Before, spread: Spread | None) -> Parents:
        takes: Any = "nothing" if self.immutable else "results" if before.many else "result"
        ids, queues = before.ids, before.queues
        total = len(ids)
        if before.workflow is not None:
            ends = before.workflow.ends()
            total = len(ends) if before.many else 1
            if spread is not None:
                queues = _queues(ends)
        if takes == "results" and total > RESULTS_MAX:
            raise ConfigError(
                "chord",
                f"task '{self.task.name}' would get {total:,} results, at most"
                f" {RESULTS_MAX:,} fit into one job: make it immutable (.si), and let it read"
                " what the members stored",
            )
        # who names nobody, and has all in its own queue, is waited for by nobody elsewhere
        if not ids and queues == (self.task.queue,):
            queues = ()
        return Parents(total, takes, before.on_failure, ids, queues)

    def _callbacks(self, id: str, queue: str) -> Iterator[Step]:
        """The jobs that follow it where it is done, or fails."""
        spread = Spread() if queue else None
        where = (queue,) if queue else ()
        for number, call in enumerate(self.successes):
            before = Before(None, (id,), where)
            yield from call.placed(f"{id}-success{number}", None, before, spread)
        for number, call in enumerate(self.failures):
            takes: Any = "nothing" if call.immutable else "result"
            waits = Parents(1, takes, "failed", (id,), where)
            its = call.task.queue if queue else ""
            yield Step(
                call.request(f"{id}-error{number}", takes == "result", its), waits, call=call
            )


def _queues(calls: Iterable[Signature[Any]]) -> tuple[str, ...]:
    return tuple({call.task.queue: None for call in calls})


@dataclass(frozen=True, slots=True)
class Chain(Workflow[R]):
    """Workflows one after the other; see `chain`."""

    parts: tuple[Workflow[Any], ...]
    on_failure: OnFailure = "stop"
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Measure it."""
        self._measure(
            sum([part.size for part in self.parts]), sum([part.depth for part in self.parts])
        )

    def signatures(self) -> Iterator[Signature[Any]]:
        """Those of its parts."""
        for part in self.parts:
            yield from part.signatures()

    def results_of(self, id: str) -> list[str]:
        """Those of its last part."""
        return self.parts[-1].results_of(id)

    def ends(self) -> list[Signature[Any]]:
        """Those of its last part."""
        return self.parts[-1].ends()

    def placed(
        self, id: str, to: Dependant | None, before: Before | None, spread: Spread | None
    ) -> Iterator[Step]:
        """The last part, behind it the one before."""
        *earlier, last = self.parts
        if not earlier:
            yield from last.placed(id, to, before, spread)
            return
        first = Chain(tuple(earlier), self.on_failure) if len(earlier) > 1 else earlier[0]
        many = _makes_list(first)
        if isinstance(last, Signature | Chain):
            # a chain has names of its own for what goes before parts of it: its first one has this
            before = Before(first, (), (), many, self.on_failure, before)
            yield from last.placed(id, to, before, spread)
            return
        # several jobs wait for what goes before: it has a name of its own
        name = f"{id}-before"
        names = names_waited_for(first.results_of(name), len(last.results_of(id)))
        queues = () if spread is None else _queues(first.ends())
        named = Before(None, names, queues, many, self.on_failure)
        behind: Iterable[Step] = last.placed(id, to, named, spread)
        if spread is not None:
            spread.note(behind := [*behind])
        yield from first.placed(name, None, before, spread)
        yield from behind


@dataclass(frozen=True, slots=True)
class Group(Workflow[R]):
    """Workflows that run side by side; see `group`."""

    members: tuple[Workflow[Any], ...]
    on_failure: OnFailure = "stop"
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Measure it."""
        depth = max([member.depth for member in self.members], default=0)
        self._measure(sum([member.size for member in self.members]), depth)

    def signatures(self) -> Iterator[Signature[Any]]:
        """Those of its members."""
        for member in self.members:
            yield from member.signatures()

    def results_of(self, id: str) -> list[str]:
        """One for each member."""
        return [f"{id}.{place}" for place in range(len(self.members))]

    def ends(self) -> list[Signature[Any]]:
        """Those of its members."""
        return [call for member in self.members for call in member.ends()]

    def placed(
        self, id: str, to: Dependant | None, before: Before | None, spread: Spread | None
    ) -> Iterator[Step]:
        """Its members; the first job of each waits for what goes before."""
        first, name = None, f"{id}-before"
        if before is not None and before.workflow is not None:
            first, earlier = before.workflow, before.before
            names = names_waited_for(first.results_of(name), len(self.members))
            queues = () if spread is None else _queues(first.ends())
            before = before._replace(workflow=None, ids=names, queues=queues, before=None)
        its: Iterable[Step] = self._members(id, to, before, spread)
        if first is not None:
            if spread is not None:
                spread.note(its := [*its])
            yield from first.placed(name, None, earlier, spread)
        yield from its

    def _members(
        self, id: str, to: Dependant | None, before: Before | None, spread: Spread | None
    ) -> Iterator[Step]:
        for member, name in zip(self.members, self.results_of(id), strict=True):
            yield from member.placed(name, to, before, spread)


@dataclass(frozen=True, slots=True)
class Chord(Workflow[R]):
    """A group, and a call that gets its results; see `chord`."""

    header: Group[Any]
    callback: Signature[R]
    on_failure: OnFailure = "stop"
    size: int = field(init=False, compare=False, repr=False)
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Measure it."""
        its = self.header, self.callback
        # with a group before it each level is two calls deep
        self._measure(sum([part.size for part in its]), 1 + sum([part.depth for part in its]))

    def signatures(self) -> Iterator[Signature[Any]]:
        """Those of its members, and the callback."""
        yield from self.header.signatures()
        yield self.callback

    def ends(self) -> list[Signature[Any]]:
        """The callback."""
        return [self.callback]

    def placed(
        self, id: str, to: Dependant | None, before: Before | None, spread: Spread | None
    ) -> Iterator[Step]:
        """The callback, then the members."""
        if not self.header.members:
            yield from self.callback.placed(id, to, before, spread)
            return
        before = Before(self.header, (), (), True, self.on_failure, before)
        yield from self.callback.placed(id, to, before, spread)


@explained("chain", "here it is chain(first.s(1), second.s())")
def chain(*parts: Workflow[Any], on_failure: OnFailure = "stop") -> Chain[Any]:
    """Calls one after the other: each gets the result of the one before as its first argument
    (behind a group the list of its results), unless it is immutable, `task.si(...)`.

    on_failure: what becomes of a call where the one before is not done: "stop", it is cancelled,
    and so are those behind it; "continue", it runs with a `Failure`; "wait", it waits until the
    dead letter is requeued and done. Raises ConfigError.
    """
    if not parts:
        raise ConfigError("chain", "it has no calls: chain(first.s(1), second.s())")
    made: list[Workflow[Any]] = []
    empty = False
    for part in parts:
        its = _workflow("chain", part)
        its = _behind_nothing(its) if empty else its
        empty = not its.ends()
        if not empty:
            made.append(its)
    if empty:
        raise ConfigError(
            "chain", "it ends with a group without calls: leave that out, or put a call behind it"
        )
    return Chain(tuple(made), checked_policy(on_failure))


@explained("group", "here it is group(task.s(1), task.s(2))")
def group(*members: Workflow[Any] | Iterable[Workflow[Any]]) -> Group[list[Any]]:
    """Calls side by side: `group(a.s(1), a.s(2))`, or `group(a.s(i) for i in range(9))`; its result
    is the list of theirs. Of a group without calls that list is empty: what is behind it in a
    chain or chord gets []. Raises ConfigError."""
    if not members:
        raise ConfigError("group", "it has no calls: group(task.s(1), task.s(2)), or group(list)")
    if len(members) == 1 and not isinstance(members[0], Workflow):
        members = members_of(members[0])
    made = tuple(_workflow("group", member) for member in members)
    if any(map(_makes_list, made)):
        raise ConfigError("group", "a group in a group: write its members into the one")
    return Group(made)


@explained("chord", "here it is chord([task.s(1), task.s(2)], callback.s())")
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
    if not header.members:
        callback = _called_with_nothing(callback)
    return Chord(header, callback, checked_policy(on_failure))


def _in_a_row(workflow: Workflow[Any]) -> tuple[Workflow[Any], ...]:
    if isinstance(workflow, Chain) and workflow.on_failure == "stop":
        return workflow.parts
    return (workflow,)


def _called_with_nothing(call: Signature[R]) -> Signature[R]:
    """A call behind a group without calls: its results, [], are there already."""
    if call.immutable:
        return call
    return replace(call, args=([], *call.args), immutable=True)


def _behind_nothing(workflow: Workflow[T]) -> Workflow[T]:
    """The same workflow, whose first calls are behind a group without calls."""
    if isinstance(workflow, Signature):
        return _called_with_nothing(workflow)
    if isinstance(workflow, Chain):
        first, *others = workflow.parts
        return replace(workflow, parts=(_behind_nothing(first), *others))
    if isinstance(workflow, Group):
        return replace(workflow, members=tuple(map(_behind_nothing, workflow.members)))
    if isinstance(workflow, Chord) and workflow.header.members:
        members = tuple(map(_behind_nothing, workflow.header.members))
        return replace(workflow, header=replace(workflow.header, members=members))
    return workflow  # its callback has its arguments


def _makes_list(workflow: Workflow[Any]) -> bool:
    """Whether its result is that of several jobs: it ends with a group."""
    return workflow.results_of("w") != ["w"]


def _workflow(what: str, part: object) -> Workflow[Any]:
    if isinstance(part, list | tuple):
        raise ConfigError(what, f"a list is no call of a task; here it is {what}(*calls)")
    if not isinstance(part, Workflow):
        raise ConfigError(what, f"{shown(part)} is no call of a task: task.s(...)")
    return part
