"""Background puts: enqueue at once, stored in batches from a thread (C-10 to C-14).

::

    with queue.putter() as putter:
        for row in rows:
            putter.put(import_row, row)     # returns at once, with the job's handle
        putter.flush()                      # True: every one of them is stored

A process that dies without warning loses what it had not stored yet: use `enqueue` where the
caller must know before it goes on.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from rqueue.client.put_handle import PutHandle
from rqueue.errors import BufferClosed, BufferFull, LifecycleError, RedisUnavailable
from rqueue.logs import logger
from rqueue.model.expect import expect_number
from rqueue.protocol.commands.enqueue import Accepted, Put
from rqueue.protocol.job_packer import Call, Packer, by_name, call_of
from rqueue.protocol.put_buffer import (
    BATCH,
    CLOSE_S,
    LIMIT,
    LIMIT_BYTES,
    LINGER_S,
    ErrorListener,
    PutBuffer,
    PutListeners,
    backoff,
)
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.options import Options
from rqueue.text.numbers import many
from rqueue.transport.connection import Connection

if TYPE_CHECKING:
    from rqueue.client._sync.queue import Queue

__all__ = ["BackgroundPuts", "PutHandle"]

P = ParamSpec("P")
R = TypeVar("R")

PutListener = Callable[[PutHandle[Any]], object]

IDLE_S = 30.0
"""Seconds without work after which the thread ends; the next put starts another one."""

log = logger("rqueue")


class BackgroundPuts:
    """Puts jobs into one queue from a thread. Made by `Queue.putter(...)`.

    `batch`: jobs that one call stores at most. `linger`: seconds that the first job of a batch
    waits for more. `limit`, `limit_bytes`: room of the buffer, in jobs and in bytes of envelopes.
    `timeout`: seconds that a put may block in all while the buffer is full (None: as long as it
    takes), then BufferFull. `on_error`: see `add_error_listener`.

    Thread-safe. While Redis cannot be reached the jobs stay here and are sent again, in order,
    under the same ids. A forked child begins with an empty buffer: the parent stores what was
    there. At the end of the interpreter (not of `os._exit`) it is closed.
    """

    def __init__(
        self,
        queue: Queue,
        *,
        batch: int = BATCH,
        linger: float = LINGER_S,
        limit: int = LIMIT,
        limit_bytes: int = LIMIT_BYTES,
        timeout: float | None = None,
        on_error: ErrorListener | None = None,
    ) -> None:
        self.queue = queue
        expect_number("linger", linger, "a number of seconds")
        if timeout is not None:
            expect_number("timeout", timeout, "a number of seconds, or None")
        self.linger = linger
        self.timeout = timeout
        packer = Packer(queue.keys, queue.settings)
        self._box = PutBuffer(queue.keys, packer, batch=batch, limit=limit, limit_bytes=limit_bytes)
        self._listeners = PutListeners(queue.name, on_error)
        self._renew()
        _living.add(self)

    def _renew(self) -> None:
        """What must not be shared with a parent process."""
        self._lock = threading.RLock()
        self._work = threading.Condition(self._lock)  # for the thread: there is something to do
        self._moved = threading.Condition(self._lock)  # for callers: jobs are stored, or refused
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._wants: int | None = None  # notify the thread when so many jobs wait
        self._hurry = 0  # send without lingering, up to this number
        self._gone = False

    def _after_fork(self) -> None:
        self._box.forget()
        self._renew()

    # -- put ---------------------------------------------------------------------------------------

    @overload
    def put(self, task: BoundTask[P, R], /, *args: P.args, **kwargs: P.kwargs) -> PutHandle[R]: ...
    @overload
    def put(self, task: str, /, *args: Any, **kwargs: Any) -> PutHandle[Any]: ...
    def put(self, task: BoundTask[..., Any] | str, /, *args: Any, **kwargs: Any) -> PutHandle[Any]:
        """Put one call of a task, given as the task or by name; returns at once unless the buffer
        is full. Raises BadArguments, NotEncodable, BufferFull, BufferClosed."""
        if not isinstance(task, BoundTask):
            return self._put(*by_name(task, args, kwargs), self.timeout)
        check = task.check
        check(args, kwargs)
        return self._put(task.name, args, kwargs, task.defaults, check.positional, self.timeout)

    def put_call(self, call: Call, *, timeout: float | None = None) -> PutHandle[Any]:
        """Put one call; with `timeout`, block at most so many seconds in all (0: not at all)."""
        return self._put(*call_of(call).resolve(), self.timeout if timeout is None else timeout)

    @property
    def target(self) -> str:
        """The queue's name: where a task's jobs go with `task.options(sender=...)`."""
        return self.queue.name

    def enqueue_task(
        self,
        queue: str,
        task: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
        parameters: Sequence[str],
    ) -> PutHandle[Any]:
        """Put what a task enqueues: `task.options(sender=putter).enqueue(...)`. Raises
        LifecycleError for a task of another queue."""
        if queue != self.queue.name:
            raise LifecycleError(
                f"task '{task}' goes to queue '{queue}', this putter to '{self.queue.name}'"
            )
        return self._put(task, args, kwargs, options, parameters, self.timeout)

    def _put(
        self,
        task: str,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
        parameters: Sequence[str],
        timeout: float | None,
    ) -> PutHandle[Any]:
        box = self._box
        handle: PutHandle[Any] = PutHandle(self.queue, self)
        item = box.item(handle, task, args, kwargs, options, parameters)
        size = len(item.body)
        with self._lock:
            if box.closed:
                raise BufferClosed(self.queue.name)
            if not box.has_room(size):
                self._block(size, timeout)
            waiting = box.add(item)
            if self._wants is not None:
                if waiting >= self._wants:
                    self._wants = None
                    self._work.notify()
            elif self._thread is None:
                self._start()
        return handle

    def _block(self, size: int, timeout: float | None) -> None:
        if threading.current_thread() is self._thread:
            return  # a put listener that puts: it cannot wait for itself
        box = self._box
        deadline = None if timeout is None else monotonic() + timeout
        while not box.has_room(size):
            left = None if deadline is None else deadline - monotonic()
            if left is not None and left <= 0:
                raise BufferFull(self.queue.name, box.limit, timeout or 0.0)
            if not self._send_now():
                self._moved.wait(left)
            if box.closed:
                raise BufferClosed(self.queue.name)

    # -- listeners ---------------------------------------------------------------------------------

    def add_listener(self, listener: PutListener) -> None:
        """Call `listener(handle)` once for each job that is stored, in order, after it is (C-14).

        It is called in the putter's thread, outside its locks; an exception is logged. `flush` may
        return before the listeners of the last batch were called, `close` does not.
        """
        self._listeners.stored.append(listener)

    def add_error_listener(self, listener: ErrorListener) -> None:
        """Call `listener(error, puts)` with jobs that could not be stored, now or later.

        `Queue.enqueue_puts` takes such jobs. Without a listener they are logged.
        """
        self._listeners.failed.append(listener)

    # -- waiting -----------------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Jobs that are neither stored nor refused."""
        return self._box.pending

    @property
    def failed(self) -> int:
        """Jobs that could not be stored so far."""
        return self._box.failed

    def _finished(self, number: int) -> bool:
        return number <= self._box.finished

    def _await(self, number: int, timeout: float | None) -> bool:
        """Wait until so many jobs are stored or refused; False when the time is over."""
        if self._finished(number):
            return True
        if threading.current_thread() is self._thread:
            raise LifecycleError("a put listener cannot wait for puts")
        deadline = None if timeout is None else monotonic() + timeout
        with self._lock:
            self._hurry = max(self._hurry, number)
            while not self._finished(number):
                left = None if deadline is None else deadline - monotonic()
                if left is not None and left <= 0:
                    return False
                if not self._send_now():
                    self._moved.wait(left)
        return True

    def flush(self, timeout: float | None = None) -> bool:
        """Send now, and wait until every job put before is stored; False when `timeout` seconds
        passed (C-13). A job that was refused for good counts as finished: its handle and the error
        listeners have the reason."""
        return self._await(self._box.added, timeout)

    def close(self, timeout: float = CLOSE_S) -> list[Put]:
        """Take no more puts, flush for at most `timeout` seconds, and end the thread.

        Returns the jobs that could not be stored in this time, also told to the error listeners:
        whether the last batch of them was stored may be unknown, so enqueue them under the ids that
        they have. A second close does nothing (C-02).
        """
        box, end = self._box, monotonic() + timeout
        if threading.current_thread() is self._thread:
            raise LifecycleError("a put listener cannot close its putter")
        with self._lock:
            if box.closed:
                return []
            box.closed = True
            self._moved.notify_all()
        done = self._await(box.added, timeout)
        with self._lock:
            self._gone = True
            error = self._last_error or BufferClosed(self.queue.name)
            left = [] if done else box.give_up(error)
            thread, connection = self._thread, self._connection
            if not done and connection is not None and connection.socket is not None:
                with suppress(OSError):  # gone already
                    connection.socket.shutdown(socket.SHUT_RDWR)  # the thread waits for a reply
            self._work.notify_all()
            self._moved.notify_all()
        if thread is not None:
            thread.join(max(1.0, end - monotonic()))
        _living.discard(self)
        return self._listeners.tell_failed(error, left) if left else []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        left = self.close()
        if left and error is None:
            raise LifecycleError(
                f"{many(len(left), 'job')} for queue '{self.queue.name}' could not be stored: "
                f"{self._last_error}"
            )

    def __repr__(self) -> str:
        return f"<BackgroundPuts into {self.queue.name!r}: {self.pending} pending>"

    # -- the thread --------------------------------------------------------------------------------

    _last_error: Exception | None = None

    def _start(self) -> bool:
        """Start the thread; False when the interpreter is ending and starts no more of them."""
        thread = threading.Thread(target=self._loop, name="rqueue-puts", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            return False
        self._thread = thread
        return True

    def _send_now(self) -> bool:
        """Have everything sent without lingering. True where no thread can be started, and this one
        did send a batch, or tried to."""
        self._hurry = max(self._hurry, self._box.added)
        if self._thread is not None or self._start():
            self._work.notify()
            return False
        if self._box.next_batch() and not self._store(tries=1):
            self._pause(backoff(1))
        return True

    def _loop(self) -> None:
        while self._next():
            self._store()
        with self._lock:
            if self._thread is threading.current_thread():
                self._end()

    def _end(self) -> None:
        self._thread = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _next(self) -> bool:
        """Wait for a batch; False when it is time to end."""
        box = self._box
        with self._lock:
            while not box.waiting and not box.sending:
                if box.closed:
                    return False
                self._wants = 1
                woken = self._work.wait(IDLE_S)
                self._wants = None
                if not woken and not box.waiting:
                    self._end()
                    return False
            if len(box.waiting) < box.batch and self._hurry <= box.finished and not box.closed:
                self._wants = box.batch
                self._work.wait(self.linger)
                self._wants = None
            return box.next_batch() or not box.closed

    def _store(self, tries: int | None = None) -> bool:
        """Store the batch, however long that takes (or with so many tries), and refuse it if that
        is impossible. False if it is still there."""
        box, attempt = self._box, 0
        with self._lock:
            if self._gone or not box.sending:
                return True
            if self._connection is None:
                self._connection = Connection(self.queue.redis, self.queue.settings.command_timeout)
            connection, call = self._connection, box.call()
        while True:
            try:
                accepted = connection.run(call, queue=self.queue.name)
            except RedisUnavailable as error:
                attempt += 1
                if attempt == 1:
                    log.warning("puts into queue %s wait for Redis: %s", self.queue.name, error)
                with self._lock:
                    self._last_error = error
                    box.interrupted(error)
                    if attempt == tries:
                        return False
                    if self._pause(backoff(attempt)):
                        return True
            except Exception as error:
                self._refused(error)
                return True
            else:
                if attempt:
                    log.warning("puts into queue %s go on", self.queue.name)
                self._confirmed(accepted)
                return True

    def _pause(self, seconds: float) -> bool:
        """Wait before the next try; True when there is to be none."""
        # woken early by who closes; callers that wait do not make Redis come back sooner
        deadline = monotonic() + seconds
        while not self._gone and (left := deadline - monotonic()) > 0:
            self._work.wait(left)
        return self._gone

    def _refused(self, error: Exception) -> None:
        with self._lock:
            if self._gone:
                return
            self._last_error = error = self._box.reason(error)
            refused = self._box.refuse(error)
            self._moved.notify_all()
        self._listeners.tell_failed(error, refused)

    def _confirmed(self, accepted: Accepted) -> None:
        with self._lock:
            if self._gone:
                return
            stored = self._box.confirm(accepted)
            self._last_error = None
            self._moved.notify_all()
        self._listeners.tell(stored)


_living: weakref.WeakSet[BackgroundPuts] = weakref.WeakSet()


def _close_all() -> None:
    for putter in list(_living):
        putter.close()


def _forked() -> None:
    for putter in list(_living):
        putter._after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
