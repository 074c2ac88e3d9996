"""The engine of background puts: a thread that stores what is put.

`rqueue.transport.put_task` is the same with a task of an event loop.
"""

from __future__ import annotations

import atexit
import os
import socket
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Protocol

import redis

from rqueue.errors import BufferClosed, BufferFull, LifecycleError, QueueFull, QueueSharded
from rqueue.logs import logger
from rqueue.model.locks import new_lock
from rqueue.protocol.commands.enqueue import Accepted, Put
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.put_buffer import CLOSE_S, Item, PutBuffer, PutListeners, Refused, backoff
from rqueue.transport.connection import Connection
from rqueue.transport.routed_connection import connection_for

IDLE_S = 30.0
"""Seconds without work after which the thread ends; the next put starts another one."""

log = logger("rqueue")


class PutSpread(Protocol):
    """Stores batches in the shards of a queue that is spread."""

    def store(self, items: Sequence[Item]) -> Mapping[int, Exception]:
        """Store what is left of a batch; returns why jobs of it are refused, by their places.
        Raises what passes by itself: then the same batch is to be stored again."""


Answer = Accepted | Mapping[int, Exception]
"""What came of a batch in one queue, or in the shards of one."""


class PutThread:
    """Stores what is put into `buffer`, in batches, over one connection like those of `client`;
    where the queue is spread, by `spread`.

    keys: of the queue. linger: seconds that the first job of a batch waits for more. patience:
    seconds that a reply may take. Thread-safe; a forked child begins with an empty buffer. It is
    closed at the end of the interpreter.
    """

    def __init__(
        self,
        client: redis.Redis,
        buffer: PutBuffer,
        listeners: PutListeners,
        spread: PutSpread,
        *,
        keys: QueueKeys,
        linger: float,
        patience: float | None,
    ) -> None:
        self._client = client
        self._buffer = buffer
        self._listeners = listeners
        self._spread = spread
        self._keys = keys
        self._queue = keys.queue
        self._linger_s = linger
        self._patience = patience
        self.last_error: Exception | None = None
        self._begin()
        _living.add(self)

    def _begin(self) -> None:
        """Make what must not be shared with a parent process."""
        self._lock = new_lock()
        self._work = threading.Condition(self._lock)  # for the thread: there is something to do
        self._moved = threading.Condition(self._lock)  # for callers: jobs are stored, or refused
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._wants: int | None = None  # notify the thread when so many jobs wait
        self._hurry = 0  # send without lingering, up to this number
        self._gone = False

    def _after_fork(self) -> None:
        self._buffer.forget()
        self._begin()

    def put(self, item: Item, timeout: float | None) -> None:
        """Add a job; while the buffer is full, wait at most `timeout` seconds in all. Raises
        BufferFull, BufferClosed."""
        buffer, size = self._buffer, len(item.body)
        with self._lock:
            if buffer.closed:
                raise BufferClosed(self._queue)
            if not buffer.has_room(size):
                self._block(size, timeout)
            waiting = buffer.add(item)
            if self._wants is not None:
                if waiting >= self._wants:
                    self._wants = None
                    self._work.notify()
            elif self._thread is None:
                self._start()

    def _block(self, size: int, timeout: float | None) -> None:
        if threading.current_thread() is self._thread:
            return  # a put listener that puts: it cannot wait for itself
        buffer = self._buffer
        deadline = None if timeout is None else monotonic() + timeout
        while not buffer.has_room(size):
            left = None if deadline is None else deadline - monotonic()
            if left is not None and left <= 0:
                raise BufferFull(self._queue, buffer.limit, timeout or 0.0)
            if not self._send_now():
                self._moved.wait(left)
            if buffer.closed:
                raise BufferClosed(self._queue)

    def finished(self, number: int) -> bool:
        """Whether the job of this number is stored or refused."""
        return number <= self._buffer.finished

    def wait(self, number: int, timeout: float | None) -> bool:
        """Send now, and wait until so many jobs are stored or refused; False when `timeout` seconds
        passed. Raises LifecycleError in a put listener."""
        if self.finished(number):
            return True
        if threading.current_thread() is self._thread:
            raise LifecycleError("a put listener cannot wait for puts")
        deadline = None if timeout is None else monotonic() + timeout
        with self._lock:
            self._hurry = max(self._hurry, number)
            while not self.finished(number):
                left = None if deadline is None else deadline - monotonic()
                if left is not None and left <= 0:
                    return False
                if not self._send_now():
                    self._moved.wait(left)
        return True

    def close(self, timeout: float = CLOSE_S) -> list[Put]:
        """Take no more jobs, store what is there for at most `timeout` seconds, and end the thread;
        returns what could not be stored. Raises LifecycleError in a put listener."""
        buffer, end = self._buffer, monotonic() + timeout
        if threading.current_thread() is self._thread:
            raise LifecycleError("a put listener cannot close its putter")
        with self._lock:
            if buffer.closed:
                return []
            buffer.closed = True
            self._moved.notify_all()
        done = self.wait(buffer.added, timeout)
        with self._lock:
            self._gone = True
            error = self.last_error or BufferClosed(self._queue)
            left = [] if done else buffer.give_up(error)
            thread, connection = self._thread, self._connection
            if not done and connection is not None and connection.socket is not None:
                with suppress(OSError):  # gone already
                    connection.socket.shutdown(socket.SHUT_RDWR)  # the thread waits for a reply
            self._work.notify_all()
            self._moved.notify_all()
        if thread is not None:
            thread.join(max(1.0, end - monotonic()))
        _living.discard(self)
        return self._listeners.notify_failed(error, left) if left else []

    # -- the thread --------------------------------------------------------------------------------

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
        self._hurry = max(self._hurry, self._buffer.added)
        if self._thread is not None or self._start():
            self._work.notify()
            return False
        if self._buffer.next_batch() and not self._store(tries=1):
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
        buffer = self._buffer
        with self._lock:
            while not buffer.waiting and not buffer.sending:
                if buffer.closed:
                    return False
                self._wants = 1
                woken = self._work.wait(IDLE_S)
                self._wants = None
                if not woken and not buffer.waiting:
                    self._end()
                    return False
            few = len(buffer.waiting) < buffer.batch
            if few and self._hurry <= buffer.finished and not buffer.closed:
                self._wants = buffer.batch
                self._work.wait(self._linger_s)
                self._wants = None
            return buffer.next_batch() or not buffer.closed

    def _store(self, tries: int | None = None) -> bool:
        """Store the batch, however long that takes (or with so many tries), and refuse it if that
        is impossible. False if it is still there."""
        buffer, attempt = self._buffer, 0
        with self._lock:
            if self._gone or not buffer.sending:
                return True
            if self._connection is None:
                self._connection = connection_for(self._client, self._keys, self._patience)
            connection, items = self._connection, buffer.sending
        while True:
            try:
                if buffer.apart:
                    answer: Answer | None = self._spread.store(items)
                else:
                    answer = self._sent(connection, waits=not tries)
                if answer is None:
                    return self._gone
            except QueueSharded:
                buffer.apart = True
            except Exception as error:
                if not buffer.repeats(error):
                    self._refused(error)
                    return True
                attempt += 1
                if attempt == 1:
                    log.warning("puts into queue %s wait for Redis: %s", self._queue, error)
                with self._lock:
                    self.last_error = error
                    buffer.interrupted(error)
                    if attempt == tries:
                        return False
                    if self._pause(backoff(attempt)):
                        return True
            else:
                if attempt:
                    log.warning("puts into queue %s go on", self._queue)
                self._confirmed(answer)
                return True

    def _sent(self, connection: Connection, *, waits: bool) -> Accepted | None:
        """The answer to the batch, or to the part of it that a bounded queue takes now; None where
        it is not to be stored any more, or, unless it `waits`, not now."""
        buffer = self._buffer
        while True:
            with self._lock:
                if self._gone:
                    return None
                call = buffer.call()
            try:
                accepted = connection.run(call, queue=self._queue)
            except QueueFull as full:
                if buffer.shrink(full):
                    continue
                entered = self._when_room(connection, full) if waits else None
                if entered is None:
                    self.last_error = full
                    return None
                accepted = entered
            buffer.require_confirmed(accepted)
            return accepted

    def _when_room(self, connection: Connection, full: QueueFull) -> Accepted | None:
        """The answer, once the batch has entered a bounded queue; None when it is not to be stored
        any more. Raises the server errors, and QueueFull where it is not to be waited for."""
        wait = self._buffer.room_wait(full, self._patience)
        while not self._gone:
            state, word = connection.run_then(wait.ask(), wait.block(), queue=self._queue)
            try:
                if wait.may_enter(state, word):
                    return wait.entered(connection.run(wait.entry(), queue=self._queue))
            except QueueFull as again:
                wait.refused(again)
        return None

    def _pause(self, seconds: float) -> bool:
        """Wait before the next try; True when there is to be none."""
        # woken early by a close; callers that wait do not make Redis come back sooner
        deadline = monotonic() + seconds
        while not self._gone and (left := deadline - monotonic()) > 0:
            self._work.wait(left)
        return self._gone

    def _refused(self, error: Exception) -> None:
        with self._lock:
            if self._gone:
                return
            self.last_error = error = self._buffer.reason(error)
            refused = self._buffer.refuse(error)
            self._moved.notify_all()
        self._listeners.notify_failed(error, refused)

    def _confirmed(self, answer: Answer) -> None:
        refused: Refused = {}
        with self._lock:
            if self._gone:
                return
            if isinstance(answer, Accepted):
                stored = self._buffer.confirm(answer)
            else:
                stored, refused = self._buffer.confirm_apart(answer)
            self.last_error = next(reversed(refused), None)
            self._moved.notify_all()
        self._listeners.notify_stored(stored)
        for reason, some in refused.items():
            self._listeners.notify_failed(reason, some)


_living: weakref.WeakSet[PutThread] = weakref.WeakSet()


def _close_all() -> None:
    for engine in list(_living):
        engine.close()


def _forked() -> None:
    for engine in list(_living):
        engine._after_fork()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
