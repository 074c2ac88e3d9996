"""What `from rqueue import ...` offers: changed on purpose only."""

import importlib
import inspect
import subprocess
import sys

import pytest

import rqueue

PUBLIC = [
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
    "Registry",
    "Refuse",
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
    "ShardedQueue",
    "Settings",
    "Share",
    "SharedCredit",
    "Signature",
    "SimpleQueue",
    "Snooze",
    "SoftTimeLimit",
    "Task",
    "Transaction",
    "Throttle",
    "Tick",
    "TransactionRolledBack",
    "Unique",
    "Concurrency",
    "JobLimit",
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


def test_the_public_names_are_these() -> None:
    assert sorted(rqueue.__all__) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_explained(name: str) -> None:
    value = getattr(rqueue, name)
    if inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value), f"{name} has no docstring"


def test_lazy_names_are_what_their_modules_hold() -> None:
    for name, module in rqueue._LAZY.items():
        assert getattr(rqueue, name) is getattr(importlib.import_module(module), name)


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Quue'"):
        rqueue.Quue  # type: ignore[attr-defined]  # noqa: B018
    assert set(PUBLIC) | {"__version__"} == set(dir(rqueue)), "it is what a shell completes"


def test_a_star_import_brings_them_all() -> None:
    program = "from rqueue import *\nprint(len(dir()), task.__module__, Queue.__name__)"
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.split()
    assert said[1:] == ["rqueue.tasks.decorator", "Queue"]
    assert int(said[0]) >= len(PUBLIC)
