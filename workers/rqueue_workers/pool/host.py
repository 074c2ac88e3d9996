"""What the host's own machinery wants of a pool: a pid file, word to systemd, and the end of
processes that have no other parent."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Self

from rqueue.errors import ConfigError

_PR_GET_CHILD_SUBREAPER = 37


class Pidfile:
    """A file with our process id, as long as we run. Without a path it does nothing.

    Safe in a folder that others may write to: no link is followed at any name that is read or
    written here, and what stands there is replaced whole.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None

    def __enter__(self) -> Self:
        """Write it. Raises ConfigError if it names another process that runs, or cannot be."""
        if self._path is not None:
            other = self._owner()
            if other:
                raise ConfigError("pidfile", f"{self._path} belongs to process {other}, which runs")
            # a name that nobody could guess and prepare
            fresh = self._path.with_name(f"{self._path.name}.{token_hex(8)}")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with open(os.open(fresh, flags, 0o644), "w") as file:
                    file.write(f"{os.getpid()}\n")
                try:
                    fresh.replace(self._path)
                except OSError:
                    fresh.unlink()
                    raise
            except OSError as error:
                raise ConfigError("pidfile", f"{self._path}: {error.strerror}") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._path is not None and self._read() == os.getpid():
            with suppress(OSError):
                self._path.unlink()

    def _owner(self) -> int:
        pid = self._read()
        if pid <= 0 or pid == os.getpid():
            return 0
        try:
            os.kill(pid, 0)
        except PermissionError:
            return pid  # it runs, as another user
        except (OSError, OverflowError):
            return 0  # left behind by a crash
        return pid

    def _read(self) -> int:
        """The process id in it, 0 where there is none."""
        assert self._path is not None
        try:
            # not blocking: it could be a pipe
            found = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(found) as file:
                return int(file.read(32))
        except (OSError, ValueError):
            return 0


def adopts() -> bool:
    """Whether processes that lose their parent become our children: we are the first process of a
    container, or took that upon us (Linux)."""
    if os.getpid() == 1:
        return True
    if sys.platform != "linux":
        return False
    said = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(said), 0, 0, 0)
    return bool(said.value)


def reap_strangers(ours: Container[int]) -> int:
    """Take note of the end of children that are not `ours`, so that they do not stay as zombies;
    returns how many. Of ours no status is taken."""
    count = 0
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return count
        if ended is None or ended.si_pid in ours:
            return count  # one of ours has died just now: its signal is on its way
        os.waitpid(ended.si_pid, 0)
        count += 1


def tell_systemd(state: str) -> None:
    """Send READY=1, STOPPING=1, ... to systemd, where it asked for it (Type=notify)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect("\0" + address[1:] if address[0] == "@" else address)
        sender.sendall(state.encode())
