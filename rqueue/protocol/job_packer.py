"""From a call of a task to the job that is stored: what all clients share, without any I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from rqueue.errors import ConfigError, NotEncodable
from rqueue.model.confirmation import Confirmation, stricter
from rqueue.model.envelope import Envelope, pack, too_large, unpack
from rqueue.model.expect import expect, shown
from rqueue.model.ids import check_id, new_id
from rqueue.model.job import Delivery
from rqueue.model.names import MAX_NAME, check_task
from rqueue.model.sort_keys import sort_key_text
from rqueue.model.terms import NORMAL_TERMS
from rqueue.model.times import parse_duration
from rqueue.model.unique_key import UniqueKey
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.enqueue import BATCH, Accepted, Put, enqueue, enqueue_one, normal_put
from rqueue.protocol.commands.shards import of_version
from rqueue.protocol.keys import QueueKeys
from rqueue.settings import Settings
from rqueue.tasks import app
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import (
    DEFAULT_PRIORITY,
    NO_OPTIONS,
    Options,
    at_once,
    keyed_by_name,
    waits_of,
)
from rqueue.tasks.request import JobRequest
from rqueue.tasks.workflow import Workflow

__all__ = [
    "Batch",
    "Call",
    "JobPacker",
    "Packed",
    "as_put",
    "by_name",
    "call_of",
    "each_of",
    "lease_of",
    "terms_of",
]

_new = tuple.__new__

_OF_ARGUMENTS = frozenset({"unique", "limit", "share"})
"""Options that a call's arguments may have a part in."""


class Call(NamedTuple):
    """One call for `enqueue_many` and `put_call`: a task (or its name), its arguments, and the
    options where they are not the task's."""

    task: BoundTask[..., Any] | str
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] | None = None
    options: Options | None = None

    def resolve(self) -> JobRequest:
        """The name, arguments and options that go into the job. Raises BadArguments."""
        task, args, kwargs, options = self
        # looked at once more only where something is not of the usual types
        if (
            (type(args) is not tuple and type(args) is not list)
            or (kwargs is not None and type(kwargs) is not dict)
            or (options is not None and type(options) is not Options)
        ):
            check_arguments(args, kwargs, options)
        if isinstance(task, BoundTask):
            check = task.check
            if kwargs or not check.least <= len(args) <= check.most:
                check(tuple(args), kwargs or {})
            options = options or task.defaults
            if options.unique or options.limit or options.share:
                return task.request(options, tuple(args), kwargs or {})
            return _new(JobRequest, (task.name, args, kwargs or {}, options, check.positional, ""))
        if type(task) is not str or not 0 < len(task) <= MAX_NAME or not task.isprintable():
            return by_name(task, args, kwargs, options)
        if options is None or not (given := vars(options)):
            options = NO_OPTIONS
        elif not _OF_ARGUMENTS.isdisjoint(given):
            options = keyed_by_name(options, task, args, kwargs or {})
        return _new(JobRequest, (task, args, kwargs or {}, options, (), ""))


def by_name(
    task: object,
    args: Sequence[Any] = (),
    kwargs: dict[str, Any] | None = None,
    options: Options | None = None,
) -> JobRequest:
    """A call of a task by its name. Raises ConfigError and InvalidName for anything else."""
    if isinstance(task, str):
        check_task(task)
    elif isinstance(task, BoundTask):
        raise ConfigError("task", f"{task!r} is no name; pass it to enqueue, or its .name")
    elif isinstance(task, Workflow):
        raise ConfigError("task", "a workflow is enqueued by .enqueue(), or enqueue_workflow(it)")
    elif callable(task):
        name = getattr(task, "__qualname__", shown(task))
        raise ConfigError("task", f"function '{name}' is no task: put @task above it")
    else:
        raise ConfigError("task", f"{shown(task)} is neither a task nor a task's name")
    check_arguments(args, kwargs, options)
    if options is not None and (options.unique or options.limit or options.share):
        options = keyed_by_name(options, task, args, kwargs or {})
    return JobRequest(task, args, kwargs or {}, options or NO_OPTIONS)


def check_arguments(args: object, kwargs: object, options: object) -> None:
    """Raise ConfigError unless these are a call's arguments and options."""
    if type(args) is not tuple and type(args) is not list:
        expect("args", args, Sequence, "a list or tuple; one argument alone is [argument]")
        if isinstance(args, str | bytes):
            raise ConfigError("args", f"{shown(args)} is no list; pass [{shown(args)}]")
    if kwargs is not None:
        expect("kwargs", kwargs, dict, "a dict of arguments by name")
    if options is not None:
        expect("options", options, Options, "an Options")


def call_of(value: object) -> Call:
    """Return `value` when it is a Call. Raises ConfigError, which shows how to make one."""
    if isinstance(value, Call):
        return value
    raise ConfigError("call", f"{shown(value)} is not a Call; pass Call(task, args, kwargs)")


def each_of(calls: Iterable[Call] | str) -> Iterator[Call]:
    """The calls, one after the other. Raises ConfigError where these are not many."""
    expect("calls", calls, Iterable, "a list of Call(task, args, kwargs)")
    if isinstance(calls, str | bytes):
        raise ConfigError("calls", f"{shown(calls)} is one text; pass a list of Call")
    return iter(calls)


class Packed(NamedTuple):
    """A job's id, envelope, options. `own`: the id was made here, so that no other job has it."""

    id: str
    body: bytes
    own: bool
    options: Options


class Batch(NamedTuple):
    """Jobs for one step, with every job whether its id is its own. confirm: what confirms them.
    version: of the table of shards, by which they go into one of them; 0: it is no shard. keys: of
    all of them ("": none) where they are to go into shards: the jobs are not signed then, and do
    not have their keys."""

    jobs: list[tuple[Put, bool]]
    confirm: Confirmation | None
    version: int = 0
    keys: Sequence[str] = ()

    def call(self, keys: QueueKeys) -> ScriptCall[Accepted]:
        """The call that stores them."""
        call = enqueue(keys, [put for put, _ in self.jobs], confirm=self.confirm)
        return of_version(call, self.version) if self.version else call


class JobPacker:
    """Packs the jobs of one queue, and signs them where the settings have keys.

    Signing is a step of its own, to be made when a job is sent: a signature holds for an enqueue
    soon after it was made.
    """

    __slots__ = ("_confirm", "_max_body", "_plain", "_signer", "_within_ms", "keys", "queue")

    def __init__(self, keys: QueueKeys, settings: Settings) -> None:
        self.keys = keys
        self.queue = keys.queue
        self._signer = settings.signer
        self._max_body = settings.max_body
        self._within_ms = settings.confirm_ms
        self._confirm = (
            Confirmation(settings.replicas, settings.fsync, settings.confirm_ms)
            if settings.replicas or settings.fsync
            else None
        )
        self._plain = self._signer is None and self._confirm is None
        """Whether jobs are neither signed nor confirmed, unless their options say so."""

    def confirmation(self, options: Options = NO_OPTIONS) -> Confirmation | None:
        """What confirms a job with these options: they, or the settings, say so; None: nothing."""
        if options.replicas is None and options.fsync is None and options.confirm_ms is None:
            return self._confirm
        usual = self._confirm or Confirmation(0, False, self._within_ms)
        replicas = usual.replicas if options.replicas is None else options.replicas
        fsync = usual.fsync if options.fsync is None else options.fsync
        within_ms = options.confirm_ms or usual.within_ms
        return Confirmation(replicas, fsync, within_ms) if replicas or fsync else None

    def call(self, packed: Packed, id: str) -> ScriptCall[Accepted]:
        """What stores one job, under this id, signed as of now, and confirmed where it is to be."""
        _, body, _, options = packed
        if options is NO_OPTIONS and self._plain:
            return enqueue_one(self.keys, id, body)
        if options is NO_OPTIONS:
            terms, confirm = NORMAL_TERMS, self._confirm
        else:
            terms, confirm = terms_of(options), self.confirmation(options)
        if self._signer is not None:
            body = self.signed(id, body, terms)
        call = enqueue_one(self.keys, id, body, terms, options.immediate, options.mandatory)
        return call if confirm is None else call._replace(confirm=confirm)

    def signed(self, id: str, body: bytes, terms: str, age_ms: int = 0) -> bytes:
        """The envelope as it is to be sent now; a signed one stays as it is. age_ms: how long ago
        the job was enqueued, as which it counts."""
        if self._signer is None or body[:1] == b"S":
            return body
        return self._signer.sign(self.queue, id, body, terms, age_ms)

    @property
    def signs(self) -> bool:
        """Whether there are keys to sign with."""
        return self._signer is not None

    def signed_for_now(self, job: Delivery) -> bytes | None:
        """The envelope of a scheduled job that is to run now, where its signature would not let it;
        None where nothing has to change. Raises Forged, Undecodable."""
        if self._signer is None or job.body[:1] != b"S":
            return None
        fresh = self._signer.without_due(self.queue, job.id, job.body)
        return None if fresh == job.body else fresh

    def signed_for_priority(self, job: Delivery, priority: int) -> bytes:
        """The envelope of a job that is to have another priority; as it is where nothing signs it.
        Raises Forged, Undecodable."""
        if self._signer is None or job.body[:1] != b"S":
            return job.body
        return self._signer.with_priority(self.queue, job.id, job.body, priority)

    def envelope(self, job: Delivery) -> Envelope:
        """What a job carries, verified where there are keys. Raises Undecodable, Unsigned,
        Forged."""
        body = job.body
        if self._signer is not None:
            body = self._signer.verify(self.queue, job.id, body, job.header).json
        return Envelope(*unpack(body)).of(job)

    def signed_puts(self, puts: Sequence[Put]) -> Sequence[Put]:
        """`signed` for jobs that are enqueued together."""
        if self._signer is None:
            return puts
        return [put._replace(envelope=self.signed(put.id, put.envelope, put.terms)) for put in puts]

    def pack(self, request: JobRequest, around: bool = True) -> Packed:
        """One job, not signed yet. Raises NotEncodable, InvalidName, what runs `around` it."""
        if app.around_enqueues and around:
            return app.make(
                request._replace(queue=request.queue or self.queue),
                partial(self.pack, around=False),
            )
        task, args, kwargs, options, parameters, _ = request
        if self._signer is not None and isinstance(options.unique, UniqueKey):
            _refuse_replacing(options.unique)
        id_ = options.id
        own = id_ is None
        id_ = new_id() if id_ is None else check_id(id_)
        opts = None if options is NO_OPTIONS else options.to_opts()
        body = pack(task, args, kwargs, opts, parameters)
        if len(body) > self._max_body:
            raise NotEncodable("", task, too_large(len(body), self._max_body), what="arguments")
        return _new(Packed, (id_, body, own, options))  # past its own constructor: half the time

    def batches(
        self, calls: Iterable[Call] | str, most: int = BATCH, *, spread: bool = False
    ) -> Iterator[Batch]:
        """Many jobs, signed, in batches of at most so many. spread: they are to go into shards."""
        batch: list[tuple[Put, bool]] = []
        keys: list[str] = []
        confirm = None
        for call in each_of(calls):
            id_, body, own, options = self.pack(call_of(call).resolve())
            if spread:
                keys.append(options.key or "")
                if options.key and len(vars(options)) == 1:
                    options = NO_OPTIONS  # nothing but the key, which has named its shard
            if options is NO_OPTIONS:
                put, its = normal_put(id_, body), self._confirm
            else:
                if name := at_once(options):
                    said = "one of many cannot be refused alone; enqueue it by itself"
                    raise ConfigError(name, said)
                put = as_put(id_, body, options, keyed=not spread)
                its = self.confirmation(options)
            if self._signer is not None and not spread:
                put = put._replace(envelope=self.signed(id_, body, put.terms))
            if its is not None:
                confirm = stricter(confirm, its)
            batch.append((put, own))
            if len(batch) == most:
                yield Batch(batch, confirm, keys=keys)
                batch, keys, confirm = [], [], None
        if batch:
            yield Batch(batch, confirm, keys=keys)


def _refuse_replacing(unique: UniqueKey) -> None:
    if unique.replaces:
        raise ConfigError(
            "unique",
            f"jobs are signed here, each for its own id: none gets the arguments of another one, as"
            f" {unique.on_conflict!r} would have it",
        )


def terms_of(options: Options) -> str:
    """What the queue itself must know of a job with these options, as `Put.terms` has it."""
    return NORMAL_TERMS if options is NO_OPTIONS else as_put("", b"", options).terms


def as_put(id: str, body: bytes, options: Options, *, keyed: bool = True) -> Put:
    """A packed job with what the queue itself must know of it; keyed: also of its key."""
    if options is NO_OPTIONS:  # nearly all jobs
        return normal_put(id, body)
    its = (
        id,
        body,
        DEFAULT_PRIORITY if options.priority is None else options.priority,
        options.delay_ms or 0,
        options.at_ms or 0,
        options.max_deliveries or (options.retry.max_deliveries if options.retry else 0),
        options.max_crashes or 0,
        max(1, round(options.ttl * 1000)) if options.ttl else 0,
        options.group or "",
        (options.key or "") if keyed else "",
        options.hold,
        "" if options.sort_key is None else sort_key_text(options.sort_key),
        options.unique.text if isinstance(options.unique, UniqueKey) else "",
        waits_of(options),
        False,
        options.limit_texts if options.limit else (),
        options.front,
        (),
        options.share if isinstance(options.share, str) else "",
    )
    return _new(Put, its)  # past its own constructor, here too


def lease_of(lease: float | str | timedelta | None, settings: Settings) -> int:
    """The lease in ms: what is given, or the setting. Raises ConfigError."""
    return settings.lease_ms if lease is None else round(parse_duration(lease, "lease") * 1000)
