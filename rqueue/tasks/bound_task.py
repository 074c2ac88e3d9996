"""The typed way to enqueue a call of a task: now, later, with options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from rqueue.errors import BadArguments, ConfigError
from rqueue.model.expect import expect_number, shown
from rqueue.model.names import check_queue
from rqueue.model.parents import OnFailure
from rqueue.model.sort_keys import SortKey
from rqueue.model.times import parse_when
from rqueue.model.unique_key import UniqueKey
from rqueue.tasks.enqueuer import DEFAULTS, AsyncEnqueuer, Enqueuer
from rqueue.tasks.limits import Limit, arguments_of
from rqueue.tasks.options import NO_OPTIONS, Options, keyed
from rqueue.tasks.other_words import other_method, with_known_options
from rqueue.tasks.request import JobRequest
from rqueue.tasks.retry import RetryPolicy, check_retry
from rqueue.tasks.shares import Share
from rqueue.tasks.signature import CallChecker
from rqueue.tasks.unique import Unique
from rqueue.tasks.workflow import Signature

if TYPE_CHECKING:
    from rqueue.client._async.job_handle import AsyncJobHandle
    from rqueue.client._sync.job_handle import JobHandle

__all__ = ["BoundTask", "goes_to"]

_new = tuple.__new__

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class BoundTask(Generic[P, R]):
    """A task with the options of its calls: everything that enqueues it."""

    name: str
    queue: str
    defaults: Options
    check: CallChecker
    """Raises BadArguments unless the function takes the arguments that it is called with."""
    _enqueuer: Enqueuer | None = None
    _async_enqueuer: AsyncEnqueuer | None = None

    def enqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]:
        """Enqueue one call. Raises BadArguments, NotEncodable, and what the client raises."""
        return self._send(self.defaults, args, kwargs)

    def enqueue_at(
        self, when: datetime | timedelta | float, /, *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[R]:
        """Enqueue one call for a time: aware datetime, Unix seconds, timedelta from now (A-01)."""
        return self._send(self._due(when), args, kwargs)

    def enqueue_in(
        self, seconds: float | timedelta, /, *args: P.args, **kwargs: P.kwargs
    ) -> JobHandle[R]:
        """Enqueue one call that becomes ready in `seconds` (or a timedelta), by Redis's clock."""
        due = self._due(_from_now(seconds))
        try:
            return self._send(due, args, kwargs)
        except BadArguments as error:
            raise _without_seconds(error, seconds, args, kwargs) from None

    async def aenqueue(self, /, *args: P.args, **kwargs: P.kwargs) -> AsyncJobHandle[R]:
        """`enqueue` for asyncio."""
        return await self._asend(self.defaults, args, kwargs)

    async def aenqueue_at(
        self, when: datetime | timedelta | float, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJobHandle[R]:
        """`enqueue_at` for asyncio."""
        return await self._asend(self._due(when), args, kwargs)

    async def aenqueue_in(
        self, seconds: float | timedelta, /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJobHandle[R]:
        """`enqueue_in` for asyncio."""
        due = self._due(_from_now(seconds))
        try:
            return await self._asend(due, args, kwargs)
        except BadArguments as error:
            raise _without_seconds(error, seconds, args, kwargs) from None

    if not TYPE_CHECKING:  # to type checkers a word of another queue is an error as it is

        def __getattr__(self, name: str) -> Any:
            raise other_method(self.__dict__.get("name", ""), name)

    @with_known_options("a call")
    def options(
        self,
        *,
        queue: str | None = None,
        id: str | None = None,
        priority: int | None = None,
        at: datetime | timedelta | float | None = None,
        max_deliveries: int | None = None,
        max_crashes: int | None = None,
        retry: RetryPolicy | None = None,
        time_limit: float | None = None,
        soft_time_limit: float | None = None,
        ttl: float | None = None,
        keep: float | None = None,
        headers: Mapping[str, str] | None = None,
        labels: Mapping[str, str | int | bool] | None = None,
        immediate: bool | None = None,
        mandatory: bool | None = None,
        group: str | None = None,
        key: str | None = None,
        hold: bool | None = None,
        front: bool | None = None,
        sort_key: SortKey | None = None,
        max_wait: float | None = None,
        on_commit: bool | str | None = None,
        unique: Unique | bool | None = None,
        after: Sequence[Any] | None = None,
        on_failure: OnFailure | None = None,
        limit: Limit | Sequence[Limit] | None = None,
        share: str | Share | None = None,
        replicas: int | None = None,
        fsync: bool | None = None,
        confirm_ms: int | None = None,
        sender: Enqueuer | None = None,
        async_sender: AsyncEnqueuer | None = None,
    ) -> BoundTask[P, R]:
        """The same task with other options for its calls, which take the same arguments.

        `time_limit`, `soft_time_limit`, `ttl`, `keep`, `max_wait` are seconds; see
        `rqueue.tasks.options.Options` for all of them. Headers and labels are added to those that
        are there. With a `sender` the calls go to its queue, unless `queue` says otherwise. Raises
        ConfigError and InvalidName.
        """
        bound: BoundTask[P, R] = BoundTask()
        bound.name = self.name
        bound.queue = goes_to(queue, sender, async_sender) or self.queue
        bound.check = self.check
        bound._enqueuer = self._enqueuer if sender is None else sender
        bound._async_enqueuer = self._async_enqueuer if async_sender is None else async_sender
        if max_deliveries is None and retry is not None:
            max_deliveries = check_retry(retry).max_deliveries or None
        due = parse_when(at, "at") if at is not None else None
        bound.defaults = self.defaults.merged(
            id=id,
            priority=priority,
            at_ms=due.at_ms if due else None,
            delay_ms=due.delay_ms if due else None,
            max_deliveries=max_deliveries,
            max_crashes=max_crashes,
            retry=retry,
            time_limit=time_limit,
            soft_time_limit=soft_time_limit,
            ttl=ttl,
            keep=keep,
            headers=headers,
            labels=labels,
            immediate=immediate,
            mandatory=mandatory,
            group=group,
            key=key,
            hold=hold,
            front=front,
            sort_key=sort_key,
            max_wait=max_wait,
            on_commit=on_commit,
            unique=unique,
            after=after,
            on_failure=on_failure,
            limit=limit,
            share=share,
            replicas=replicas,
            fsync=fsync,
            confirm_ms=confirm_ms,
        )
        bound.check_keys()
        return bound

    def check_keys(self) -> None:
        """Raise ConfigError where calls are told apart by arguments that the function lacks."""
        unique, limits = self.defaults.unique, self.defaults.limits
        named = [("unique", name) for name in unique.names] if isinstance(unique, Unique) else []
        named += [("limit", name) for one in limits for name in arguments_of(one)]
        share = self.defaults.share
        named += [("share", name) for name in (share.reads if isinstance(share, Share) else ())]
        known = self.check.names() if named else []
        for option, name in named:
            if name not in known:
                raise ConfigError(option, f"task '{self.name}' has no argument '{name}'")

    def request(self, options: Options, args: Any, kwargs: Any, queue: str = "") -> JobRequest:
        """What a call with these options and arguments asks for; queue: "" for the one that is
        asked. Raises BadArguments; ConfigError and NotEncodable where it is to be unique, or names
        a limit or a share, and has no key."""
        check = self.check
        if kwargs or not check.least <= len(args) <= check.most:
            check(args, kwargs)
        if options is not NO_OPTIONS and (options.unique or options.limit or options.share):
            options = keyed(options, self.name, check.arguments(args, kwargs))
        # past its own constructor: half the time
        return _new(JobRequest, (self.name, args, kwargs, options, check.positional, queue))

    @overload
    def s(self, /, *args: P.args, **kwargs: P.kwargs) -> Signature[R]: ...
    @overload
    def s(
        self: BoundTask[Concatenate[Any, Q], R], /, *args: Q.args, **kwargs: Q.kwargs
    ) -> Signature[R]: ...
    def s(self, /, *args: Any, **kwargs: Any) -> Signature[R]:
        """This call, to be made in a workflow: behind others it gets their result as its first
        argument, before these."""
        return Signature(self, args, kwargs)

    def si(self, /, *args: P.args, **kwargs: P.kwargs) -> Signature[R]:
        """This call with these arguments alone, whatever goes before it."""
        return Signature(self, args, kwargs, immutable=True)

    def unique_key(self, /, *args: P.args, **kwargs: P.kwargs) -> str:
        """The key that a job of this call has (see `Unique`): for `queue.unique` and `rqueue
        unique`. Raises BadArguments, and ConfigError for a task that is not unique."""
        unique = self.request(self.defaults, args, kwargs).options.unique
        if not isinstance(unique, UniqueKey):
            raise ConfigError("unique", f"task '{self.name}' is not unique")
        return unique.key

    def _due(self, when: datetime | timedelta | float) -> Options:
        at_ms, delay_ms = parse_when(when)
        return replace(self.defaults, at_ms=at_ms, delay_ms=delay_ms)

    def _send(self, options: Options, args: Any, kwargs: Any) -> JobHandle[R]:
        request = self.request(options, args, kwargs, self.queue)
        enqueuer = self._enqueuer or DEFAULTS.enqueuers[self.queue]
        return enqueuer.enqueue_request(request)

    async def _asend(self, options: Options, args: Any, kwargs: Any) -> AsyncJobHandle[R]:
        request = self.request(options, args, kwargs, self.queue)
        enqueuer = self._async_enqueuer or DEFAULTS.async_enqueuer(self.queue)
        return await enqueuer.enqueue_request(request)


def _without_seconds(
    error: BadArguments, seconds: float | timedelta, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> BadArguments:
    """The error of a delayed call; with a hint where its first argument may stand for seconds."""
    if args or kwargs:
        return error
    hint = f"enqueue_in takes the seconds first; did you mean enqueue({seconds!r})?"
    return BadArguments(error.task, f"{error.problem} ({hint})", error.signature)


def _from_now(seconds: float | timedelta) -> timedelta:
    if isinstance(seconds, timedelta):
        return seconds
    expect_number("enqueue_in", seconds, "a number of seconds; the task's arguments come after it")
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ConfigError("enqueue_in", f"{shown(seconds)} s are more than a century") from None


def goes_to(queue: str | None, sender: object, async_sender: object) -> str | None:
    """The queue that these options name, or None. Raises ConfigError and InvalidName."""
    for name, who in (("sender", sender), ("async_sender", async_sender)):
        if who is not None and not hasattr(who, "enqueue_request"):
            kind = "a Queue or a putter" if name == "sender" else "an AsyncQueue or its putter"
            raise ConfigError(name, f"{shown(who)} is not {kind}")
    if queue is not None:
        return check_queue(queue)
    chosen = sender if sender is not None else async_sender
    return getattr(chosen, "target", None) or None
