"""A child process that never outlives the program that started it, however that ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

# Not a comparison of sys.platform, which a type checker takes for a constant.
_KERNEL_WATCHES = sys.platform.startswith("linux")

# Becomes the server by exec, after asking the kernel for a signal when its parent dies. A small
# program and not a preexec_fn: that may deadlock in a process with threads.
_DIE_WITH_PARENT = """
import ctypes, os, sys
parent, signal, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if ctypes.CDLL(None, use_errno=True).prctl(1, signal, 0, 0, 0):
    sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
if os.getppid() != parent:
    sys.exit("the parent is gone already")
os.execv(program, sys.argv[3:])
"""


class KeptProcess:
    """A process that ends with ours, and the thread that started it and lives as long as it.

    The kernel's signal on a parent's death comes when the *thread* that made the child ends, so a
    thread that only waits for the child does it.
    """

    def __init__(self, command: list[str], log: Path, lock: int, at_death: signal.Signals) -> None:
        """Start `command` (an absolute path first), its output appended to `log`.

        It inherits the descriptor `lock`. When we die it gets `at_death`. Raises `OSError`.
        """
        self.exited = threading.Event()
        self.pid = 0
        self.returncode: int | None = None
        self._owner = os.getpid()
        self._fault: Exception | None = None
        started = threading.Event()
        threading.Thread(
            target=self._keep,
            args=(command, log, lock, at_death, started),
            name=f"keeper of {Path(command[0]).name}",
            daemon=True,
        ).start()
        started.wait()
        if self._fault is not None:
            raise self._fault

    def _keep(
        self,
        command: list[str],
        log: Path,
        lock: int,
        at_death: signal.Signals,
        started: threading.Event,
    ) -> None:
        watchdog: subprocess.Popen[bytes] | None = None
        if _KERNEL_WATCHES:
            wrapper = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT]
            command = [*wrapper, str(os.getpid()), str(int(at_death)), *command]
        try:
            with log.open("ab") as output:
                child = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    # A newer Redis refuses to start under a locale that the machine lacks.
                    env={**os.environ, "LC_ALL": "C"},
                    # Ctrl-C in the terminal is for the program, which stops its server last.
                    start_new_session=True,
                    pass_fds=(lock,),
                )
            self.pid = child.pid
            if not _KERNEL_WATCHES:
                try:
                    watchdog = _watchdog(child.pid, at_death)
                except OSError:
                    child.kill()
                    child.wait()
                    raise
        except Exception as error:  # raised where the process was asked for
            self._fault = error
            return
        finally:
            started.set()
        self.returncode = child.wait()
        if watchdog is not None:
            watchdog.kill()
            watchdog.communicate()
        self.exited.set()

    def end(self, timeout: float, request: signal.Signals = signal.SIGTERM) -> None:
        """Ask the process to end, wait `timeout` seconds, then kill it."""
        if os.getpid() != self._owner:
            return  # a forked copy of the program: the server is its original's
        self._send(request)
        if not self.exited.wait(timeout):
            self._send(signal.SIGKILL)
            self.exited.wait()

    def _send(self, number: signal.Signals) -> None:
        if not self.exited.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def _watchdog(pid: int, number: signal.Signals) -> subprocess.Popen[bytes]:
    """Start a shell that signals `pid` when its own standard input closes, which our death does."""
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; kill -"$2" "$1"', "sh", str(pid), str(int(number))],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
