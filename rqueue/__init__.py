"""rqueue: a worker queue for Python on Redis.

::

    from rqueue import task

    @task
    def add(a: int, b: int) -> int:
        return a + b

    add.enqueue(1, 2).result(timeout=10)

What is not a plain declaration is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rqueue.errors import (
    BufferClosed,
    BufferFull,
    ConfigError,
    DuplicateJob,
    InvalidName,
    JobBlocked,
    JobCancelled,
    JobDisplaced,
    JobExpired,
    JobFailed,
    JobMoved,
    NoConsumer,
    NotConfirmed,
    NotEncodable,
    NotKept,
    ProducerLost,
    QueueFull,
    RedisUnavailable,
    ResultError,
    ResultExpired,
    ResultNotReady,
    ResultTimeout,
    RQueueError,
    ServerError,
    SoftTimeLimit,
    TransactionRolledBack,
    UnknownJob,
    UnknownSchedule,
)
from rqueue.model.cancellation import Cancellation
from rqueue.model.job import Delivery, JobState, Outcome
from rqueue.model.job_info import JobInfo
from rqueue.model.job_limit import JobLimit
from rqueue.model.parents import Failure
from rqueue.model.progress import JobUpdate, Progress
from rqueue.model.tick import Tick
from rqueue.settings import Settings
from rqueue.tasks.app import App
from rqueue.tasks.context import JobContext, current_job
from rqueue.tasks.control import Cancelled, Refuse, Reject, Retry, Snooze
from rqueue.tasks.decorator import task
from rqueue.tasks.depends import Depends
from rqueue.tasks.enqueuer import DEFAULTS as _DEFAULTS
from rqueue.tasks.enqueuer import AsyncEnqueuer as _AsyncEnqueuer
from rqueue.tasks.enqueuer import Enqueuer as _Enqueuer
from rqueue.tasks.enqueuer import MadeEnqueuers as _MadeEnqueuers
from rqueue.tasks.limits import Concurrency, Rate
from rqueue.tasks.middleware import Middleware, WorkerInfo
from rqueue.tasks.options import Options
from rqueue.tasks.other_words import MODULE_WORDS as _MODULE_WORDS
from rqueue.tasks.registry import Registry, registry
from rqueue.tasks.request import JobRequest
from rqueue.tasks.retry import RetryPolicy
from rqueue.tasks.schedule import Schedule
from rqueue.tasks.shares import Share
from rqueue.tasks.stream import stream
from rqueue.tasks.task import Task
from rqueue.tasks.unique import Debounce, Throttle, Unique
from rqueue.tasks.workflow import Signature, chain, chord, group

if TYPE_CHECKING:
    from rqueue.client._async.consumer import AsyncConsumer
    from rqueue.client._async.job_handle import AsyncJobHandle
    from rqueue.client._async.put_handle import AsyncPutHandle
    from rqueue.client._async.putter import AsyncBackgroundPuts
    from rqueue.client._async.queue import AsyncQueue
    from rqueue.client._async.sharded_queue import AsyncShardedQueue
    from rqueue.client._async.simple_queue import AsyncSimpleQueue
    from rqueue.client._async.transaction import AsyncTransaction
    from rqueue.client._async.workflows import AsyncWorkflowHandle
    from rqueue.client._sync.consumer import Consumer
    from rqueue.client._sync.job_handle import JobHandle
    from rqueue.client._sync.put_handle import PutHandle
    from rqueue.client._sync.putter import BackgroundPuts
    from rqueue.client._sync.queue import Queue
    from rqueue.client._sync.sharded_queue import ShardedQueue
    from rqueue.client._sync.simple_queue import SimpleQueue
    from rqueue.client._sync.transaction import Transaction
    from rqueue.client._sync.workflows import WorkflowHandle
    from rqueue.client.default_queues import (
        adisconnect,
        aqueue,
        configure,
        connect,
        disconnect,
        queue,
    )
    from rqueue.inspector import Inspector
    from rqueue.model.connection_state import ConnectionState
    from rqueue.model.envelope import Envelope
    from rqueue.model.job_filter import JobFilter
    from rqueue.protocol.commands import Put, Retried, Window
    from rqueue.protocol.credit import UNLIMITED, GrantCredit, SharedCredit, WindowCredit
    from rqueue.protocol.job_packer import Call
    from rqueue.protocol.wake import Wake
    from rqueue.tasks.worker_connection import worker_connection

__version__ = "0.1.0"

__all__ = [
    "UNLIMITED",
    "App",
    "AsyncBackgroundPuts",
    "AsyncConsumer",
    "AsyncJobHandle",
    "AsyncPutHandle",
    "AsyncQueue",
    "AsyncShardedQueue",
    "AsyncSimpleQueue",
    "AsyncTransaction",
    "AsyncWorkflowHandle",
    "BackgroundPuts",
    "BufferClosed",
    "BufferFull",
    "Call",
    "Cancellation",
    "Cancelled",
    "Concurrency",
    "ConfigError",
    "ConnectionState",
    "Consumer",
    "Debounce",
    "Delivery",
    "Depends",
    "DuplicateJob",
    "Envelope",
    "Failure",
    "GrantCredit",
    "Inspector",
    "InvalidName",
    "JobBlocked",
    "JobCancelled",
    "JobContext",
    "JobDisplaced",
    "JobExpired",
    "JobFailed",
    "JobFilter",
    "JobHandle",
    "JobInfo",
    "JobLimit",
    "JobMoved",
    "JobRequest",
    "JobState",
    "JobUpdate",
    "Middleware",
    "NoConsumer",
    "NotConfirmed",
    "NotEncodable",
    "NotKept",
    "Options",
    "Outcome",
    "ProducerLost",
    "Progress",
    "Put",
    "PutHandle",
    "Queue",
    "QueueFull",
    "RQueueError",
    "Rate",
    "RedisUnavailable",
    "Refuse",
    "Registry",
    "Reject",
    "ResultError",
    "ResultExpired",
    "ResultNotReady",
    "ResultTimeout",
    "Retried",
    "Retry",
    "RetryPolicy",
    "Schedule",
    "ServerError",
    "Settings",
    "ShardedQueue",
    "Share",
    "SharedCredit",
    "Signature",
    "SimpleQueue",
    "Snooze",
    "SoftTimeLimit",
    "Task",
    "Throttle",
    "Tick",
    "Transaction",
    "TransactionRolledBack",
    "Unique",
    "UnknownJob",
    "UnknownSchedule",
    "Wake",
    "Window",
    "WindowCredit",
    "WorkerInfo",
    "WorkflowHandle",
    "__version__",
    "adisconnect",
    "aqueue",
    "chain",
    "chord",
    "configure",
    "connect",
    "current_job",
    "disconnect",
    "group",
    "queue",
    "registry",
    "stream",
    "task",
    "worker_connection",
]

_LAZY = {
    "AsyncBackgroundPuts": "rqueue.client._async.putter",
    "AsyncConsumer": "rqueue.client._async.consumer",
    "AsyncJobHandle": "rqueue.client._async.job_handle",
    "AsyncPutHandle": "rqueue.client._async.put_handle",
    "AsyncQueue": "rqueue.client._async.queue",
    "AsyncShardedQueue": "rqueue.client._async.sharded_queue",
    "AsyncSimpleQueue": "rqueue.client._async.simple_queue",
    "AsyncTransaction": "rqueue.client._async.transaction",
    "AsyncWorkflowHandle": "rqueue.client._async.workflows",
    "BackgroundPuts": "rqueue.client._sync.putter",
    "Call": "rqueue.protocol.job_packer",
    "ConnectionState": "rqueue.model.connection_state",
    "Consumer": "rqueue.client._sync.consumer",
    "Envelope": "rqueue.model.envelope",
    "GrantCredit": "rqueue.protocol.credit",
    "Inspector": "rqueue.inspector",
    "JobFilter": "rqueue.model.job_filter",
    "JobHandle": "rqueue.client._sync.job_handle",
    "Put": "rqueue.protocol.commands",
    "PutHandle": "rqueue.client._sync.put_handle",
    "Queue": "rqueue.client._sync.queue",
    "Retried": "rqueue.protocol.commands",
    "SharedCredit": "rqueue.protocol.credit",
    "ShardedQueue": "rqueue.client._sync.sharded_queue",
    "SimpleQueue": "rqueue.client._sync.simple_queue",
    "Transaction": "rqueue.client._sync.transaction",
    "UNLIMITED": "rqueue.protocol.credit",
    "Wake": "rqueue.protocol.wake",
    "Window": "rqueue.protocol.commands",
    "WorkflowHandle": "rqueue.client._sync.workflows",
    "WindowCredit": "rqueue.protocol.credit",
    "adisconnect": "rqueue.client.default_queues",
    "aqueue": "rqueue.client.default_queues",
    "configure": "rqueue.client.default_queues",
    "connect": "rqueue.client.default_queues",
    "disconnect": "rqueue.client.default_queues",
    "queue": "rqueue.client.default_queues",
    "worker_connection": "rqueue.tasks.worker_connection",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        if name in _MODULE_WORDS:  # `from rqueue import` would put another error in place of ours
            raise ImportError(f"rqueue has no {name!r}; here it is {_MODULE_WORDS[name]}")
        raise AttributeError(f"module 'rqueue' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return list(__all__)


def _default_queue(name: str) -> _Enqueuer:
    from rqueue.client.default_queues import QUEUES

    _DEFAULTS.enqueuers = QUEUES  # from now on without this step
    return QUEUES[name]


def _default_async_queue(name: str) -> _AsyncEnqueuer:
    from rqueue.client.default_queues import aqueue

    return aqueue(name)


_DEFAULTS.enqueuers = _MadeEnqueuers(_default_queue)
_DEFAULTS.async_enqueuer = _default_async_queue
