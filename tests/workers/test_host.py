"""A pool and its host: the pid file, orphans, signals before it is ready."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError
from rqueue_workers.pool.host import Pidfile
from tests.support.patience import PATIENCE
from tests.workers.pools import ROOT, Pool, eventually

Make = Callable[..., Pool]


def test_a_pid_file_follows_no_link(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    path = tmp_path / "pool.pid"
    path.symlink_to(precious)
    with Pidfile(str(path)):
        assert not path.is_symlink() and path.read_text() == f"{os.getpid()}\n"
    assert precious.read_text() == "keep me"
    assert sorted(tmp_path.iterdir()) == [precious]


def test_a_link_to_the_file_of_a_pool_that_runs_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("1\n")
    (tmp_path / "pool.pid").symlink_to(tmp_path / "other")
    with Pidfile(str(tmp_path / "pool.pid")):
        pass
    assert (tmp_path / "other").read_text() == "1\n"


def test_the_name_it_writes_first_cannot_be_prepared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep me")
    monkeypatch.setattr("rqueue_workers.pool.host.token_hex", lambda size: "guessed")
    (tmp_path / "pool.pid.guessed").symlink_to(precious)
    with pytest.raises(ConfigError, match="File exists"), Pidfile(str(tmp_path / "pool.pid")):
        pass
    assert precious.read_text() == "keep me"


def test_a_pipe_in_its_place_holds_up_nobody(tmp_path: Path) -> None:
    path = tmp_path / "pool.pid"
    os.mkfifo(path)
    with Pidfile(str(path)):
        assert path.is_file()


def test_the_file_of_a_successor_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "pool.pid"
    with Pidfile(str(path)):
        path.write_text("1\n")
    assert path.read_text() == "1\n"


def test_orphans_that_it_is_given_leave_no_zombies(make_pool: Make, queue: Queue) -> None:
    """As the first process of a container; its own workers' deaths are not lost for it."""
    pool = make_pool(app=["tests.workers.misuse_app"], subreaper=True, processes=2)
    jobs = [queue.enqueue("orphans", 5) for _ in range(10)]
    for job in jobs:
        job.result(PATIENCE)
    eventually(lambda: len(psutil.Process(pool.pid).children()) == 2, lambda: pool.log)
    workers = psutil.Process(pool.pid).children()  # no orphan is among them any more
    workers[0].kill()
    pool.said("is ready after", 3)
    pool.said(f"(process {workers[0].pid}) was killed by SIGKILL")
    assert pool.drained() == 0


@pytest.mark.parametrize(
    "module", ["rqueue_workers.pool.supervisor", "rqueue_workers.pool.preflight", "redis"]
)
@pytest.mark.parametrize("sent", ["TERM", "QUIT", "HUP", "USR1"])
def test_a_signal_while_it_is_still_imported_ends_it_well(
    tmp_path: Path, module: str, sent: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"""
import os, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIG{sent})
            os.kill(os.getpid(), signal.SIGTERM)
sys.meta_path.insert(0, Finder())
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "rqueue_workers", "app", "--url", "redis://127.0.0.1:1/0"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}:{ROOT / 'workers'}"},
        timeout=PATIENCE,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
