"""What the host's own machinery wants of a pool: a pid file, and word to systemd."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from rqueue.errors import ConfigError


class Pidfile:
    """A file with our process id, as long as we run. Without a path it does nothing."""

    def __init__(self, path: str) -> None:
        self._path = Path(path) if path else None

    def __enter__(self) -> Self:
        """Write it. Raises ConfigError if it names another process that runs, or cannot be."""
        if self._path is not None:
            other = self._owner()
            if other:
                raise ConfigError("pidfile", f"{self._path} belongs to process {other}, which runs")
            fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
            try:
                fresh.write_text(f"{os.getpid()}\n")
                fresh.replace(self._path)
            except OSError as error:
                raise ConfigError("pidfile", f"{self._path}: {error.strerror}") from None
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()

    def _owner(self) -> int:
        assert self._path is not None
        try:
            pid = int(self._path.read_text())
            os.kill(pid, 0)
        except PermissionError:
            return pid  # it runs, as somebody else
        except (OSError, ValueError):
            return 0  # left behind by a crash, or not there
        return 0 if pid == os.getpid() else pid


def tell_systemd(state: str) -> None:
    """Send READY=1, STOPPING=1, ... to systemd, where it asked for it (Type=notify)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect("\0" + address[1:] if address[0] == "@" else address)
        sender.sendall(state.encode())
