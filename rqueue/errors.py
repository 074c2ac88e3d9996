"""Every error that rqueue raises, as one tree.

::

    RQueueError
    ├── ServerError                  the Redis server cannot be used
    │   ├── RedisUnavailable         ... now: waiting and trying again makes sense
    │   │   ├── ConnectionLost       refused, reset, closed, name not found
    │   │   ├── RedisTimeout         no answer in time: whether the command ran is not known
    │   │   ├── RedisLoading         starting, still reading its data
    │   │   ├── RedisReadOnly        a replica, or a failover is under way
    │   │   ├── RedisBusy            a script keeps it busy, or a failover is under way
    │   │   │   └── SlotBusy         a cluster moves the queue, or nobody serves it now
    │   │   └── RedisOutOfMemory     maxmemory is reached and nothing may be evicted
    │   └── UnusableServer           ... until it is changed
    │       ├── AuthenticationFailed wrong password, or a login without the rights
    │       ├── WrongServer          too old, not a Redis, a Sentinel, a node of a cluster
    │       ├── CommandRefused       a command that rqueue needs is refused
    │       └── EvictionPolicy       it may evict jobs
    ├── ScriptError                  a Lua script refused its input
    ├── ScriptSourceError            the Lua sources are missing or broken (installation)
    ├── EmbeddedRedisError           the embedded server cannot be found, started or kept
    ├── ConfigError                  a setting or option is wrong (also a ValueError)
    │   └── InvalidSelector          an expression over labels cannot be read
    ├── InvalidName                  an id or a name that cannot be used (also a ValueError)
    ├── LifecycleError               used before it was opened, or after it was closed
    ├── QueueError
    │   ├── UnknownQueue
    │   ├── UnknownSchedule          it has no periodic job of this name
    │   ├── UnknownJob               never accepted, or its record is gone
    │   ├── JobBlocked               it waits behind others of its group
    │   ├── TransactionRolledBack    its consumer lost a job that it was to settle
    │   ├── QueueDamaged         a key of it was overwritten by something else
    │   ├── DuplicateJob             another job has its unique key
    │   ├── WorkflowEnded            nothing waits for this part of a workflow any more
    │   ├── WorkflowExists           another workflow was enqueued under this id
    │   ├── StreamSealed             it has another number of members than this one
    │   ├── NoConsumer               immediate enqueue, and nobody could take the job
    │   ├── NotConfirmed             stored, but too few replicas, or no disk, have it for sure
    │   ├── QueueSharded             jobs and consumers go to its shards, not to it
    │   ├── ShardsMoving             a change of its shards goes on, and has to end first
    │   ├── ShardsChanged            a shard takes jobs by the newest table of shards only
    │   ├── QueueInUse               not deleted: it has jobs, consumers, or feeds from others
    │   ├── QueueEmpty               a simple queue has no value (also a LookupError)
    │   ├── QueueFull                a bounded queue has no room: nothing was stored
    │   ├── BufferFull               background put: the bounded buffer stayed full
    │   └── BufferClosed             background put after close
    ├── ConsumerError
    │   ├── ConsumerRefused          the queue takes no further consumer
    │   ├── NotRegistered            the consumer was never registered, or was closed
    │   └── RegistrationLost         it was, and its right to hold jobs has ended
    │       ├── ConsumerGone         its lease ended, or Redis lost its data
    │       └── StaleTerm            its name was registered again since: fenced off
    ├── CodecError
    │   ├── NotEncodable             an argument or result is not JSON (also a TypeError)
    │   ├── NotKept                  a step's result or loop's position cannot be kept
    │   ├── Undecodable              bytes that are not an envelope, header or record of ours
    │   ├── Unsigned                 a signature is required, and there is none
    │   └── Forged                   a signature that no known key made
    ├── ResultError
    │   ├── ResultNotReady           asked without waiting; the job has not ended
    │   ├── ResultTimeout            waited, and the job has not ended (also a TimeoutError)
    │   ├── ResultExpired            the job is done, its result is no longer kept
    │   ├── JobFailed                the job failed for good; carries the remote traceback
    │   ├── JobCancelled             it was cancelled before it ended
    │   │   ├── ProducerLost         ... since who enqueued its members went away
    │   │   └── JobPurged            ... together with its whole queue
    │   ├── JobExpired               its time to live ended before it ran
    │   ├── JobDisplaced             a newer job took its place before it ran
    │   └── JobMoved                 it was moved to another queue, which it says
    └── TaskError
        ├── UnknownTask              no task of this name is registered here
        ├── TaskAlreadyRegistered    two functions claim one name
        └── BadArguments             the call does not fit the function (also a TypeError)

What a job raises to say "later" or "never" (`Retry`, `Reject`, `Snooze`) is not an error of rqueue:
see `rqueue.tasks.control`. What is raised in a job from outside is no `Exception` at all, so that
no library takes it for a failure of its own: `SoftTimeLimit` here, and `rqueue.Cancelled`.

Errors carry their facts as attributes, and survive pickling (they may cross a process pool). What
they say is fit to be printed: control characters in ids, names and texts of jobs are escaped in the
message, not in the attributes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from rqueue.text.escape import escaped, escaped_lines, shown
from rqueue.text.numbers import many

__all__ = [
    "AuthenticationFailed",
    "BadArguments",
    "BufferClosed",
    "BufferFull",
    "CodecError",
    "CommandRefused",
    "ConfigError",
    "ConnectionLost",
    "ConsumerError",
    "ConsumerGone",
    "ConsumerRefused",
    "DuplicateJob",
    "EmbeddedRedisError",
    "EvictionPolicy",
    "Forged",
    "InvalidName",
    "InvalidSelector",
    "JobBlocked",
    "JobCancelled",
    "JobDisplaced",
    "JobExpired",
    "JobFailed",
    "JobMoved",
    "JobPurged",
    "LifecycleError",
    "NoConsumer",
    "NotConfirmed",
    "NotEncodable",
    "NotKept",
    "NotRegistered",
    "ProducerLost",
    "QueueDamaged",
    "QueueEmpty",
    "QueueError",
    "QueueFull",
    "QueueInUse",
    "QueueSharded",
    "RQueueError",
    "RedisBusy",
    "RedisLoading",
    "RedisOutOfMemory",
    "RedisReadOnly",
    "RedisTimeout",
    "RedisUnavailable",
    "RegistrationLost",
    "ResultError",
    "ResultExpired",
    "ResultNotReady",
    "ResultTimeout",
    "ScriptError",
    "ScriptSourceError",
    "ServerError",
    "ShardsChanged",
    "ShardsMoving",
    "SlotBusy",
    "SoftTimeLimit",
    "StaleTerm",
    "StreamSealed",
    "TaskAlreadyRegistered",
    "TaskError",
    "TransactionRolledBack",
    "Undecodable",
    "UnknownJob",
    "UnknownQueue",
    "UnknownSchedule",
    "UnknownTask",
    "Unsigned",
    "UnusableServer",
    "WorkflowEnded",
    "WorkflowExists",
    "WrongServer",
]


def _rebuild(kind: type[RQueueError], args: tuple[Any, ...], state: dict[str, Any]) -> RQueueError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


class RQueueError(Exception):
    """Base of everything that rqueue raises on purpose."""

    def __init__(self, message: str = "", *, lines: bool = False) -> None:
        message = escaped_lines(message) if lines else escaped(message)
        super().__init__(message)
        self.message = message

    def __str__(self) -> str:
        return self.message

    @classmethod
    def reported(cls, message: str) -> Self:
        """The error as another process reports it: its class and its message. Other facts have
        the defaults of the class, or are not there."""
        error = cls.__new__(cls)
        RQueueError.__init__(error, message, lines=True)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        # The default would call the class with the message alone; most of them take facts instead.
        return _rebuild, (type(self), self.args, self.__dict__.copy())


# -- the server ------------------------------------------------------------------------------------


class ServerError(RQueueError):
    """The Redis server cannot be used. `url` has its credentials removed; "" when not known.

    `outcome_unknown`: the command that failed may have been carried out all the same, because its
    answer was lost: repeat only what may be repeated. False: nothing was changed.
    """

    outcome_unknown = False
    url: str = ""

    def __init__(self, message: str, *, url: str = "") -> None:
        super().__init__(f"{message} ({url})" if url else message)
        self.url = url


class RedisUnavailable(ServerError):
    """The server cannot be used now; waiting and trying again makes sense."""


class ConnectionLost(RedisUnavailable):
    """No connection: refused, reset, closed by the server, or its name was not found."""

    outcome_unknown = True


class RedisTimeout(RedisUnavailable):
    """No answer in time. Whether the command ran is not known: repeat only what may be repeated.

    `waited`: seconds; 0.0 if that is all the time there was. `elsewhere`: another server has the
    place of the one that was asked, or may have it.
    """

    outcome_unknown = True
    waited = 0.0
    elsewhere = False


class RedisLoading(RedisUnavailable):
    """The server is starting and still reads its data (LOADING)."""


class RedisReadOnly(RedisUnavailable):
    """The server is a replica, or refuses writes for now (READONLY, MASTERDOWN, NOREPLICAS,
    MISCONF)."""


class RedisBusy(RedisUnavailable):
    """The server is there and refuses everything for now: a script runs too long (BUSY), or a
    failover is under way. Nothing was done."""


class SlotBusy(RedisBusy):
    """A Redis Cluster moves the queue to another node, or has nobody who serves it now (TRYAGAIN,
    ASK, CLUSTERDOWN). Nothing was done."""


class RedisOutOfMemory(RedisUnavailable):
    """The server's memory limit is reached (OOM); nothing was written."""


class UnusableServer(ServerError):
    """The server cannot be used until it, the URL or the password is changed."""


class AuthenticationFailed(UnusableServer):
    """Wrong or missing password, or a user without the rights that rqueue needs."""


class WrongServer(UnusableServer):
    """What answers is too old (Redis 6.2 is the oldest that works), is no Redis at all, or not one
    that rqueue can work with: a Sentinel, a node of a cluster, no such database."""

    def __init__(self, message: str, *, url: str = "", version: str = "") -> None:
        super().__init__(message, url=url)
        self.version = version


class CommandRefused(UnusableServer):
    """The server refuses a command that rqueue needs, for a reason that has no error of its own."""


class EvictionPolicy(UnusableServer):
    """The server's maxmemory-policy may evict keys, that is: lose jobs."""

    def __init__(self, policy: str, *, url: str = "") -> None:
        super().__init__(
            f"maxmemory-policy is '{policy}': Redis may evict jobs; set it to 'noeviction' "
            "(CONFIG SET maxmemory-policy noeviction; for hosted Redis in the provider's parameter "
            "group or instance settings)",
            url=url,
        )
        self.policy = policy


class ScriptError(RQueueError):
    """A Lua script refused its input: a bug, or data of another version of rqueue.

    `script` is its name, `reply` what it said.
    """

    def __init__(self, script: str, reply: str) -> None:
        super().__init__(f"script '{script}' refused: {reply}")
        self.script = script
        self.reply = reply


class ScriptSourceError(RQueueError):
    """The Lua sources are missing or broken: a fault of the installation, not of a queue."""

    def __init__(self, message: str) -> None:
        super().__init__(message, lines=True)  # the trail of includes


class EmbeddedRedisError(RQueueError):
    """The embedded server cannot be found, started or kept; says what to do."""

    def __init__(self, message: str) -> None:
        super().__init__(message, lines=True)  # the end of the server's log


# -- wrong use -------------------------------------------------------------------------------------


class ConfigError(RQueueError, ValueError):
    """A setting or option is wrong. `setting` names it, `problem` says what to change."""

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.setting = setting
        self.problem = problem


class InvalidSelector(ConfigError):
    """A selector cannot be read. `text` is what was written, `column` where it is wrong, from 1."""

    def __init__(self, text: str, column: int, problem: str) -> None:
        super().__init__("select", f"column {column}: {problem}")
        shown_text = escaped(text)
        if shown_text == text and "\n" not in text and column <= 200:
            self.args = (f"{self.message}\n  {text}\n  {' ' * (column - 1)}^",)
            self.message = self.args[0]
        self.text = text
        self.column = column


class InvalidName(RQueueError, ValueError):
    """A name that cannot be used. `what` says of what: "job id", "queue name", "task name", ..."""

    def __init__(self, what: str, value: object, problem: str) -> None:
        super().__init__(f"{what} {shown(value)} {problem}")
        self.what = what
        self.value = value
        self.problem = problem


class LifecycleError(RQueueError):
    """Used before it was opened, after it was closed, or in the wrong order."""


# -- queues ----------------------------------------------------------------------------------------


class QueueError(RQueueError):
    """A queue cannot do what was asked. `queue` is its name."""

    queue: str = ""

    def __init__(self, message: str, *, queue: str = "") -> None:
        super().__init__(message)
        self.queue = queue


class UnknownQueue(QueueError):
    """There is no queue of this name: nothing was ever enqueued or configured in it. `remedy` says
    what to do, "" where that is to look for another name."""

    remedy: str = ""

    def __init__(self, queue: str, remedy: str = "") -> None:
        said = f"there is no queue '{queue}'"
        super().__init__(f"{said}: {remedy}" if remedy else said, queue=queue)
        self.remedy = remedy


class QueueSharded(QueueError):
    """The queue is spread over shards: they have its jobs and its consumers."""

    def __init__(self, queue: str) -> None:
        super().__init__(
            f"queue '{queue}' is spread over shards ('{queue}~0', ...): what is done with one queue"
            f" alone is done there, and with all of them by ShardedQueue('{queue}')",
            queue=queue,
        )


class ShardsMoving(QueueError):
    """The shards of a queue cannot change: an earlier change goes on. `moving`: which one."""

    def __init__(self, queue: str, moving: str) -> None:
        super().__init__(
            f"the shards of queue '{queue}' are changing ({moving}): jobs of keys that move wait"
            " until what was enqueued before has ended",
            queue=queue,
        )
        self.moving = moving


class ShardsChanged(QueueError):
    """A shard refused an enqueue, which has stored nothing: it was not made by the table of shards
    that the shard knows. `known`: the version that it knows, 0 = none; `named`: that of the
    enqueue, 0 = none. `of`: the queue that is spread, "" where the shard does not know it yet."""

    def __init__(self, queue: str, known: int, named: int, of: str) -> None:
        super().__init__(
            f"'{queue}' is a shard of queue '{of}', which says where a job goes: enqueue it there"
            if not named
            else f"shard '{queue}' goes by version {known} of its table, not by version {named}",
            queue=queue,
        )
        self.known = known
        self.named = named
        self.of = of

    @classmethod
    def said(cls, queue: str, said: str) -> ShardsChanged:
        """The error for what the shard says: see `lua/policies/shard.lua`."""
        known, _, rest = said.partition(" ")
        named, _, of = rest.partition(" ")
        return cls(queue, int(known), 0 if named == "-" else int(named), of)


class UnknownSchedule(QueueError):
    """There is no periodic job of this name in the queue."""

    def __init__(self, schedule: str, queue: str) -> None:
        super().__init__(f"queue '{queue}' has no schedule {schedule!r}", queue=queue)
        self.schedule = schedule


class UnknownJob(QueueError):
    """No job of this id: it was never accepted, or it ended and its record is gone."""

    def __init__(self, id: str, *, queue: str = "") -> None:
        where = f" in queue '{queue}'" if queue else ""
        super().__init__(
            f"no job '{id}'{where}: never accepted, or ended and its record is gone", queue=queue
        )
        self.id = id


class JobBlocked(QueueError):
    """A job cannot be moved before others of its group: it waits behind the job `first`."""

    def __init__(self, id: str, first: str, *, queue: str = "") -> None:
        super().__init__(
            f"job '{id}' waits behind others of its group, of which '{first}' is the first one:"
            " move that one",
            queue=queue,
        )
        self.id = id
        self.first = first


class TransactionRolledBack(QueueError):
    """Nothing of a transaction was done: the consumer does not hold jobs that it was to settle any
    more, `stale`, so that others may have their work."""

    def __init__(self, stale: tuple[str, ...], *, queue: str = "") -> None:
        shown = ", ".join(stale[:3]) + (", ..." if len(stale) > 3 else "")
        super().__init__(
            f"nothing was enqueued or settled: this consumer does not hold {shown} any more",
            queue=queue,
        )
        self.stale = stale


class QueueDamaged(QueueError):
    """A key of the queue is not what rqueue keeps there: something else wrote it. It stays so until
    the queue is repaired (`rqueue doctor --repair`).

    `key` names it ("" where it was not found again), `found` and `expected` say what is there and
    what belongs there (types as Redis's TYPE says them; "" where it is a value that is wrong),
    `problem` what is wrong, in words. Nothing was changed.
    """

    def __init__(
        self,
        queue: str,
        key: str = "",
        found: str = "",
        expected: str = "",
        *,
        problem: str = "",
    ) -> None:
        if found:
            problem = f"the key {key} is a {found}, where rqueue keeps a {expected}"
        super().__init__(
            f"queue '{queue}' is damaged: {problem}; nothing was changed. Something that is not"
            f" rqueue wrote it: 'rqueue doctor {queue} --repair' moves the key away and mends the"
            " queue",
            queue=queue,
        )
        self.key = key
        self.found = found
        self.expected = expected
        self.problem = problem


class NoConsumer(QueueError):
    """An immediate enqueue found no consumer that could take the job; nothing was stored."""

    def __init__(self, queue: str, id: str = "") -> None:
        super().__init__(
            f"no consumer of queue '{queue}' could take the job at once; nothing was stored",
            queue=queue,
        )
        self.id = id


class NotConfirmed(QueueError):
    """Jobs are stored, and what was to confirm that did not do so in time: they may be lost with
    the primary. The same jobs under the same ids again store nothing twice, and are waited for
    anew.

    ids: of these jobs. replicas: how many confirmed them, of `wanted`. fsync: whether they were to
    be on disk; on_disk: whether they are on the primary's. within_ms: how long that was waited for.
    reason: what the server said where it gave no answer.
    """

    def __init__(
        self,
        queue: str,
        ids: tuple[str, ...],
        *,
        replicas: int,
        wanted: int,
        fsync: bool = False,
        on_disk: bool = False,
        within_ms: int = 0,
        reason: str = "",
    ) -> None:
        one = len(ids) == 1
        what = f"job '{ids[0]}' is" if one else f"{many(len(ids), 'job')} are"
        it, again = ("it", "the same id") if one else ("them", "the same ids")
        missing = []
        if reason:
            missing.append(f"the server does not confirm that: {reason}")
        elif fsync and not on_disk:
            missing.append(f"the primary did not write {it} to disk")
        if not reason and replicas < wanted:
            has = "confirmed that it is on disk" if fsync and one else "confirmed that"
            missing.append(f"{replicas} of {wanted} replicas {has}")
        after = "" if reason else f" within {within_ms} ms"
        super().__init__(
            f"{what} stored in queue '{queue}', but {' and '.join(missing)}{after}; to enqueue "
            f"{it} again under {again} is safe",
            queue=queue,
        )
        self.ids = ids
        self.replicas = replicas
        self.wanted = wanted
        self.fsync = fsync
        self.on_disk = on_disk
        self.within_ms = within_ms
        self.reason = reason


class DuplicateJob(QueueError):
    """Another job has the key of a unique job that was to be refused then; nothing was stored, of
    a batch or a transaction none. `queue`; `id`: of the other job; `state`: of that ("done" where
    its period is not over); `index`: the refused job's place in the call."""

    def __init__(self, queue: str, id: str, state: str, index: int = 0) -> None:
        super().__init__(
            f"queue '{queue}' has such a job already, which is {state}: '{id}'; nothing was stored"
        )
        self.queue = queue
        self.id = id
        self.state = state
        self.index = index


class WorkflowEnded(QueueError):
    """The job that this part of a workflow counts for waits no more: it was cancelled, another part
    has failed, or it was never enqueued. `id`: of that job. What this call stored is cancelled."""

    def __init__(self, queue: str, id: str) -> None:
        super().__init__(f"queue '{queue}': job '{id}' waits for no more parts; nothing was stored")
        self.queue = queue
        self.id = id


class WorkflowExists(QueueError):
    """A workflow of other jobs was enqueued under this id before. `id`: the workflow's. Nothing was
    stored, and the earlier one goes on."""

    def __init__(self, queue: str, id: str) -> None:
        super().__init__(
            f"workflow '{id}' is in queue '{queue}' already, with other jobs; nothing was stored,"
            " and the earlier one goes on. Cancel that one first, or take another id"
        )
        self.queue = queue
        self.id = id


class StreamSealed(QueueError):
    """The stream under this id has another number of members than the one that was enqueued: it is
    another one. `id`: of the job that waits for them; `total`: how many that has, `said`: how many
    this one had."""

    def __init__(self, queue: str, id: str, *, total: int, said: int) -> None:
        super().__init__(
            f"queue '{queue}': stream '{id}' has {total:,} members, and not {said:,}: another one"
            " was enqueued under its id"
        )
        self.queue = queue
        self.id = id
        self.total = total
        self.said = said


class QueueInUse(QueueError):
    """The queue was not deleted: it has jobs, or consumers, or is where another queue's dead
    letters go. `what` says which."""

    def __init__(self, queue: str, what: str) -> None:
        super().__init__(f"queue '{queue}' is not deleted: it has {what}", queue=queue)
        self.what = what


class QueueEmpty(QueueError, LookupError):
    """There is no item to return."""

    def __init__(self, queue: str) -> None:
        super().__init__(f"queue '{queue}' has no item", queue=queue)


class QueueFull(QueueError):
    """A bounded queue has no room for the jobs of a call: none of them was stored (Q-67).

    limit: jobs that may wait there, 0 = any number. waiting: that do, and `granted`: for how many
    more room is kept for producers that waited. jobs: of the call. limit_bytes, waiting_bytes,
    granted_bytes, `size`: the same in bytes of envelopes. waits: whether producers wait for room in
    this queue; `waited`: for how many seconds this one did.
    """

    def __init__(
        self,
        queue: str,
        limit: int,
        waiting: int,
        *,
        granted: int = 0,
        jobs: int = 1,
        waits: bool = False,
        waited: float = 0.0,
        limit_bytes: int = 0,
        waiting_bytes: int = 0,
        granted_bytes: int = 0,
        size: int = 0,
    ) -> None:
        self.limit = limit
        self.waiting = waiting
        self.granted = granted
        self.jobs = jobs
        self.waits = waits
        self.waited = waited
        self.limit_bytes = limit_bytes
        self.waiting_bytes = waiting_bytes
        self.granted_bytes = granted_bytes
        self.size = size
        super().__init__(f"{self._says(queue)}; nothing was stored", queue=queue)

    def _says(self, queue: str) -> str:
        name, call = f"queue '{queue}'", many(self.jobs, "job")
        if self.limit_bytes:
            call += f" of {self.size:,} bytes"
        if self.never:
            most = (
                f"{self.limit:,}" if 0 < self.limit < self.jobs else f"{self.limit_bytes:,} bytes"
            )
            once = " at once never fit" if self.jobs > 1 else " never fits"
            return f"{call}{once} into {name}, which takes {most}"
        full = f"{self.waiting:,} of at most {self.limit:,} jobs" if self.limit else ""
        if self.limit_bytes:
            full += " and " * bool(full)
            full += f"{self.waiting_bytes:,} of at most {self.limit_bytes:,} bytes"
        kept = f"{self.granted:,} more" if self.granted else ""
        if self.limit_bytes and self.granted_bytes:
            kept = f"{self.granted_bytes:,} bytes more"
        kept = f", and room for {kept} is kept for others" if kept else ""
        after = f" after {self.waited:.3g} s" if self.waited else ""
        return f"{name} is full{after}: {full}{kept}; {call} did not fit"

    @property
    def never(self) -> bool:
        """Whether the call has more jobs, or bytes, than the queue ever takes."""
        return 0 < self.limit < self.jobs or 0 < self.limit_bytes < self.size

    @property
    def room(self) -> int:
        """How many jobs of the call fit now, the first ones; where bytes count that is an estimate,
        at least 1 of several."""
        free = max(0, self.limit - self.waiting - self.granted) if self.limit else self.jobs
        if self.limit_bytes and self.size:
            bytes_free = max(0, self.limit_bytes - self.waiting_bytes - self.granted_bytes)
            fit = self.jobs * bytes_free // self.size
            free = min(free, max(fit, int(self.jobs > 1)))
        return free

    def after(self, waited: float) -> QueueFull:
        """The same error for a producer that waited for so many seconds."""
        return QueueFull(
            self.queue,
            self.limit,
            self.waiting,
            granted=self.granted,
            jobs=self.jobs,
            waits=self.waits,
            waited=waited,
            limit_bytes=self.limit_bytes,
            waiting_bytes=self.waiting_bytes,
            granted_bytes=self.granted_bytes,
            size=self.size,
        )


class BufferFull(QueueError):
    """The bounded buffer of background puts stayed full for `timeout` seconds (C-10)."""

    def __init__(self, queue: str, limit: int, timeout: float) -> None:
        size = many(limit, "job")
        super().__init__(
            f"the put buffer of queue '{queue}' ({size}) stayed full for {timeout:g} s",
            queue=queue,
        )
        self.limit = limit
        self.timeout = timeout


class BufferClosed(QueueError):
    """A background put came after close; the job was not taken."""

    def __init__(self, queue: str) -> None:
        super().__init__(f"the put buffer of queue '{queue}' is closed", queue=queue)


# -- consumers -------------------------------------------------------------------------------------


class ConsumerError(RQueueError):
    """Something about one consumer. `consumer` and `queue` name it."""

    def __init__(self, message: str, *, consumer: str = "", queue: str = "") -> None:
        super().__init__(message)
        self.consumer = consumer
        self.queue = queue


class ConsumerRefused(ConsumerError):
    """The queue has as many consumers as it takes (`max_consumers`, `strict`)."""


class NotRegistered(ConsumerError):
    """The consumer was not registered yet, or was closed."""

    def __init__(self, consumer: str, *, queue: str = "") -> None:
        super().__init__(
            f"consumer '{consumer}' is not registered: use it in a 'with' block ('async with' in"
            " asyncio), or call register() before and close() behind",
            consumer=consumer,
            queue=queue,
        )


class RegistrationLost(ConsumerError):
    """The consumer's right to hold jobs has ended; what it asked for changed nothing."""

    def __init__(
        self,
        consumer: str,
        *,
        queue: str = "",
        term: int = 0,
        problem: str = "lost its registration",
    ) -> None:
        super().__init__(f"consumer '{consumer}' {problem}", consumer=consumer, queue=queue)
        self.term = term


class ConsumerGone(RegistrationLost):
    """The lease of the consumer ended, and what it held was released; or Redis has lost its data,
    and what it held with it."""

    def __init__(self, consumer: str, *, queue: str = "", term: int = 0) -> None:
        said = f" (term {term})" if term else ""
        super().__init__(
            consumer,
            queue=queue,
            term=term,
            problem=f"is no longer registered{said}: its lease ended, or Redis lost its data",
        )


class StaleTerm(RegistrationLost):
    """The consumer's name was registered again: `term` was sent, `current` rules now."""

    def __init__(self, consumer: str, *, queue: str = "", term: int = 0, current: int = 0) -> None:
        super().__init__(
            consumer,
            queue=queue,
            term=term,
            problem=f"spoke for term {term}, but term {current} holds the name now",
        )
        self.current = current


# -- codec -----------------------------------------------------------------------------------------


class CodecError(RQueueError):
    """Bytes or values that do not fit the wire format."""


class NotEncodable(CodecError, TypeError):
    """A value has no JSON form, or is too large. `argument` names it with the path to it ("" for
    `what` as a whole: the "result" or all "arguments"), `problem` says why."""

    def __init__(self, argument: str, task: str, problem: str, *, what: str = "result") -> None:
        where = f" of task '{escaped(task)}'" if task else ""
        subject = f"argument '{escaped(argument)}'" if argument else what
        super().__init__(f"{subject}{where}: {problem}")
        self.argument = argument
        self.task = task
        self.problem = problem


class NotKept(CodecError):
    """A step's result or a loop's position that can never be kept with its job. The job is not
    tried again: each attempt would repeat the effect. `task`, `problem`."""

    def __init__(self, task: str, problem: str) -> None:
        super().__init__(f"a step or loop of task '{escaped(task)}' cannot be kept: {problem}")
        self.task = task
        self.problem = problem


class Undecodable(CodecError):
    """Bytes that are not an envelope, header or record of ours. `raw` holds their beginning."""

    def __init__(self, problem: str, raw: bytes = b"") -> None:
        head = bytes(raw[:40])
        super().__init__(f"{problem}: {head!r}" if raw else problem)
        self.problem = problem
        self.raw = head


class Unsigned(CodecError):
    """A signature is required, and the job has none. `reason`: the message without the id."""

    def __init__(self, id: str = "") -> None:
        self.reason = "it is not signed, and this worker runs signed jobs only"
        super().__init__(f"job '{id}': {self.reason}")
        self.id = id


class Forged(CodecError):
    """The signature was not made by a known key for this job in this queue. `reason`: the message
    without the id."""

    def __init__(self, id: str, problem: str, key_id: str = "") -> None:
        self.reason = f"its signature does not hold: {problem}"
        super().__init__(f"job '{id}': {self.reason}")
        self.id = id
        self.problem = problem
        self.key_id = key_id


# -- results ---------------------------------------------------------------------------------------


class ResultError(RQueueError):
    """There is no result to return. `id` is the job's."""

    def __init__(self, message: str, *, id: str = "", lines: bool = False) -> None:
        super().__init__(message, lines=lines)
        self.id = id


class ResultNotReady(ResultError):
    """The job has not ended. `state` is what it is in: "ready", "scheduled", "parked", "held", ...;
    `reason` says what keeps it from being run, if anything but its turn does."""

    def __init__(self, id: str, state: str, reason: str = "") -> None:
        why = f": {reason}" if reason else ""
        super().__init__(f"job '{id}' has not ended: it is {state}{why}", id=id)
        self.state = state
        self.reason = reason


class ResultTimeout(ResultError, TimeoutError):
    """The job did not end within `timeout` seconds; `state` and `reason` as of `ResultNotReady`.

    `url`: of the server that was asked, without credentials; "" when not known.
    """

    def __init__(
        self, id: str, timeout: float, state: str, reason: str = "", *, url: str = ""
    ) -> None:
        why = f": {reason}" if reason else ""
        where = f" ({url})" if url else ""
        said = f"job '{id}' did not end within {timeout:g} s: it is {state}{why}{where}"
        super().__init__(said, id=id)
        self.url = url
        self.timeout = timeout
        self.state = state
        self.reason = reason


class ResultExpired(ResultError):
    """The job is done, but its result is no longer kept."""

    def __init__(self, id: str) -> None:
        super().__init__(f"job '{id}' is done, but its result is no longer kept", id=id)


class JobFailed(ResultError):
    """The job failed for good: what it raised, where, and after how many attempts.

    `type` is the remote exception's dotted name, `remote_message` its text, `remote_traceback`
    what was printed there, `kind` one of exception, crash, time_limit, forged, undecodable,
    rejected. `why`: "exhausted", its attempts were spent, or "gave up".
    """

    def __init__(
        self,
        id: str,
        *,
        type: str,
        remote_message: str = "",
        remote_traceback: str = "",
        attempts: int = 0,
        kind: str = "exception",
        worker: str = "",
        why: str = "",
    ) -> None:
        tries = f" after {many(attempts, 'attempt')}" if attempts else ""
        name = escaped(type)
        what = f"{name}: {remote_message}" if remote_message else name
        text = f"job '{escaped(id)}' failed{tries}: {what}"
        if remote_traceback:
            text += "\n\nin the worker:\n" + remote_traceback.rstrip("\n")
        super().__init__(text, id=id, lines=True)
        self.type = type
        self.remote_message = remote_message
        self.remote_traceback = remote_traceback
        self.attempts = attempts
        self.kind = kind
        self.worker = worker
        self.why = why


class JobCancelled(ResultError):
    """The job was cancelled before it ended."""

    def __init__(self, id: str, *, reason: str = "was cancelled") -> None:
        super().__init__(f"job '{id}' {reason}", id=id)


class ProducerLost(JobCancelled):
    """The job waited for a stream of others, and who enqueued them went away before their end:
    it was cancelled. Those that were enqueued run."""


class JobPurged(JobCancelled):
    """The job was removed together with its queue's waiting or dead jobs."""

    def __init__(self, id: str) -> None:
        super().__init__(id, reason="was purged from its queue")


class JobExpired(ResultError):
    """The job's time to live ended before it was delivered, for the first time or once more."""

    def __init__(self, id: str) -> None:
        super().__init__(
            f"job '{id}' expired: its time to live ended before it was delivered", id=id
        )


class JobDisplaced(ResultError):
    """A newer job took the place of this one before it was delivered, for the first time or once
    more: of its key (Q-15), or in a queue that keeps a number of jobs (Q-67)."""

    def __init__(self, id: str) -> None:
        super().__init__(f"job '{id}' was displaced: a newer job took its place", id=id)


class JobMoved(ResultError):
    """People moved the job to the queue `to` (Q-69): `Queue(to).job(id)` is its handle."""

    def __init__(self, id: str, *, to: str) -> None:
        super().__init__(f"job '{id}' was moved to queue '{to}': ask there", id=id)
        self.to = to


# -- tasks -----------------------------------------------------------------------------------------


class TaskError(RQueueError):
    """Something about one task. `task` is its name."""

    def __init__(self, message: str, *, task: str = "") -> None:
        super().__init__(message)
        self.task = task


class UnknownTask(TaskError):
    """No task of this name is registered in this process; names the nearest ones that are."""

    def __init__(self, task: str, similar: Iterable[str] = ()) -> None:
        self.similar = tuple(similar)
        hint = f"; did you mean {' or '.join(map(repr, self.similar))}?" if self.similar else ""
        if not hint and ".<locals>." in task:
            outer = task.rpartition(".<locals>.")[0]
            hint = f": it is made inside of '{outer}', which was not called here"
        super().__init__(f"no task '{task}' is registered here{hint}", task=task)


class TaskAlreadyRegistered(TaskError):
    """Two functions claim one name; `first` and `second` say where they are defined."""

    def __init__(self, task: str, first: str, second: str) -> None:
        places = f"{first} and {second}"
        if first == second:
            places = f"{first} made both, with other values in its closure or defaults"
        super().__init__(
            f"two tasks are named '{task}': {places}; give each a name= of its own",
            task=task,
        )
        self.first = first
        self.second = second


class BadArguments(TaskError, TypeError):
    """The arguments do not fit the task's function. `signature` is what would."""

    def __init__(self, task: str, problem: str, signature: str) -> None:
        super().__init__(f"{problem}: task '{task}' takes {signature}", task=task)
        self.problem = problem
        self.signature = signature


class SoftTimeLimit(BaseException):
    """Raised inside a running job when its soft limit of `seconds` is reached.

    A BaseException: `except Exception`, `except TimeoutError` and `except OSError` let it pass. The
    job may catch it by its name to tidy up. A job that goes on is struck again after as long again,
    at least a second, unless it is in the `except` or `finally` yet; the hard limit still stands.
    """

    def __init__(self, task: str, seconds: float) -> None:
        super().__init__(f"task '{task}' reached its soft limit of {seconds:g} s")
        self.task = task
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return SoftTimeLimit, (self.task, self.seconds), vars(self)
