"""A PostgreSQL server of the tests' own, on a loopback port."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import psycopg

from tests.support.patience import PATIENCE
from tests.support.ports import free_port

PLACES = Path("/usr/lib/postgresql")


class MissingPostgres(Exception):
    """There is no server program."""


def find_postgres() -> Path:
    """The folder of the newest server's programs. Raises MissingPostgres."""
    found = sorted(PLACES.glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    raise MissingPostgres(
        "no PostgreSQL server was found: install one, on Debian and Ubuntu 'apt install postgresql'"
    )


class Postgres:
    """A running server; `stop` ends it and removes its data. Root starts it as the user
    `postgres`, whom the package makes: the server refuses to be root's."""

    def __init__(self) -> None:
        programs = find_postgres()
        self._folder = Path(tempfile.mkdtemp(prefix="rqueue-postgres-"))
        self._user = "postgres" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self._folder, self._user)
        data = self._folder / "data"
        self.port = free_port()
        self._control = [str(programs / "pg_ctl"), "-D", str(data), "-s", "-w"]
        self._run([str(programs / "initdb"), "-D", str(data), "-U", "rqueue", "-A", "trust", "-N"])
        said = f"-h 127.0.0.1 -p {self.port} -k {self._folder} -c autovacuum=off -c fsync=off"
        log = ["-l", str(self._folder / "log"), "-t", str(round(PATIENCE))]
        self._run([*self._control, *log, "-o", said, "start"])
        self._numbers = count(1)

    def database(self) -> str:
        """The URL of a new database, as SQLAlchemy writes it."""
        name = f"db{next(self._numbers)}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self._address(name).replace("postgresql:", "postgresql+psycopg:")

    def _address(self, database: str) -> str:
        return f"postgresql://rqueue@127.0.0.1:{self.port}/{database}"

    def _run(self, command: list[str]) -> None:
        # a file, not a pipe: the server inherits it, and stays
        with (self._folder / "said").open("wb") as said:
            done = subprocess.run(
                command, stdout=said, stderr=said, cwd=self._folder, user=self._user, check=False
            )
        if done.returncode:
            text = (self._folder / "said").read_text(errors="replace")
            raise RuntimeError(f"{command[0]} ended with {done.returncode}: {text}")

    def stop(self) -> None:
        self._run([*self._control, "-m", "immediate", "stop"])
        shutil.rmtree(self._folder)
