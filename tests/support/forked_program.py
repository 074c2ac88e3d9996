"""Programs that begin with rqueue loaded: forked from one that has imported it and done nothing
else.

To import all of a pool takes a program most of a second, and tests start hundreds of pools. What an
operator types is run as such, in a process that begins with nothing: by tests/cli and the pools of
tests/soak.
"""

from __future__ import annotations

import atexit
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from rqueue.transport.resp import readable

ROOT = Path(__file__).resolve().parents[2]
PATH = f"{ROOT}:{ROOT / 'workers'}"

LOADED = (
    "rqueue.cli.worker",
    "rqueue_workers.run",
    "rqueue_workers.pool.supervisor",
    "rqueue_workers.worker.worker",
)
"""What they begin with, beside the scripts that each pool reads."""


class ForkedProgram:
    """`python -m module arguments...` in the project's folder, as a process; as far as it is used
    like `subprocess.Popen`. output: where it writes, also its errors; input: what it reads, nothing
    where it is not given. leads: whether it begins a process group, for `os.killpg`."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        output: BinaryIO,
        input: BinaryIO | None = None,
        environment: Mapping[str, str] | None = None,
        leads: bool = False,
    ) -> None:
        self._code: int | None = None
        environment = dict(os.environ if environment is None else environment)
        start = {"module": module, "arguments": arguments, "environment": environment}
        start["leads"] = leads
        self._forker = _forker()
        streams = [output, *([input] if input else [])]
        self.pid: int = self._forker.ask(start, *(stream.fileno() for stream in streams))
        # until it is reaped the number is its own
        self._ended = os.pidfd_open(self.pid)

    @property
    def returncode(self) -> int | None:
        """As it was last seen: its exit code, None while it ran."""
        return self._code

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._wait(0)

    def wait(self, seconds: float | None = None) -> int:
        """Wait for its end; its exit code. Raises `subprocess.TimeoutExpired`."""
        code = self._wait(seconds)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), seconds or 0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _wait(self, seconds: float | None) -> int | None:
        if self._code is None and readable([self._ended], seconds):
            os.close(self._ended)
            self._code = os.waitstatus_to_exitcode(self._forker.ask({"reap": self.pid}))
        return self._code


class _Forker:
    """The process that they are forked from, and are children of."""

    def __init__(self) -> None:
        mine, its = socket.socketpair()
        with its:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(its.fileno())],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": PATH},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[its.fileno()],
            )
        self._requests = mine
        self._lock = threading.Lock()  # tests start programs in threads too

    def ask(self, request: dict[str, Any], *descriptors: int) -> int:
        """A number: the process that it began, or how one ended."""
        text = json.dumps(request).encode() + b"\n"
        with self._lock:
            socket.send_fds(self._requests, [text[:1]], descriptors)
            self._requests.sendall(text[1:])
            return int(_line(self._requests))

    @property
    def ended(self) -> bool:
        """Whether it is there no more: some tests kill all Pythons below theirs."""
        return self._process.poll() is not None

    def end(self) -> None:
        """Let it end."""
        with suppress(OSError):  # it has ended
            self._requests.shutdown(socket.SHUT_RDWR)
        self._requests.close()
        self._process.wait()


_forkers: list[_Forker] = []


def _forker() -> _Forker:
    """The one that there is, or a new one."""
    if not _forkers or _forkers[-1].ended:
        _forkers.append(_Forker())
        atexit.register(_forkers[-1].end)
    return _forkers[-1]


def _line(requests: socket.socket) -> bytes:
    """What comes up to the end of a line, without it; all there is where the other side has
    ended."""
    said = b""
    while not said.endswith(b"\n") and (more := requests.recv(65536)):
        said += more
    return said.removesuffix(b"\n")


def _serve(requests: socket.socket) -> dict[str, Any] | None:
    """Do what is asked for, until nobody is there any more: None. In a process that was begun for
    it: how to go on, its standard streams being as they should."""
    while True:
        first, descriptors, *_ = socket.recv_fds(requests, 1, 2)
        if not first:
            return None
        request: dict[str, Any] = json.loads(first + _line(requests))
        if "reap" in request:
            answer = os.waitpid(request["reap"], 0)[1]
        elif not (answer := os.fork()):
            requests.close()
            output, *input = descriptors
            for number in (1, 2):
                os.dup2(output, number)
            for descriptor in input:
                os.dup2(descriptor, 0)
            for descriptor in descriptors:
                os.close(descriptor)
            return request
        elif request["leads"]:
            os.setpgid(answer, 0)
        for number in descriptors:
            os.close(number)
        requests.sendall(b"%d\n" % answer)


def _load() -> None:
    for name in LOADED:
        import_module(name)
    from rqueue.protocol import scripts
    from rqueue_workers.pool.processes import SCRIPTS

    for name in SCRIPTS:
        scripts.script(name)


def _run(program: dict[str, Any]) -> NoReturn:
    """Run it, and end as each Python does: with its threads, what it has registered, and what it
    has still to write. But it does not take itself apart: to free all that was loaded before it
    began would take longer than most of these programs."""
    os.environ.clear()
    os.environ.update(program["environment"])
    sys.argv[:] = [program["module"], *program["arguments"]]
    code: Any = None
    try:
        runpy.run_module(program["module"], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit((code or 0) & 0xFF)


def _main() -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _load()
    program = _serve(socket.socket(fileno=int(sys.argv[1])))
    if program is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _run(program)
    sys.exit()


if __name__ == "__main__":
    _main()
