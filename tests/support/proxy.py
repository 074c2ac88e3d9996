"""A TCP proxy in front of a server, that can cut, hold and delay what passes.

One thread moves the bytes. Every change is made in that thread before the call returns, so a test
knows what the next byte will meet.
"""

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from tests.support.patience import PATIENCE

CHUNK = 65536


class Pair:
    """One client's connection and the one to the server behind it."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        # bytes on their way: to the server, to the client
        self.up = bytearray()
        self.down = bytearray()
        self.down_ready: list[tuple[float, bytes]] = []


class Proxy:
    """Listens on a loopback port of its own and passes everything on to `target`.

    `target`: the path of a unix socket, or (host, port). `port` stays the same for its life.

    - `cut()`: close all connections now (a reset).
    - `cut_reply(after)`: let `after` more bytes of replies through, then cut that connection once.
    - `swallow_reply()`: the next reply is not passed on at all, and its connection is cut then.
    - `hold()` / `release()`: keep replies back, and requests if asked / let them go.
    - `lead_to(target)`: new connections go there; those that are open stay where they are.
    - `dribble(size)`: at most so many bytes of a reply at once; 0: as many as there are.
    - `refuse()` / `accept()`: cut, and refuse new connections / take them again.
    - `lead_to(target)`: new connections go there; those that are open stay where they are.
    - `delay`: seconds by which replies come later.
    """

    def __init__(self, target: str | tuple[str, int]) -> None:
        self._target = target
        self._selector = selectors.DefaultSelector()
        self._pairs: set[Pair] = set()
        self._held = False
        self._held_up = False
        self._chunk = 0
        self._refusing = False
        self._allowance: int | None = None
        self.delay = 0.0
        self.connections = 0
        self._cut_done = threading.Event()
        self._tasks: list[tuple[Callable[[], Any], Future[Any]]] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._wake_in, selectors.EVENT_READ, None)
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    # -- what a test says --------------------------------------------------------------------------

    def cut(self) -> int:
        """Cut all connections; how many there were."""
        return int(self._do(self._cut_all))

    def cut_reply(self, after: int) -> None:
        """Let `after` more bytes of replies through, and then cut the connection they are on."""

        def arm() -> None:
            self._allowance = after
            self._cut_done.clear()

        self._do(arm)

    def swallow_reply(self) -> None:
        """The server does what it is asked next, but its answer never arrives."""
        self.cut_reply(0)

    def wait_cut(self, timeout: float = 10) -> bool:
        """Wait until `cut_reply` has cut."""
        return self._cut_done.wait(timeout)

    def hold(self, replies: bool = True, requests: bool = False) -> None:
        """Keep replies, requests or both back from now on."""

        def keep() -> None:
            self._held, self._held_up = replies, requests

        self._do(keep)

    def dribble(self, size: int) -> None:
        """Let at most `size` bytes of a reply through at once; 0: as many as there are."""
        self._do(lambda: setattr(self, "_chunk", size))

    def release(self) -> None:
        """Let them go."""

        def go() -> None:
            self._held = self._held_up = False
            for pair in self._pairs:
                self._watch(pair)

        self._do(go)

    def refuse(self) -> None:
        """Cut everything, and accept no connection until `accept`."""

        def shut() -> None:
            self._refusing = True
            self._cut_all()

        self._do(shut)

    def accept(self) -> None:
        """Take connections again."""
        self._do(lambda: setattr(self, "_refusing", False))

    def lead_to(self, target: str | tuple[str, int]) -> None:
        """Take new connections to another server, as a name or a virtual address does after a
        failover; clients are not notified."""
        self._do(lambda: setattr(self, "_target", target))

    def close(self) -> None:
        self._do(lambda: setattr(self, "_stopped", True))
        self._thread.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -- the thread --------------------------------------------------------------------------------

    def _do(self, what: Callable[[], Any]) -> Any:
        future: Future[Any] = Future()
        with self._lock:
            self._tasks.append((what, future))
        self._wake_out.send(b"x")
        return future.result(PATIENCE)

    def _run(self) -> None:
        while not self._stopped:
            for key, events in self._selector.select(self._next_due()):
                if key.fileobj is self._wake_in:
                    self._wake_in.recv(CHUNK)
                    with self._lock:
                        tasks, self._tasks = self._tasks, []
                    for what, future in tasks:
                        future.set_result(what())
                elif key.fileobj is self._listener:
                    self._take()
                elif key.data in self._pairs:
                    self._move(key.data, key.fileobj, events)
            self._ripen()
        self._cut_all()
        for sock in (self._listener, self._wake_in, self._wake_out):
            sock.close()
        self._selector.close()

    def _take(self) -> None:
        client, _ = self._listener.accept()
        if self._refusing:
            self._reset(client)
            return
        try:
            if isinstance(self._target, str):
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._target)
                except OSError:
                    server.close()
                    raise
            else:
                server = socket.create_connection(self._target)
        except OSError:
            self._reset(client)
            return
        self.connections += 1
        pair = Pair(client, server)
        for sock in (client, server):
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ, pair)
        self._pairs.add(pair)

    def _move(self, pair: Pair, sock: object, events: int) -> None:
        try:
            if events & selectors.EVENT_READ:
                if sock is pair.client:
                    data = pair.client.recv(CHUNK)
                    pair.up += data
                else:
                    data = pair.server.recv(CHUNK)
                    if self.delay:
                        pair.down_ready.append((time.monotonic() + self.delay, data))
                    else:
                        pair.down += data
                if not data:
                    self._cut(pair)
                    return
            self._push(pair)
        except BlockingIOError:
            pass
        except OSError:
            self._cut(pair)

    def _push(self, pair: Pair) -> None:
        if pair.up and not self._held_up:
            with contextlib.suppress(BlockingIOError):
                del pair.up[: pair.server.send(pair.up)]
        if pair.down and not self._held:
            if self._allowance is not None and len(pair.down) > self._allowance:
                pair.client.setblocking(True)
                pair.client.sendall(pair.down[: self._allowance])
                self._allowance = None
                self._cut(pair)
                self._cut_done.set()
                return
            with contextlib.suppress(BlockingIOError):
                sent = pair.client.send(pair.down[: self._chunk or None])
                del pair.down[:sent]
                if self._allowance is not None:
                    self._allowance -= sent
        self._watch(pair)

    def _watch(self, pair: Pair) -> None:
        write = selectors.EVENT_READ | selectors.EVENT_WRITE
        up = bool(pair.up) and not self._held_up
        down = bool(pair.down) and not self._held
        self._selector.modify(pair.server, write if up else selectors.EVENT_READ, pair)
        self._selector.modify(pair.client, write if down else selectors.EVENT_READ, pair)

    def _next_due(self) -> float | None:
        due = [pair.down_ready[0][0] for pair in self._pairs if pair.down_ready]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _ripen(self) -> None:
        now = time.monotonic()
        for pair in list(self._pairs):
            while pair.down_ready and pair.down_ready[0][0] <= now:
                pair.down += pair.down_ready.pop(0)[1]
            if pair.down and not self._held:
                self._watch(pair)

    def _cut_all(self) -> int:
        pairs = list(self._pairs)
        for pair in pairs:
            self._cut(pair)
        return len(pairs)

    def _cut(self, pair: Pair) -> None:
        if pair not in self._pairs:
            return
        self._pairs.discard(pair)
        for sock in (pair.client, pair.server):
            self._selector.unregister(sock)
        pair.server.close()
        pair.client.close()

    @staticmethod
    def _reset(sock: socket.socket) -> None:
        sock.close()
