"""Learning which queues a pool serves when it was given none: those that its tasks name.

The supervisor imports no code of the application, so that a reload brings new code in. A child
process imports it, says the queues, and ends.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import replace
from typing import Any

from rqueue.errors import ConfigError, RQueueError
from rqueue.logs import logger
from rqueue.tasks.registry import registry
from rqueue.transport.resp import readable
from rqueue_workers.pool.children import forked
from rqueue_workers.pool.exit_cause import ExitCause
from rqueue_workers.pool.served_queues import with_shards
from rqueue_workers.pool.signals import Inbox, Lifeline
from rqueue_workers.spec import WorkerSpec, check_weights

__all__ = ["NoQueues", "QueueFinder"]

log = logger("rqueue.pool")


class NoQueues(Exception):
    """The application cannot be imported, or has no task; the message has lines for the log."""


class QueueScout:
    """A child process that imports the application and answers with its queues. `fileno()` is
    readable when the answer is there. close: drops the supervisor's connections in the child.
    ask_shards: the child also asks Redis for the shards of the queues."""

    def __init__(
        self,
        spec: WorkerSpec,
        inbox: Inbox,
        lifeline: Lifeline,
        close: Callable[[], None] = lambda: None,
        *,
        ask_shards: bool = False,
    ) -> None:
        self._spec = spec
        self._read, write = os.pipe()
        self._pid = forked(inbox, lifeline, close, lambda: _answer(spec, write, ask_shards))
        os.close(write)

    def fileno(self) -> int:
        """For select."""
        return self._read

    def found(self) -> WorkerSpec:
        """The pool's options with the queues, in the order of their names. It waits for the answer.
        Raises NoQueues, and ConfigError if one of the weights is of none of them."""
        with os.fdopen(self._read, "rb") as pipe:
            # not up to the end: what the application has started may keep the pipe open
            answer = pipe.readline()
        cause = self._ended()
        if not answer:
            app = ", ".join(self._spec.app)
            raise NoQueues(f"cannot learn the queues of {app}: the process that imports it {cause}")
        said = json.loads(answer)
        if "problem" in said:
            raise NoQueues(said["problem"])
        check_weights(self._spec.weights, said["named"])
        del said["named"]
        return replace(self._spec, **said | {"queues": tuple(said["queues"])})

    def cancel(self) -> None:
        """End it: its answer is not needed any more."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.close(self._read)
        self._ended()

    def _ended(self) -> ExitCause | str:
        try:
            return ExitCause.of(os.waitpid(self._pid, 0)[1])
        except ChildProcessError:  # process 1 reaps all that end
            return "ended"


def _answer(spec: WorkerSpec, write: int, ask_shards: bool) -> int:
    """In the child: import the application and write the answer."""
    from rqueue_workers.worker.app_import import AppError, import_app, say_where

    answer: dict[str, Any]
    try:
        say_where(spec.settings)
        import_app(spec.app)
        named = sorted({task.queue for task in registry})
        if not named:
            raise AppError(no_task(spec.app))
        answer = {"named": named, "queues": named}
        if ask_shards:
            found = with_shards(replace(spec, queues=tuple(named)))
            answer |= {
                "queues": found.queues,
                "shards": dict(found.shards),
                "weights": dict(found.weights),
            }
    except (AppError, RQueueError) as error:
        answer = {"problem": str(error)}
    with os.fdopen(write, "w") as pipe:
        pipe.write(json.dumps(answer) + "\n")
    return 0


def no_task(app: tuple[str, ...]) -> str:
    """What is said of an application without tasks, if no queue is named."""
    return (
        f"no task is defined or imported by {', '.join(app)}: there is no queue to serve; decorate"
        " a function with @task, or name the queues"
    )


class QueueFinder:
    """The queues of a pool: those that it was given, or else those that its tasks name, asked for
    at the start and with each reload."""

    def __init__(self, spec: WorkerSpec, inbox: Inbox, lifeline: Lifeline) -> None:
        self._spec = spec
        self._inbox = inbox
        self._lifeline = lifeline
        self._scout: QueueScout | None = None

    def first(self) -> WorkerSpec | None:
        """The pool's options with its queues; None if a signal said to end meanwhile. Raises as
        `QueueScout.found`."""
        if self._spec.queues:
            return self._spec
        scout = QueueScout(self._spec, self._inbox, self._lifeline)
        while True:
            watched: list[Any] = [self._inbox, scout]
            heard = readable(watched, None)
            if {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT} & set(self._inbox.take()):
                scout.cancel()
                return None
            if scout in heard:
                return scout.found()

    def ask_again(self, close: Callable[[], None]) -> bool:
        """Have the new code asked for its queues; False if they were given. close: drops the
        supervisor's connections in the child."""
        self.cancel()
        if self._spec.queues:
            return False
        self._scout = QueueScout(self._spec, self._inbox, self._lifeline, close, ask_shards=True)
        return True

    @property
    def waited_for(self) -> list[QueueScout]:
        """What to watch for an answer."""
        return [] if self._scout is None else [self._scout]

    def answer(self, readable: Container[Any]) -> WorkerSpec | None:
        """The options with the queues of the new code, once they are known. If it has none, the log
        says so, and that the old workers stay."""
        scout = self._scout
        if scout is None or scout not in readable:
            return None
        self._scout = None
        try:
            return scout.found()
        except (NoQueues, ConfigError) as error:
            log.error("%s", error)
            log.error("rolling restart given up: the new code has no queues; the old workers stay")
            return None

    def cancel(self) -> None:
        """The answer is not needed any more."""
        if self._scout is not None:
            self._scout.cancel()
            self._scout = None
