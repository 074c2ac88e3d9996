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

from rqueue import sender as _sender
from rqueue.context import JobContext, current_job
from rqueue.control import Reject, Retry, Snooze
from rqueue.errors import (
    BufferClosed,
    BufferFull,
    ConfigError,
    InvalidName,
    JobCancelled,
    JobExpired,
    JobFailed,
    NoConsumer,
    NotEncodable,
    RedisUnavailable,
    ResultError,
    ResultExpired,
    ResultNotReady,
    ResultTimeout,
    RQueueError,
    ServerError,
    SoftTimeLimit,
    UnknownJob,
)
from rqueue.job import Delivery, JobInfo, JobState, Outcome
from rqueue.options import Options
from rqueue.retry import RetryPolicy
from rqueue.settings import Settings
from rqueue.task import Registry, Task, task

if TYPE_CHECKING:
    from rqueue.aclient import AsyncQueue
    from rqueue.aconsumer import AsyncConsumer
    from rqueue.ahandle import AsyncJobHandle
    from rqueue.aputs import AsyncBackgroundPuts
    from rqueue.client import Queue
    from rqueue.codec import Envelope
    from rqueue.consumer import Consumer
    from rqueue.credit import UNLIMITED, GrantCredit, SharedCredit, WindowCredit
    from rqueue.defaults import aqueue, configure, connect, disconnect, queue
    from rqueue.handle import JobHandle
    from rqueue.inspector import Inspector
    from rqueue.listener import Wake
    from rqueue.packing import Call
    from rqueue.put_handle import AsyncPutHandle, PutHandle
    from rqueue.puts import BackgroundPuts
    from rqueue.sender import AsyncHandle, Handle
    from rqueue.store import Put, Retried, Window

__version__ = "0.1.0"

__all__ = [
    "UNLIMITED",
    "AsyncBackgroundPuts",
    "AsyncConsumer",
    "AsyncHandle",
    "AsyncJobHandle",
    "AsyncPutHandle",
    "AsyncQueue",
    "BackgroundPuts",
    "BufferClosed",
    "BufferFull",
    "Call",
    "ConfigError",
    "Consumer",
    "Delivery",
    "Envelope",
    "GrantCredit",
    "Handle",
    "Inspector",
    "InvalidName",
    "JobCancelled",
    "JobContext",
    "JobExpired",
    "JobFailed",
    "JobHandle",
    "JobInfo",
    "JobState",
    "NoConsumer",
    "NotEncodable",
    "Options",
    "Outcome",
    "Put",
    "PutHandle",
    "Queue",
    "RQueueError",
    "RedisUnavailable",
    "Registry",
    "Reject",
    "ResultError",
    "ResultExpired",
    "ResultNotReady",
    "ResultTimeout",
    "Retried",
    "Retry",
    "RetryPolicy",
    "ServerError",
    "Settings",
    "SharedCredit",
    "Snooze",
    "SoftTimeLimit",
    "Task",
    "UnknownJob",
    "Wake",
    "Window",
    "WindowCredit",
    "__version__",
    "aqueue",
    "configure",
    "connect",
    "current_job",
    "disconnect",
    "queue",
    "task",
]

_LAZY = {
    "AsyncBackgroundPuts": "rqueue.aputs",
    "AsyncConsumer": "rqueue.aconsumer",
    "AsyncHandle": "rqueue.sender",
    "AsyncJobHandle": "rqueue.ahandle",
    "AsyncPutHandle": "rqueue.put_handle",
    "AsyncQueue": "rqueue.aclient",
    "BackgroundPuts": "rqueue.puts",
    "Call": "rqueue.packing",
    "Consumer": "rqueue.consumer",
    "Envelope": "rqueue.codec",
    "GrantCredit": "rqueue.credit",
    "Handle": "rqueue.sender",
    "Inspector": "rqueue.inspector",
    "JobHandle": "rqueue.handle",
    "Put": "rqueue.store",
    "PutHandle": "rqueue.put_handle",
    "Queue": "rqueue.client",
    "Retried": "rqueue.store",
    "SharedCredit": "rqueue.credit",
    "UNLIMITED": "rqueue.credit",
    "Wake": "rqueue.listener",
    "Window": "rqueue.store",
    "WindowCredit": "rqueue.credit",
    "aqueue": "rqueue.defaults",
    "configure": "rqueue.defaults",
    "connect": "rqueue.defaults",
    "disconnect": "rqueue.defaults",
    "queue": "rqueue.defaults",
}


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'rqueue' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _default_sender() -> _sender.Sender:
    from rqueue.defaults import SENDER

    return SENDER


def _default_async_sender() -> _sender.AsyncSender:
    from rqueue.defaults import ASYNC_SENDER

    return ASYNC_SENDER


_sender.set_default_sender(_default_sender)
_sender.set_default_async_sender(_default_async_sender)
