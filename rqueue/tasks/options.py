"""Options of one enqueue: what the store decides by, and what travels with the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields, replace
from datetime import datetime, timedelta
from inspect import Parameter, Signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rqueue.errors import ConfigError
from rqueue.model.expect import expect
from rqueue.model.parents import OnFailure, Parents
from rqueue.model.sort_keys import SortKey
from rqueue.model.times import parse_when
from rqueue.model.unique_key import UniqueKey
from rqueue.tasks.limits import Limit, limited, limits_of, texts_of
from rqueue.tasks.option_checks import CHECKS
from rqueue.tasks.other_words import refuse_unknown
from rqueue.tasks.retry import RetryPolicy
from rqueue.tasks.shares import Share
from rqueue.tasks.unique import Unique

__all__ = [
    "DEFAULT_PRIORITY",
    "NO_OPTIONS",
    "Options",
    "at_once",
    "keyed",
    "keyed_by_name",
    "refuses",
    "waits_of",
]

DEFAULT_PRIORITY = 4  # JMS


@dataclass(frozen=True)
class Options:
    """How one job is enqueued and run; None = as the task or the queue says.

    `id`: the job's, else a new one. `priority`: 0 to 9, higher first (Q-11). `at`: the due time, an
    aware datetime, Unix seconds, or a timedelta from now; kept as `at_ms`, ms since the epoch, or
    `delay_ms`, ms from now, of which one may be given in its place. `max_deliveries`:
    attempts in all, 0 = the queue's. `max_crashes`: those of them that may cost a worker its
    process, 0 = the queue's. `retry`: a policy. `time_limit`, `soft_time_limit`: seconds one
    attempt may take. `ttl`: seconds from its enqueue in which the job may be delivered, then it
    expires (Q-62). `keep`: seconds the result is kept. `headers`: text for the job's code.
    `labels`: small facts for its code, listings and reports. `mandatory`: refuse unless the queue
    is there already (Q-20). `immediate`: refuse unless a consumer takes the job at once (Q-19).
    `group`: of the jobs of one group one is in flight at a time, in their order, in a queue of the
    kind `groups` (Q-65). `key`: of the jobs of one key only the latest waits, in a queue of the
    kind `last_value`; an older one ends as displaced (Q-15). `hold`: with a due time, the job keeps
    the place that it takes when it is enqueued (Q-63). `front`: when it becomes ready it comes
    before all that waits in its level, so that of several the last one goes first (A-17).
    `sort_key`: a number or text by which jobs of a queue of the kind `sorted` stand (Q-14).
    `max_wait`: seconds that the enqueue may wait in all for room in a bounded queue whose producers
    wait (0: not at all; None: the setting; Q-67). `replicas`: the enqueue returns when so many of
    them have the job; `fsync`: when it is on disk; else NotConfirmed after `confirm_ms` (None: the
    settings). `on_commit`: whether the enqueue waits for the commit of the database transaction
    around it, where a framework's integration knows of one; text names the database (None: as the
    integration's settings say). `unique`: of calls that are alike there is one job at a time: True,
    a `Unique`, `Debounce` or `Throttle`; False: not so, although the task says it. `after`: jobs of
    the same queue (handles, or ids) for which this one waits. `on_failure`: what becomes of it
    where one of these is not done: "stop" (the default), it is cancelled; "continue", it runs all
    the same; "wait", it waits until the dead letter is requeued and done. `limit`: a `Concurrency`
    or `Rate`, or at most 8 of them: of the jobs of the queue that name a limit so many are
    delivered at a time, or in a time, as it allows; []: none, although the task says some. `share`:
    the name of a share, or a `Share` of the call's arguments: those that have ready jobs take
    turns, by weight, whatever the others have waiting.

    Raises ConfigError and InvalidName.
    """

    id: str | None = None
    priority: int | None = None
    at_ms: int | None = None
    delay_ms: int | None = None
    max_deliveries: int | None = None
    max_crashes: int | None = None
    retry: RetryPolicy | None = None
    time_limit: float | None = None
    soft_time_limit: float | None = None
    ttl: float | None = None
    keep: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str | int | bool] = field(default_factory=dict)
    immediate: bool = False
    mandatory: bool = False
    group: str | None = None
    key: str | None = None
    hold: bool = False
    front: bool = False
    sort_key: SortKey | None = None
    max_wait: float | None = None
    unique: Unique | UniqueKey | bool | None = None
    on_commit: bool | str | None = None
    after: Sequence[Any] | None = None
    on_failure: OnFailure | None = None
    limit: Limit | Sequence[Limit] | None = None
    share: str | Share | None = None
    replicas: int | None = None
    fsync: bool | None = None
    confirm_ms: int | None = None

    if TYPE_CHECKING:
        at: InitVar[datetime | timedelta | float | None] = None
    else:  # type checkers know the constructor of a dataclass

        def __init__(self, *values: Any, **given: Any) -> None:
            """The options that are not as they are by default are the attributes of an instance;
            all others are those of the class. So only what is given is looked at, here and by who
            packs the job: many calls have options of their own, and each has one or two."""
            if not _NAMES.issuperset(given):
                at = given.pop("at", None)
                refuse_unknown(given, _NAMES, "a job")
                if at is not None:
                    given |= _due(at, given)
            if values:
                given = _SIGNATURE.bind(*values, **given).arguments
            its = vars(self)
            for name, value in given.items():
                if value is not _DEFAULTS[name]:
                    its[name] = CHECKS[name](name, value)
            if len(its) > 1:
                self._check_together()

    def _check_together(self) -> None:
        """Refuse options that do not go together."""
        if self.at_ms is not None and self.delay_ms is not None:
            raise ConfigError("delay_ms", "a job is due at a time or after a delay, not both")
        if self.ttl and self.delay_ms and self.delay_ms >= self.ttl * 1000:
            raise ConfigError(
                "ttl",
                f"a job that lives {self.ttl:g} s from its enqueue and is due in"
                f" {self.delay_ms / 1000:g} s would never run",
            )
        if self.time_limit and self.soft_time_limit and self.soft_time_limit >= self.time_limit:
            raise ConfigError(
                "soft_time_limit", f"{self.soft_time_limit:g} s is not below time_limit"
            )

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits that jobs name."""
        return limits_of(self.limit)

    @property
    def limit_texts(self) -> tuple[str, ...]:
        """Of the limits that a job names: as its terms have them."""
        return texts_of(self.limits) if self.limit else ()

    def merged(self, **changes: Any) -> Options:
        """These options with `changes`, where a None changes nothing and mappings are added to."""
        given = {name: value for name, value in changes.items() if value is not None}
        if not given:
            return self
        for name in ("headers", "labels"):
            if name in given:
                expect(name, given[name], Mapping, "a dict with names and values")
                given[name] = {**getattr(self, name), **given[name]}
        if "at_ms" in given:  # one due time takes the other's place
            given.setdefault("delay_ms", None)
        elif "delay_ms" in given:
            given["at_ms"] = None
        return replace(self, **given)

    def under(self, id: str) -> Options:
        """The same options for the job of this id. Nothing is checked, as who packs the job checks
        the id, and of a workflow there are very many."""
        made = object.__new__(type(self))
        vars(made).update(vars(self), id=id)
        return made

    def to_opts(self) -> dict[str, Any] | None:
        """What travels in the envelope: only what is set; None when nothing is.

        The rest (id, priority, due time, attempts) is the store's to know.
        """
        if _TRAVEL.isdisjoint(vars(self)):
            return None
        opts: dict[str, Any] = {}
        if self.headers:
            opts["headers"] = dict(self.headers)
        if self.labels:
            opts["labels"] = dict(self.labels)
        if self.retry is not None:
            opts["retry"] = self.retry.to_dict()
        if self.time_limit is not None:
            opts["time_limit"] = self.time_limit
        if self.soft_time_limit is not None:
            opts["soft_time_limit"] = self.soft_time_limit
        if self.keep is not None:
            opts["keep"] = self.keep
        return opts or None

    def for_run(self, opts: Mapping[str, Any]) -> Options:
        """These options (a task's) with what a job's envelope says instead. Raises ConfigError."""
        if not opts:
            return self
        retry = opts.get("retry")
        return self.merged(
            retry=None if retry is None else RetryPolicy.from_dict(retry),
            time_limit=opts.get("time_limit"),
            soft_time_limit=opts.get("soft_time_limit"),
            keep=opts.get("keep"),
            headers=opts.get("headers"),
            labels=opts.get("labels"),
        )


def waits_of(options: Options) -> str:
    """What a job with these options waits for, as its terms say it; "" = nothing."""
    if not options.after:
        return ""
    ids = tuple(options.after)
    return Parents(len(ids), "nothing", options.on_failure or "stop", ids).text


def _due(at: datetime | timedelta | float, given: Mapping[str, Any]) -> dict[str, Any]:
    """The option that a due time stands for. Raises ConfigError, also if another one is given."""
    for name in ("at_ms", "delay_ms"):
        if given.get(name) is not None:
            raise ConfigError("at", f"a job has one due time, at or {name}")
    due = parse_when(at, "at")
    return {"at_ms": due.at_ms} if due.delay_ms is None else {"delay_ms": due.delay_ms}


_FIELDS = tuple(f.name for f in fields(Options))
_NAMES = frozenset(_FIELDS)
_POSITIONAL = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in _FIELDS]
_SIGNATURE = Signature(_POSITIONAL)
_AT = Parameter("at", Parameter.KEYWORD_ONLY, default=None)
setattr(Options, "__signature__", Signature([*_POSITIONAL, _AT]))  # noqa: B010 (what a shell shows)
for _name in ("headers", "labels"):
    setattr(Options, _name, MappingProxyType({}))  # of all that have none: nobody writes to it
_DEFAULTS = {name: getattr(Options, name) for name in _FIELDS}
_TRAVEL = frozenset({"headers", "labels", "retry", "time_limit", "soft_time_limit", "keep"})
"""What goes into the envelope."""


def keyed(options: Options, task: str, arguments: Mapping[str, Any]) -> Options:
    """These options with what a call of the task with these arguments makes of them: the key where
    it is to be unique, and of limits and shares. Raises ConfigError, InvalidName, NotEncodable."""
    unique = options.unique
    if options.limit:
        options = replace(options, limit=limited(options.limits, task, arguments))
    if isinstance(options.share, Share):
        options = replace(options, share=options.share.of_call(task, arguments))
    if not isinstance(unique, Unique):
        return options
    key = unique.of_call(task, arguments)
    timed = unique.delay_ms or unique.on_conflict == "throttle"
    if timed and (options.at_ms is not None or options.delay_ms is not None):
        kind = type(unique).__name__
        raise ConfigError("unique", f"{kind} says when the job is due: enqueue it without a time")
    return replace(options, unique=key, delay_ms=unique.delay_ms or options.delay_ms)


def keyed_by_name(
    options: Options, task: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Options:
    """The same of a call by the task's name, whose code need not be here: its arguments have the
    names that the call gives them."""
    return keyed(options, task, {**({"*": list(args)} if args else {}), **kwargs})


def at_once(options: Options) -> str:
    """The name of an option by which an enqueue has to be answered at once, and alone; "" where
    there is none."""
    return "immediate" if options.immediate else "mandatory" if options.mandatory else ""


def refuses(options: Options) -> bool:
    """Whether an enqueue with these options is refused where another job has its unique key."""
    unique = options.unique
    return isinstance(unique, Unique | UniqueKey) and unique.on_conflict == "raise"


NO_OPTIONS = Options()
