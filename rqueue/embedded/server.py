"""A real Redis of one's own: for a single machine, for development, for tests.

`EmbeddedRedis` starts a `redis-server` (or `valkey-server`) in a private directory, with its
append-only file on, reachable through a unix socket and, if asked for, a loopback port. It dies
with the process that started it, however that ends. `running(directory)` finds the one that another
process keeps there.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from rqueue.embedded.binaries import ServerBinary, find_server
from rqueue.embedded.child_process import KeptProcess
from rqueue.errors import EmbeddedRedisError
from rqueue.transport.discovery import STATE_FILE, ServerState, ask, port_url, running, socket_url

__all__ = ["EmbeddedRedis", "running"]

# A unix socket's path has at most 103 bytes (macOS) or 107 (Linux); some room for the server's own.
_LONGEST_SOCKET_PATH = 100
_LOCK_FILE, _LOG_FILE = "server.lock", "server.log"


class EmbeddedRedis:
    """A server of one's own: append-only file on, nothing evicted, private to this user.

    - `directory`: where its data and log are. Without one, a temporary directory is made.
    - `persistent`: keep the directory after `stop()`; by default exactly if one was given.
    - `port`: also listen on this loopback port; 0 takes a free one. Without it only on the socket.
    - `binary`: the server program; by default what `find_server()` finds.
    - `config`: further server settings, such as `{"maxmemory": "100mb"}`; they win over ours.

    It runs from `start()`, or the head of a `with`, to `stop()`, or the end of the `with`. Data,
    socket and port stay the same through `kill()`, `start()` and `restart()`.
    """

    def __init__(
        self,
        directory: str | Path | None = None,
        *,
        persistent: bool | None = None,
        port: int | None = None,
        binary: ServerBinary | None = None,
        config: Mapping[str, str | int] | None = None,
        start_timeout: float = 30.0,
    ) -> None:
        self.persistent = directory is not None if persistent is None else persistent
        self.binary = find_server() if binary is None else binary
        self._given = None if directory is None else Path(directory).absolute()
        self._directory = self._given
        if port is not None and not 0 <= port <= 65535:
            raise EmbeddedRedisError(f"there is no port {port}: they go from 0 (any) to 65535")
        self._asked_port = port
        self._port: int | None = port or None
        self._config = dict(config or {})
        self._start_timeout = start_timeout
        self._socket: Path | None = None
        self._stopped = False
        # The running process, if there is one; shared with the clean-up that outlives this object.
        self._slot: list[KeptProcess] = []
        self._cleanup: weakref.finalize[..., EmbeddedRedis] | None = None

    @property
    def directory(self) -> Path:
        """Where data and log are; a temporary one exists between `start()` and `stop()`."""
        if self._directory is None:
            raise self._not_running()
        return self._directory

    @property
    def url(self) -> str:
        """The server's address, through its unix socket."""
        if self._socket is None:
            raise self._not_running()
        return socket_url(str(self._socket))

    @property
    def tcp_url(self) -> str:
        """The server's address on the loopback interface, if it was given a port."""
        if self._port is None:
            raise EmbeddedRedisError(
                "the embedded server has no port: EmbeddedRedis(port=0) takes a free one, once it "
                "is started"
            )
        return port_url(self._port)

    @property
    def pid(self) -> int:
        """The server's process id."""
        if not self._slot:
            raise self._not_running()
        return self._slot[0].pid

    @property
    def alive(self) -> bool:
        """Whether the server's process runs."""
        return bool(self._slot) and not self._slot[0].exited.is_set()

    def start(self) -> Self:
        """Start the server and return when it answers. Raises `EmbeddedRedisError`."""
        if self.alive:
            raise EmbeddedRedisError(f"the embedded server runs already (process {self.pid})")
        self._prepare()
        lock = self._lock()
        try:
            self._own()
            for attempts_left in (4, 3, 2, 1, 0):
                # Another program may take a free port before the server does; then, another one.
                if self._asked_port == 0 and self._port is None:
                    self._port = _free_port()
                log_start = self._log_size()
                self._launch(lock)
                try:
                    self._wait_until_ready()
                    break
                except EmbeddedRedisError:
                    said = self._log_tail(since=log_start)
                    taken = "in use" in said
                    if taken and self._asked_port:
                        raise EmbeddedRedisError(
                            f"port {self._asked_port} is in use: choose another one, or 0 for any"
                        ) from None
                    if not taken or not attempts_left:
                        raise
                    self._port = None
        except BaseException:
            self._halt(timeout=0)
            raise
        finally:
            # From here on the lock is the server's alone and is released by its end.
            os.close(lock)
        self._publish()
        self._stopped = False
        return self

    def stop(self, timeout: float = 10.0) -> None:
        """End the server: ask it, wait `timeout` seconds, then kill it.

        Its directory goes too, unless it is persistent.
        """
        self._stopped = True
        self._halt(timeout)
        if self._cleanup is not None:
            self._cleanup()
            self._cleanup = None
        self._socket = None
        if self._given is None:
            self._directory = None

    def kill(self) -> None:
        """End the server as a power cut would (SIGKILL); its data stays, for `start()`."""
        for process in self._slot:
            process.end(timeout=0, request=signal.SIGKILL)
        self._slot.clear()

    def restart(self, timeout: float = 10.0) -> None:
        """End the server (unless it ended already) and start it on the same data and address."""
        self._halt(timeout)
        self.start()

    def log_tail(self, lines: int = 20) -> str:
        """Return the last lines of the server's log."""
        return "\n".join(self._log_tail().splitlines()[-lines:])

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _not_running(self) -> EmbeddedRedisError:
        how = "use with EmbeddedRedis() as server, or start()"
        if self._stopped:
            return EmbeddedRedisError(f"the embedded server was stopped: {how} it again")
        return EmbeddedRedisError(f"the embedded server was not started: {how} it")

    def _prepare(self) -> None:
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="rqueue-"))
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.binary.version < (7, 0, 0) and (self._directory / "appendonlydir").exists():
            # An older server does not see a newer one's files: it would start empty, silently.
            raise EmbeddedRedisError(
                f"the data in {self._directory} was written by Redis 7 or newer, "
                f"but the server is {self.binary}"
            )

    def _own(self) -> None:
        """Take the directory, whose lock we hold, as ours to clean up."""
        scrap: list[Path] = [] if self.persistent else [self.directory]
        if self._socket is None:
            self._socket = self.directory / "redis.sock"
            if len(os.fsencode(self._socket)) > _LONGEST_SOCKET_PATH:
                short = Path(tempfile.mkdtemp(prefix="rq-", dir="/tmp"))
                self._socket = short / "redis.sock"
                scrap.append(short)
        if self._cleanup is None:
            self._cleanup = weakref.finalize(
                self, _clean, self._slot, scrap, self.directory, os.getpid()
            )

    def _lock(self) -> int:
        descriptor = os.open(self.directory / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + self._start_timeout
        pause = threading.Event()
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
            except BlockingIOError:
                url = running(self.directory)
                # A killed server's own child, writing a file, may hold the lock for some seconds.
                if url is not None or time.monotonic() > deadline:
                    os.close(descriptor)
                    where = f", at {url}" if url else ""
                    raise EmbeddedRedisError(
                        f"another server uses {self.directory}{where}"
                    ) from None
                pause.wait(0.02)

    def _command(self) -> list[str]:
        settings: dict[str, str | int] = {
            "daemonize": "no",
            "bind": "127.0.0.1",
            "port": self._port or 0,
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self.directory),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
            **self._config,
        }
        command = [str(self.binary.path)]
        for name, value in settings.items():
            command += [f"--{name}", str(value)]
        return command

    def _launch(self, lock: int) -> None:
        # Data that is to stay is worth an orderly end; a temporary server just goes.
        at_death = signal.SIGTERM if self.persistent else signal.SIGKILL
        try:
            process = KeptProcess(self._command(), self.directory / _LOG_FILE, lock, at_death)
        except OSError as error:
            raise EmbeddedRedisError(f"cannot start {self.binary}: {error}") from error
        self._slot[:] = [process]

    def _wait_until_ready(self) -> None:
        process = self._slot[0]
        deadline = time.monotonic() + self._start_timeout
        while True:
            answer = ask(str(self._socket), b"PING\r\n")
            if answer.startswith((b"+PONG", b"-NOAUTH")):
                return
            # Reading a large append-only file may take its time, and it says so.
            if process.exited.wait(0.002):
                raise self._broken(f"ended with exit code {process.returncode}")
            if time.monotonic() > deadline and not answer.startswith(b"-LOADING"):
                raise self._broken(f"did not answer in {self._start_timeout:g} s")

    def _broken(self, what: str) -> EmbeddedRedisError:
        return EmbeddedRedisError(f"{self.binary} {what}; its log ends with:\n{self.log_tail()}")

    def _publish(self) -> None:
        state = ServerState(self.pid, str(self._socket), self._port)
        fresh = self.directory / f"{STATE_FILE}.{os.getpid()}"
        fresh.write_text(json.dumps(asdict(state)))
        fresh.replace(self.directory / STATE_FILE)

    def _halt(self, timeout: float) -> None:
        for process in self._slot:
            process.end(timeout)
        self._slot.clear()

    def _log_size(self) -> int:
        log = self.directory / _LOG_FILE
        return log.stat().st_size if log.exists() else 0

    def _log_tail(self, since: int = 0) -> str:
        log = self.directory / _LOG_FILE
        if not log.exists():
            return ""
        with log.open("rb") as file:
            file.seek(max(since, self._log_size() - 16384))
            return file.read().decode(errors="replace")


def _clean(slot: list[KeptProcess], scrap: list[Path], directory: Path, owner: int) -> None:
    # Also runs when the program ends; a forked copy of it must leave the original's files alone.
    if os.getpid() != owner:
        return
    for process in slot:
        process.end(timeout=10)
    slot.clear()
    with contextlib.suppress(FileNotFoundError):
        (directory / STATE_FILE).unlink()
    for path in scrap:
        shutil.rmtree(path, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
