"""`rqueue dev`: a server for development."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rqueue.cli.exit_codes import NOT_FOUND, OK, SERVER, Failure
from rqueue.cli.failures import say
from rqueue.cli.output import echo, json_option, print_json

if TYPE_CHECKING:
    from rqueue.transport.discovery import ServerState

START_S = 30.0
STOP_S = 30.0
LOCK_S = 1.0
_PID_FILE, _LOG_FILE = "dev.pid", "dev.log"


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Listen on this loopback port too; 0: any.",
)
@click.option("--background", "-b", is_flag=True, help="Start it and return.")
@click.option("--stop", is_flag=True, help="Stop the one that runs in this folder.")
@click.option("--status", is_flag=True, help="Say whether one runs, and where.")
@json_option
def dev(port: int | None, background: bool, stop: bool, status: bool, as_json: bool) -> int:
    """Keep a Redis server running for development.

    A real server with its data in .rqueue/ of this folder (put that into .gitignore). What is
    started here, rqueue's commands and your programs, uses it, unless RQUEUE_URL or REDIS_URL names
    another server; a pool of workers does with 'rqueue worker --dev' only. Elsewhere set RQUEUE_URL
    to what it prints. It ends with Ctrl-C, and its data
    stays for the next time. Where one runs already, its URL is printed, and nothing else is done.
    Not for production.

    \b
    Examples:
      rqueue dev
      rqueue worker app.tasks --dev
      rqueue dev --background && export RQUEUE_URL=$(rqueue dev --status)
      rqueue dev --stop
    """  # noqa: D301
    from rqueue.transport.discovery import DEV_DIRECTORY, refuse_foreign, running

    directory = Path(DEV_DIRECTORY)
    refuse_foreign(directory, directory / _PID_FILE)
    if background + stop + status > 1:
        raise click.UsageError("--background, --stop and --status exclude each other")
    if status:
        url = running(directory)
        return _say(url, as_json, f"no development server runs in {directory.absolute()}")
    if stop:
        return _stop(directory, as_json)
    try:
        if background:
            return _background(directory, port, as_json)
        return _serve(directory, port, as_json)
    except _KeptAlready:
        return _say_kept(directory, port, as_json)


class _KeptAlready(Exception):
    """Another process keeps a server running in this folder."""


def _say_kept(directory: Path, port: int | None, as_json: bool) -> int:
    """A server runs here already: say where. Raises Failure where it does not listen on
    this port."""
    from rqueue.transport.discovery import running_state

    where = directory.absolute()
    deadline = time.monotonic() + START_S
    while (state := running_state(directory)) is None:
        # its keeper has only just begun
        if _keeper(directory) is None or time.monotonic() > deadline:
            raise Failure(f"the server that another process keeps in {where} does not run", SERVER)
        time.sleep(0.05)
    if port is not None and (state.port is None or port not in (0, state.port)):
        raise Failure(
            f"a development server runs already in {where}, but not on port {port}: end it with "
            "rqueue dev --stop, then start it with the port",
            SERVER,
        )
    url = _url(state, port)
    warn_of_another(url)
    say(f"a development server runs already in {where}; rqueue dev --stop ends it")
    return _say(url, as_json, "")


def _say(url: str | None, as_json: bool, otherwise: str) -> int:
    if as_json:
        print_json({"running": url is not None, "url": url})
    elif url is None:
        raise Failure(otherwise, NOT_FOUND)
    else:
        echo(url)
    return OK if url is not None else NOT_FOUND


def _url(state: ServerState, port: int | None) -> str:
    """How it is reached: on a port, if one was asked for."""
    from rqueue.transport.discovery import port_url, socket_url

    return socket_url(state.socket) if port is None or state.port is None else port_url(state.port)


def warn_of_another(url: str) -> None:
    """Say so where a variable of the environment sends the user's programs to another server than
    the development server at `url`."""
    if variable := other_variable(url):
        say(
            f"{variable} is set and wins: programs that are started with it use that server, not "
            f"this one; set RQUEUE_URL={url} for them, or unset {variable}"
        )


def other_variable(url: str) -> str:
    """The variable of the environment that names another server than the one at `url`; "" where
    none does."""
    from rqueue.settings import HOSTED_URL

    variable = next((name for name in ("RQUEUE_URL", HOSTED_URL) if os.environ.get(name)), "")
    return variable if variable and os.environ[variable] != url else ""


def _serve(directory: Path, port: int | None, as_json: bool) -> int:
    from rqueue.embedded.server import EmbeddedRedis

    ended = threading.Event()
    previous = {
        number: signal.signal(number, lambda *_: ended.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        # the note outlives the server: where it is gone the server is gone too
        with _pid_file(directory), EmbeddedRedis(directory, port=port) as server:
            url = server.url if port is None else server.tcp_url
            if as_json:
                print_json({"running": True, "url": url, "pid": server.pid})
            else:
                echo(f"{server.binary}, data in {server.directory}")
                echo(f"export RQUEUE_URL={url}")
                echo("Ctrl-C ends it.")
            warn_of_another(url)
            sys.stdout.flush()
            while not ended.wait(0.5):
                if not server.alive:
                    raise Failure(f"the server ended by itself:\n{server.log_tail(5)}", SERVER)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    return OK


class _pid_file:
    """Our process id in a locked file: while it is locked the number is right."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / _PID_FILE
        self._file: int = -1

    def __enter__(self) -> None:
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        deadline = time.monotonic() + LOCK_S
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                # another process may be looking at it for a moment; longer is another keeper
                if time.monotonic() > deadline:
                    os.close(self._file)
                    raise _KeptAlready from None
                time.sleep(0.02)
        os.truncate(self._file, 0)
        os.write(self._file, str(os.getpid()).encode())

    def __exit__(self, *_: object) -> None:
        os.truncate(self._file, 0)
        os.close(self._file)


def _keeper(directory: Path) -> int | None:
    """The process that keeps the server of `directory` running."""
    try:
        with open(directory / _PID_FILE, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                written = file.read()
                return int(written) if written.isdigit() else None
    except FileNotFoundError:
        pass
    return None


def _background(directory: Path, port: int | None, as_json: bool) -> int:
    from rqueue.transport.discovery import running_state

    if _keeper(directory) is not None:
        raise _KeptAlready
    directory.mkdir(mode=0o700, exist_ok=True)
    command = [sys.executable, "-m", "rqueue.cli", "dev"]
    command += [] if port is None else ["--port", str(port)]
    log = directory / _LOG_FILE
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + START_S
    while (state := running_state(directory)) is None or _keeper(directory) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failure(f"it did not start: {_why(log, process.poll())}", SERVER)
        time.sleep(0.05)
    # it is to outlive us: the interpreter need not complain that it was not waited for
    process.returncode = 0
    url = _url(state, port)
    warn_of_another(url)
    return _say(url, as_json, "")


def _why(log: Path, ended: int | None) -> str:
    """Why the server in the background did not start: the last line of its log."""
    said = log.read_text(errors="replace").strip().splitlines()
    if said:
        return said[-1].removeprefix("rqueue: ")
    how = f"no answer in {START_S:g} s" if ended is None else f"exit code {ended}"
    full = "" if shutil.disk_usage(log.parent).free else ": the disk is full"
    return f"{how}, and nothing is in {log.absolute()}{full}"


def _stop(directory: Path, as_json: bool) -> int:
    keeper = _keeper(directory)
    if keeper is None:
        return _say(None, as_json, f"no development server runs in {directory.absolute()}")
    os.kill(keeper, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while _keeper(directory) is not None:
        if time.monotonic() > deadline:
            raise Failure(f"process {keeper} does not end", SERVER)
        time.sleep(0.02)
    if as_json:
        print_json({"running": False, "url": None})
    else:
        echo("stopped")
    return OK
