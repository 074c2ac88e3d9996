"""What a pool says of an application that cannot be imported, or that looks like a mistake."""

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.settings import Settings
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from rqueue_workers.worker.app_import import AppError, doubts, import_app, say_where
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool

Make = Callable[..., Pool]
APP = "tests.workers.supervisor_app"

APPS = {
    "goodapp": "x = 1",
    "badsyntax": "x = 1\ndef broken(:\n    pass",
    "shallow": "x = 1\nraise ValueError('no\\nsecret')",
    "deep": "import deeper",
    "deeper": "def connect():\n    raise KeyError('DSN')\n\nconnect()",
    "lacking": "import numbpy",
    "quitting": "import sys\nsys.exit('configure me')",
    "package/__init__": "",
    "package/tasks": "",
}


@pytest.fixture
def apps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in APPS.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "godapp.tasks",
            "cannot import the app: no module 'godapp.tasks' here or on PYTHONPATH;"
            " did you mean 'goodapp'?",
        ),
        (
            "package.taks",
            "cannot import the app 'package.taks': 'package' has no module 'taks';"
            " did you mean 'package.tasks'?",
        ),
        (
            "mail",
            "cannot import the app: no module 'mail' here or on PYTHONPATH;"
            " modules stand before the queues: rqueue worker app.tasks mail",
        ),
        ("no.thing", "cannot import the app: no module 'no.thing' here or on PYTHONPATH"),
        (
            "goodapp.py",
            "cannot import the app 'goodapp.py': name the module, not the file: goodapp",
        ),
        ("./goodapp", "cannot import the app './goodapp': name the module, not the file: goodapp"),
        (
            "package/tasks.py",
            "cannot import the app 'package/tasks.py': name the module, not the file:"
            " package.tasks",
        ),
        (
            "package.tasks:app",
            "cannot import the app 'package.tasks:app': name the module alone: package.tasks",
        ),
        ("goodapp:app", "cannot import the app 'goodapp:app': name the module alone: goodapp"),
        (
            "badsyntax",
            "cannot import the app 'badsyntax': SyntaxError: invalid syntax ({}/badsyntax.py:2)",
        ),
        ("shallow", "cannot import the app 'shallow': ValueError: no secret ({}/shallow.py:2)"),
        (
            "lacking",
            "cannot import the app 'lacking': ModuleNotFoundError: No module named 'numbpy'"
            " ({}/lacking.py:1)",
        ),
        (
            "quitting",
            "cannot import the app 'quitting': SystemExit: configure me ({}/quitting.py:2)",
        ),
    ],
)
def test_one_line_names_the_users_own(apps: Path, name: str, said: str) -> None:
    with pytest.raises(AppError) as caught:
        import_app([name])
    assert str(caught.value) == said.format(apps)


def test_a_deep_one_has_its_traceback(apps: Path) -> None:
    with pytest.raises(AppError) as caught:
        import_app(["deep"])
    first, *trace = str(caught.value).splitlines()
    assert first == f"cannot import the app 'deep': KeyError: 'DSN' ({apps}/deeper.py:2)"
    assert [line.strip() for line in trace] == [
        f'File "{apps}/deep.py", line 1, in <module>',
        "import deeper",
        f'File "{apps}/deeper.py", line 4, in <module>',
        "connect()",
        f'File "{apps}/deeper.py", line 2, in connect',
        "raise KeyError('DSN')",
    ]


def test_a_module_that_imports_the_tasks_is_no_mistake(apps: Path) -> None:
    (apps / "shop").mkdir()
    (apps / "shop/__init__.py").write_text("")
    (apps / "shop/tasks.py").write_text(
        "from rqueue.tasks.decorator import task\nfrom shop_registry import tasks\n"
        "@task(registry=tasks)\n"
        "def sell(): ...\n"
    )
    (apps / "shop/worker.py").write_text("import shop.tasks\n")
    (apps / "shop/late.py").write_text(
        "from importlib import import_module as load\nload('shop.tasks')\n"
    )
    tasks = Registry()
    sys.modules["shop_registry"] = ModuleType("shop_registry")
    sys.modules["shop_registry"].tasks = tasks  # type: ignore[attr-defined]
    modules = ["shop.late", "shop.worker", "goodapp"]
    idle = import_app(modules, tasks)
    assert idle == ["goodapp"]
    assert doubts(idle, [], tasks) == ["module 'goodapp' defines no task, and imports none"]


def test_a_shard_has_the_tasks_of_its_queue() -> None:
    tasks = Registry()
    task(name="sell", queue="orders", registry=tasks)(print)
    assert doubts([], ["orders", "orders~2"], tasks) == []
    (said,) = doubts([], ["ordres~2"], tasks)
    assert "did you mean 'orders'?" in said


def test_a_pool_logs_it_once_and_whole(make_pool: Make, apps: Path) -> None:
    pool = make_pool(app=["deep"], path=str(apps), processes=3)
    assert pool.ended() == 1
    assert pool.log.count("cannot import the app 'deep'") == 1
    assert pool.log.count("in connect") == 1


def test_a_queue_that_no_task_goes_to_and_a_module_without_tasks_are_named_once(
    make_pool: Make, queue: Queue, queue_name: str
) -> None:
    pool = make_pool(app=[APP, "json"], queues=["defualt", queue_name], processes=3)
    assert queue.enqueue("note", f"{queue_name}:k", "x").result(PATIENCE) is None
    pool.said("is ready after", 3)
    assert pool.log.count("module 'json' defines no task, and imports none") == 1
    assert (
        pool.log.count("no task goes to queue 'defualt' by default: did you mean 'default'?") == 1
    )
    said = f"no task goes to queue '{queue_name}' by default: they go to 'default'"
    assert pool.log.count(said) == 1
    assert pool.drained() == 0


@pytest.mark.parametrize(
    ("environ", "url", "namespace"),
    [
        ({}, "redis://pool/1", "shop"),
        ({"RQUEUE_URL": "redis://pool/1"}, "redis://pool/1", "shop"),
        ({"RQUEUE_NAMESPACE": "own"}, "redis://pool/1", "own"),
        ({"RQUEUE_URL": "redis://other"}, "redis://other", "rqueue"),
        ({"REDIS_URL": "redis://other"}, "redis://other", "rqueue"),
    ],
)
def test_what_a_job_enqueues_goes_where_its_pool_is(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], url: str, namespace: str
) -> None:
    """Unless the environment says otherwise: `--url` and `--namespace` were the pool's alone."""
    for name in ("RQUEUE_URL", "REDIS_URL", "RQUEUE_NAMESPACE"):
        monkeypatch.setenv(name, environ.get(name, ""))
        if name not in environ:
            monkeypatch.delenv(name)
    say_where(Settings(url="redis://pool/1", namespace="shop"))
    assert (Settings.load().url, Settings.load().namespace) == (url, namespace)


def test_an_ordinary_pool_says_nothing(make_pool: Make) -> None:
    pool = make_pool(queues=["default"])
    pool.said("is ready after")
    assert "WARNING" not in pool.log
    assert pool.drained() == 0


def test_the_times_of_a_log_are_in_one_zone(make_pool: Make, apps: Path) -> None:
    (apps / "django_like.py").write_text(
        "import os, time\nos.environ['TZ'] = 'America/Chicago'\ntime.tzset()\nimport " + APP
    )
    pool = make_pool(app=["django_like"], path=str(apps), processes=1)
    pool.said("is ready after")
    assert pool.drained() == 0
    times = [
        datetime.strptime(found, "%Y-%m-%d %H:%M:%S,%f%z")
        for found in re.findall(r"^\d{4}-\d\d-\d\d [\d:,]+Z", pool.log, re.M)
    ]
    now = datetime.now(UTC)
    assert len(times) > 2
    assert all(now - timedelta(minutes=5) < time < now + timedelta(minutes=1) for time in times)
