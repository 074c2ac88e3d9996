"""The Python of Spark in tests: its processes begin with all that they need loaded.

Spark starts a Python for each stream that it reads, and processes of a daemon for what its plans
and tasks ask of Python; each would import PySpark, pyarrow and rqueue anew, a second each, hundreds
of times. Where Spark runs on this machine alone (`local[2]`), PYSPARK_PYTHON is a small program
that passes what it was started with, its standard streams too, to one process that has imported all
of it and done nothing else. This one forks itself, and the fork runs it. On the cluster, and in the
programs that tests start, Spark's Python is as it is for users.
"""

from __future__ import annotations

import gc
import marshal
import os
import runpy
import selectors
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
STARTER = Path(__file__).with_name("spark_python_starter.py")
ENVIRONMENT = {
    "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'workers'}",
    "PYTHONUNBUFFERED": "YES",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
}
"""As Spark lets its Python begin; and no threads, which a fork would not have."""

LOADED = (
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.conversion",
    "pyarrow.parquet",
    "rqueue.spark.history.source",
    "rqueue.spark.jobs.source",
    "rqueue.spark.write.writer",
    "rqueue.pipeline.archive.staging",
    "rqueue.pipeline.plan.simulate",
)


class SparkPython:
    """The process that they are forked from, and the program that stands for Python."""

    def __init__(self, directory: Path) -> None:
        self._place = directory / "python.sock"
        self.program = directory / "python"
        """For PYSPARK_PYTHON."""
        command = [sys.executable, "-IS", str(STARTER), sys.executable, str(self._place)]
        self.program.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
        self.program.chmod(0o755)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Let it run; also again, where it has ended."""
        if self._process is not None and self._process.poll() is None:
            return
        self.end()
        self._place.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self._place))
            listener.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listener.fileno())],
                cwd=ROOT,
                env={**os.environ, **ENVIRONMENT},
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
            )

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the Spark that is started meanwhile take its Python from here."""
        before = os.environ.get("PYSPARK_PYTHON")
        os.environ["PYSPARK_PYTHON"] = str(self.program)
        try:
            yield
        finally:
            del os.environ["PYSPARK_PYTHON"]
            if before is not None:
                os.environ["PYSPARK_PYTHON"] = before

    def end(self) -> None:
        """Let it end; those that it began go on."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None


class _Forker:
    """Forks a process for each starter that connects, tells the starter how it ended, and ends it
    when the starter is gone: Spark ends its Python so."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._open = selectors.DefaultSelector()
        self._open.register(listener, selectors.EVENT_READ)
        self._open.register(sys.stdin.fileno(), selectors.EVENT_READ)
        self._pids: dict[socket.socket, int] = {}

    def serve(self) -> tuple[list[str], dict[str, str]] | None:
        """Until who started us is there no more: None. In a forked process: the module
        with its arguments, and the environment, its standard streams being as they should."""
        while True:
            for key, _ in self._open.select():
                if key.fileobj is self._listener:
                    request = self._begin(self._listener.accept()[0])
                    if request is not None:
                        return request
                elif isinstance(key.fileobj, socket.socket):
                    self._starter_gone(key.fileobj)
                elif key.data is None:
                    return None
                else:
                    self._ended(key.fd, key.data)

    def _begin(self, starter: socket.socket) -> tuple[list[str], dict[str, str]] | None:
        size, descriptors, *_ = socket.recv_fds(starter, 4, 3)
        if not size:
            starter.close()
            return None
        text = starter.recv(wanted := int.from_bytes(size), socket.MSG_WAITALL)
        if len(text) < wanted:  # it was killed
            starter.close()
            return None
        arguments, environment, folder = marshal.loads(text)
        pid = os.fork()
        if not pid:
            for socket_ in (self._listener, starter, *self._pids):
                socket_.close()
            for key in self._open.get_map().values():
                if key.data is not None:
                    os.close(key.fd)
            self._open.close()
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            os.chdir(folder)
            return arguments, environment
        for descriptor in descriptors:
            os.close(descriptor)
        self._pids[starter] = pid
        self._open.register(starter, selectors.EVENT_READ)
        self._open.register(os.pidfd_open(pid), selectors.EVENT_READ, starter)
        return None

    def _starter_gone(self, starter: socket.socket) -> None:
        if starter in self._pids:  # not reaped: the number is still its own
            self._open.unregister(starter)
            os.kill(self._pids[starter], signal.SIGTERM)

    def _ended(self, pidfd: int, starter: socket.socket) -> None:
        self._open.unregister(pidfd)
        os.close(pidfd)
        code = os.waitstatus_to_exitcode(os.waitpid(self._pids.pop(starter), 0)[1])
        with suppress(KeyError):
            self._open.unregister(starter)
        with suppress(OSError):  # it is gone
            starter.sendall(bytes([code & 255]))
        starter.close()


def _main() -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()  # forks need not look at all of this to find what is garbage
    program = _Forker(socket.socket(fileno=int(sys.argv[1]))).serve()
    if program is not None:
        arguments, environment = program
        os.environ.clear()
        os.environ.update(environment)
        sys.argv[:] = arguments
        sys.modules.pop(arguments[0], None)  # it is run, not imported
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    sys.exit()


if __name__ == "__main__":
    _main()
