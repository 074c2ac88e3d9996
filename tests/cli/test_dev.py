"""The development server: kept, found, stopped, never left behind."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from click.testing import Result

from rqueue.cli.dev import _why
from rqueue.transport.discovery import running

Run = Callable[..., Result]
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def keeper(away: Path, command: Command) -> Iterator[str]:
    """A server in the background; its URL."""
    done = command("dev", "--background")
    assert done.returncode == 0, done.stderr
    yield done.stdout.strip()
    command("dev", "--stop")
    assert running(".rqueue") is None


def test_none_runs(run: Run) -> None:
    assert "no development server runs" in run("dev", "--status", url=None, code=3).stderr
    run("dev", "--stop", url=None, code=3)
    said = run("dev", "--status", "--json", url=None, code=3).stdout
    assert json.loads(said) == {"running": False, "url": None}
    run("dev", "--stop", "--background", url=None, code=2)


def test_other_commands_find_it(run: Run, keeper: str, command: Command) -> None:
    assert run("dev", "--status", url=None).stdout.strip() == keeper
    run("enqueue", "app.t", "1", "--id", "mine", url=None)
    assert "mine" in run("jobs", "default", url=None).stdout
    # a second one is the same one, and data stays for the next
    for again in (["--background"], []):
        done = command("dev", *again)
        assert (done.returncode, done.stdout.strip()) == (0, keeper)
        assert "runs already in" in done.stderr and "rqueue dev --stop" in done.stderr
        done = command("dev", "--port", "0", *again)
        assert (done.returncode, done.stdout) == (4, "")
        assert "but not on port 0" in done.stderr
    assert json.loads(command("dev", "--json").stdout) == {"running": True, "url": keeper}
    assert run("dev", "--stop", url=None).stdout == "stopped\n"
    run("jobs", "default", url=None, code=2)
    assert command("dev", "--background").returncode == 0
    assert "mine" in run("jobs", "default", url=None).stdout


def test_a_folder_of_another_user_is_refused(
    run: Run, keeper: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 12345)
        for words in (["enqueue", "app.t"], ["jobs", "default"], ["dev", "--stop"], ["dev"]):
            said = run(*words, url=None, code=2).stderr
            assert "belongs to another user" in said and "nothing was sent" in said


def test_why_it_did_not_start_is_said_without_a_log(tmp_path: Path) -> None:
    log = tmp_path / "dev.log"
    log.write_text("")
    assert _why(log, 1) == f"exit code 1, and nothing is in {log}"
    log.write_text("first\nrqueue: no room\n")
    assert _why(log, 1) == "no room"


def test_in_the_foreground_it_ends_with_ctrl_c(away: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "rqueue.cli", "dev", "--port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout and process.stderr
        said = json.loads(process.stdout.readline())
        assert said["url"].startswith("redis://127.0.0.1:")
        with redis.Redis.from_url(said["url"]) as client:
            assert client.ping()
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(said["pid"], 0)
    assert running(".rqueue") is None


def test_it_says_when_the_server_dies(away: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "rqueue.cli", "dev", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout and process.stderr
        os.kill(json.loads(process.stdout.readline())["pid"], signal.SIGKILL)
        assert b"ended by itself" in process.stderr.read()
    assert process.returncode == 4


@pytest.mark.parametrize("variable", ["RQUEUE_URL", "REDIS_URL"])
def test_a_variable_that_wins_is_named(
    keeper: str, variable: str, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = "redis://127.0.0.1:1/0"
    monkeypatch.setenv(variable, other)
    done = command("worker", "no_such_module", "--dev")
    assert f"{variable} is set to another server: this pool serves the dev" in done.stderr
    assert f"RQUEUE_URL={keeper}" in done.stderr
    monkeypatch.setenv(variable, keeper)
    assert "is set to another server" not in command("worker", "no_such_module", "--dev").stderr


def test_one_that_runs_on_a_port(away: Path, command: Command) -> None:
    first = command("dev", "--background", "--port", "0")
    assert first.returncode == 0
    try:
        for again in (["--background"], []):
            same = command("dev", "--port", "0", *again).stdout.strip()
            assert same == first.stdout.strip() and same.startswith("redis://127.0.0.1:")
            port = same.rpartition(":")[2].removesuffix("/0")
            assert command("dev", "--port", port, *again).stdout.strip() == same
            other = command("dev", "--port", "1", *again)
            assert (other.returncode, other.stdout) == (4, "")
    finally:
        command("dev", "--stop")


def test_a_port_that_is_taken(away: Path, command: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for how in ([], ["--background"]):
            done = command("dev", "--port", port, *how)
            assert done.returncode == 4
            assert f"port {port} is in use" in done.stderr
    assert command("dev", "--port", "99999").returncode == 2
