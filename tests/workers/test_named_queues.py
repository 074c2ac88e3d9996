"""A pool that is given no queue serves those that its tasks name, and says which."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue_workers.worker.app_import import notes
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool

Make = Callable[..., Pool]

HEAD = "from rqueue.tasks.decorator import task\n"
TASK = "\n@task(name='{0}', queue='{0}')\ndef {1}():\n    return '{1}'\n"


def write(folder: Path, module: str, *queues: str) -> None:
    tasks = [TASK.format(queue, f"serve_{i}") for i, queue in enumerate(queues)]
    (folder / f"{module}.py").write_text(HEAD + "".join(tasks))


@pytest.fixture
def client(queue: Queue) -> Callable[[str], Queue]:
    return lambda name: Queue(name, redis=queue.redis)


def test_all_queues_of_its_tasks_are_served(
    make_pool: Make, client: Callable[[str], Queue], queue_name: str, tmp_path: Path
) -> None:
    mail, reports = f"{queue_name}-mail", f"{queue_name}-reports"
    write(tmp_path, "some_tasks", mail)
    write(tmp_path, "more_tasks", reports)
    # it defines none, and has none among its names: it imports them
    (tmp_path / "collected.py").write_text(
        "from importlib import import_module\n"
        "for name in ('some_tasks', 'more_tasks'):\n    import_module(name)\n"
    )
    pool = make_pool(app=["collected"], queues=None, path=str(tmp_path), processes=2)
    for name in (mail, reports):
        assert client(name).enqueue(name).result(PATIENCE) == "serve_0"
    assert f"2 workers for {mail}, {reports}, Redis at" in pool.log
    assert "defines no task" not in pool.log
    assert "note:" not in pool.log
    assert pool.drained() == 0


def test_a_reload_adds_the_queues_of_new_code_and_takes_none_away(
    make_pool: Make, client: Callable[[str], Queue], queue_name: str, tmp_path: Path
) -> None:
    old, kept, new = (f"{queue_name}-{name}" for name in ("old", "kept", "another"))
    write(tmp_path, "changing", old, kept)
    pool = make_pool(app=["changing"], queues=None, path=str(tmp_path))
    assert client(old).enqueue(old).result(PATIENCE) == "serve_0"
    write(tmp_path, "changing", kept, new)
    pool.send(signal.SIGHUP)
    assert client(new).enqueue(new).result(PATIENCE) == "serve_1"
    assert f"the code names more queues: serving {kept}, {old}, {new}" in pool.log
    pool.said("rolling restart is done")
    assert client(kept).enqueue(kept).result(PATIENCE) == "serve_0"
    assert client(old).enqueue(kept).result(PATIENCE) == "serve_0"
    assert pool.drained() == 0


def test_code_that_cannot_be_imported_any_more_leaves_the_old_workers(
    make_pool: Make, client: Callable[[str], Queue], queue_name: str, tmp_path: Path
) -> None:
    write(tmp_path, "breaking", queue_name)
    pool = make_pool(app=["breaking"], queues=None, path=str(tmp_path))
    assert client(queue_name).enqueue(queue_name).result(PATIENCE) == "serve_0"
    (tmp_path / "breaking.py").write_text("raise RuntimeError('half a file')\n")
    pool.send(signal.SIGHUP)
    pool.said("rolling restart given up: the new code has no queues; the old workers stay")
    assert "RuntimeError: half a file" in pool.log
    assert client(queue_name).enqueue(queue_name).result(PATIENCE) == "serve_0"
    write(tmp_path, "breaking", queue_name)
    pool.send(signal.SIGHUP)
    pool.said("rolling restart is done")
    assert pool.drained() == 0


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "no task is defined or imported by broken: there is no queue to serve"),
        ("1 / 0", "cannot import the app 'broken': ZeroDivisionError"),
        (
            "import os; os.kill(os.getpid(), 9)",
            "cannot learn the queues of broken: the process that imports it was killed by SIGKILL",
        ),
    ],
)
def test_without_a_task_it_does_not_start(
    make_pool: Make, tmp_path: Path, code: str, said: str
) -> None:
    (tmp_path / "broken.py").write_text(code)
    pool = make_pool(app=["broken"], queues=None, path=str(tmp_path))
    assert pool.ended() == 1
    assert pool.log.count(said) == 1


def test_a_signal_ends_it_while_it_imports(make_pool: Make, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import sys, time\nprint('importing', file=sys.stderr, flush=True)\ntime.sleep(600)\n"
    )
    pool = make_pool(app=["slow"], queues=None, path=str(tmp_path))
    pool.said("importing")
    assert pool.drained() == 0


def test_weights_are_of_queues_that_the_tasks_name(make_pool: Make, tmp_path: Path) -> None:
    write(tmp_path, "weighed", "mail", "reports")
    pool = make_pool(app=["weighed"], queues=None, path=str(tmp_path), weights={"male": 2})
    assert pool.ended() == 1
    assert "weights: the pool does not serve 'male'; it serves mail, reports" in pool.log


def test_queues_of_tasks_that_are_not_served_are_a_note(
    make_pool: Make, client: Callable[[str], Queue], queue_name: str, tmp_path: Path
) -> None:
    write(tmp_path, "partly", queue_name, "elsewhere")
    pool = make_pool(app=["partly"], path=str(tmp_path), processes=3)
    assert client(queue_name).enqueue(queue_name).result(PATIENCE) == "serve_0"
    pool.said("is ready after", 3)
    said = "note: tasks go to queues that this pool does not serve: elsewhere"
    assert [line.count("INFO") for line in pool.log.splitlines() if said in line] == [1]
    assert pool.drained() == 0


def test_a_note_is_short() -> None:
    tasks = Registry()
    for number in range(10):
        task(name=f"t{number}", queue=f"q{number}", registry=tasks)(print)
    (said,) = notes(["q0"], tasks)
    assert said.endswith(": q1, q2, q3, q4, q5, q6, q7, q8 and 1 more")
    assert notes([f"q{number}" for number in range(10)], tasks) == []
