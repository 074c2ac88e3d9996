"""The app of Django: its setting, its checks, its command, connections around jobs."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rqueue.client import default_queues
from rqueue.errors import ConfigError
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from tests.support.followed_page import EXAMPLES, NOT_AN_ID, FollowedPage


def ids(messages: Any) -> list[str]:
    return [message.id for message in messages]


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"ulr": "redis://localhost"}, "did you mean 'url'"),
        ({"url": "localhost"}, r"RQUEUE\['url'\]"),
        ({"lease": "5 fortnights"}, r"RQUEUE\['lease'\]"),
        ({"on_commit": "replica"}, r"'default', 'other'"),
        ({"queues": "mail"}, r"a list of queues' names"),
        ({"queues": ["a\nb"]}, "control character"),
        (["redis://localhost"], "not a dict"),
    ],
)
def test_what_is_wrong_with_the_setting_is_reported_by_the_check(
    django: Any, setting: Any, said: str
) -> None:
    from django.core.checks import run_checks
    from django.test.utils import override_settings

    with override_settings(RQUEUE=setting):
        (problem,) = run_checks(tags=["rqueue"])
        assert problem.id == "rqueue.E001"
        with pytest.raises(ConfigError, match=said) as raised:  # and by the first use
            task(registry=Registry())(ids).enqueue([])
        assert str(raised.value) == problem.msg
    assert run_checks(tags=["rqueue"]) == []


def test_the_setting_says_where_the_queues_are(django: Any) -> None:
    assert default_queues.queue("x").settings.url == django.queue.settings.url
    with django.override(namespace="shop", lease="10s", signing_keys={"k": "s" * 16}):
        settings = default_queues.queue("x").settings
        assert (settings.namespace, settings.lease_ms) == ("shop", 10_000)
        from rqueue.contrib.django.conf import environ

        assert environ() == {
            "RQUEUE_URL": django.queue.settings.url,
            "RQUEUE_NAMESPACE": "shop",
            "RQUEUE_LEASE": "10000ms",
            "RQUEUE_SIGNING_KEYS": f"k:{'s' * 16}",
        }
    assert default_queues.queue("x").settings.namespace == "rqueue"


def test_a_task_of_an_unknown_queue_is_warned_of(
    django: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rqueue.contrib.django import checks

    tasks = Registry()
    task(queue="mial", registry=tasks)(ids)
    monkeypatch.setattr(checks, "registry", tasks)
    assert checks.check_tasks() == []
    with django.override(queues=["mail"]):
        (warning,) = checks.check_tasks()
    assert (warning.id, warning.hint) == ("rqueue.W002", "did you mean 'mail'?")


PROJECT = """
import sys
import django
from django.conf import settings

settings.configure(
    INSTALLED_APPS=["rqueue.contrib.django", "shop", "plain"],
    RQUEUE={"url": "redis://127.0.0.1:1/0", "queues": ["default"]},
)
django.setup()
from django.core.management import call_command
call_command("check")
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", ["no issues"]),
        (
            "from rqueue import task\n@task(queue='elsewhere')\ndef f(): ...\n",
            ["rqueue.W002", "task 'shop.tasks.f' goes to queue 'elsewhere'"],
        ),
        (
            "from rqueue import task\n\n@task(priority=99)\ndef f(): ...\n",
            ["rqueue.E004", "module 'shop.tasks' cannot be imported: ConfigError: priority", ":3;"],
        ),
        ("import shop.nothing", ["rqueue.E004", "ModuleNotFoundError: No module named"]),
        ("def f(:", ["rqueue.E004", "SyntaxError"]),
    ],
)
def test_the_check_sees_modules_that_nothing_has_imported(
    tmp_path: Path, code: str, said: list[str]
) -> None:
    for app in ("shop", "plain"):
        (tmp_path / app).mkdir()
        (tmp_path / app / "__init__.py").touch()
    (tmp_path / "shop" / "tasks.py").write_text(code)
    (tmp_path / "project.py").write_text(PROJECT)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    run = subprocess.run(
        [sys.executable, "project.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env=environ,
    )
    for words in said:
        assert words in run.stdout + run.stderr
    assert run.returncode == (1 if said[0].startswith("rqueue.E") else 0)


def test_a_name_of_modules_that_no_app_has_is_warned_of(django: Any) -> None:
    from django.core.checks import run_checks

    with django.override(modules=["models", "taks", "shop.tasks"]):
        first, second = run_checks(tags=["rqueue"])
    assert {first.id, second.id} == {"rqueue.W005"}
    assert "no installed app has a module 'taks'" in first.msg and "'shop.tasks'" in second.msg
    with django.override(modules=["models"]):
        assert run_checks(tags=["rqueue"]) == []


def test_the_server_is_looked_at_on_deployment(django: Any) -> None:
    from django.core.checks import run_checks

    deploy: Any = {"tags": ["rqueue"], "include_deployment_checks": True}
    assert set(ids(run_checks(**deploy))) <= {"rqueue.W004"}
    with django.override(url="redis://127.0.0.1:1"):
        assert ids(run_checks(**deploy)) == ["rqueue.W003"]
        assert run_checks(tags=["rqueue"]) == [], "nothing is connected to without --deploy"


def test_nothing_says_where_redis_is(
    django: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from django.core.checks import run_checks

    monkeypatch.chdir(tmp_path)
    with django.override(url=None):
        assert ids(run_checks(tags=["rqueue"])) == ["rqueue.W001"]


def test_the_command_is_the_command_line(
    django: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from django.core.management import ManagementUtility, call_command

    for name in ("URL", "NAMESPACE"):
        monkeypatch.setenv(f"RQUEUE_{name}", "")  # the command sets them
    django.queue.send("t", [1])
    with pytest.raises(SystemExit) as ended:
        call_command("rqueue", "jobs", django.queue.name, "--json")
    assert ended.value.code == 0 and '"args":[1]' in capsys.readouterr().out
    program = ["/srv/manage.py", "rqueue", "--pythonpath", "/srv", "queues", django.queue.name]
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(SystemExit) as ended:
        ManagementUtility(program).execute()
    assert ended.value.code == 0 and django.queue.name in capsys.readouterr().out


@pytest.mark.parametrize("args", [["worker", "--dev"], ["queues"]])
def test_wrong_settings_are_one_line(
    django: Any, capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    from django.core.management import CommandError, ManagementUtility, call_command

    said = "RQUEUE: there is no key 'queus': did you mean 'queues'?"
    with django.override(queus=["mail"]):
        with pytest.raises(SystemExit) as ended:
            ManagementUtility(["/srv/manage.py", "rqueue", *args]).execute()
        assert (ended.value.code, capsys.readouterr()) == (2, ("", f"{said}\n"))
        with pytest.raises(CommandError, match=said.replace("?", "")):
            call_command("rqueue", *args)


@pytest.mark.parametrize(
    ("args", "queues", "pool"),
    [
        (["worker"], [], ["worker", "APP"]),
        (["worker", "mail", "--processes", "2"], [], ["worker", "APP", "mail", "--processes", "2"]),
        (
            ["--url", "worker", "--namespace=a", "worker", "--dev"],
            ["x", "y"],
            ["--url", "worker", "--namespace=a", "worker", "APP", "--dev", "x", "y"],
        ),
        (["worker", "mail"], ["x"], ["worker", "APP", "mail"]),
        (
            ["worker", "--pool-file", "pool.toml"],
            ["x"],
            ["worker", "APP", "--pool-file", "pool.toml"],
        ),
        (["queues", "worker"], ["x"], None),
        ([], ["x"], None),
    ],
)
def test_a_pool_gets_the_project_and_its_queues(
    args: list[str], queues: list[str], pool: list[str] | None
) -> None:
    from rqueue.contrib.command_line import with_app
    from rqueue.contrib.django.management.commands.rqueue import with_queues

    assert with_app(with_queues(args, queues), "APP") == pool


def worker_answers(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[object, str]:
    """The exit code of `manage.py rqueue worker`, and what it says."""
    from django.core.management import ManagementUtility

    with pytest.raises(SystemExit) as ended:
        ManagementUtility(["/srv/manage.py", "rqueue", "worker", *args]).execute()
    said = capsys.readouterr()
    return ended.value.code, said.out + said.err


def test_the_help_of_worker_is_that_of_the_project(
    django: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with django.override(queues=["mail"]):
        code, said = worker_answers(capsys, "--threads", "2", "--help")
    assert code == 0
    assert said.startswith("Usage: manage.py rqueue worker [OPTIONS] [QUEUE]...\n")
    assert "  manage.py rqueue worker mail reports --processes 4 --threads 8\n" in said
    assert "RQUEUE['queues']" in said
    assert "APP" not in said and "app.tasks" not in said
    code, said = worker_answers(capsys, "--threds", "2")
    assert code == 2
    assert "Usage: manage.py rqueue worker [OPTIONS]" in said and "--threads" in said


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where this process would become a pool it ends with the pool's arguments."""

    def become(_program: str, args: list[str]) -> None:
        sys.exit(" ".join(args[args.index("worker") :]))

    monkeypatch.setattr(os, "execv", become)
    for name in ("PYTHONPATH", "RQUEUE_URL", "RQUEUE_NAMESPACE"):
        monkeypatch.setenv(name, "")


@pytest.mark.parametrize(
    ("words", "queues"),
    [
        (["tests.contrib.django_app", "mail"], []),
        (["tests.contrib.outbox_app,shop.tasks", "mail"], []),
        (["tests"], ["mail"]),
    ],
)
def test_a_module_in_the_place_of_a_queue_is_refused(
    django: Any,
    became: None,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    queues: list[str],
) -> None:
    with django.override(queues=queues):
        code, said = worker_answers(capsys, *words)
    assert code == 2
    assert f"{words[0]!r} is a module; the application is known here, so name queues only" in said
    assert "manage.py rqueue worker mail" in said and "Traceback" not in said


@pytest.mark.parametrize(
    ("word", "queues"),
    [
        ("mail.urgent", []),
        ("tests", []),
        ("email", ["mail"]),
        ("tests.contrib.django_app", ["tests.contrib.django_app"]),
        (".mail", []),
    ],
)
def test_what_may_be_a_queue_is_served(
    django: Any, became: None, word: str, queues: list[str]
) -> None:
    from django.core.management import call_command

    with django.override(queues=queues), pytest.raises(SystemExit) as ended:
        call_command("rqueue", "worker", word)
    assert ended.value.code == f"worker rqueue.contrib.django.worker {word}"


def test_old_connections_are_closed_around_jobs(django: Any) -> None:
    """In every thread its own; one with a transaction under way is left alone."""
    from django.db import connection, connections

    from rqueue.contrib.django.connections import around_job

    closed: list[int] = []

    def job() -> None:
        connections["other"].ensure_connection()
        connections["other"].close_at = 0  # it has outlived CONN_MAX_AGE
        connections["other"].close = lambda: closed.append(threading.get_ident())

    def in_a_thread() -> None:
        with around_job():
            job()
        connections["other"].connection.close()  # one in memory stays open

    thread = threading.Thread(target=in_a_thread)
    thread.start()
    thread.join(20)
    assert closed == [thread.ident]
    with django.transaction.atomic():
        with around_job():
            connection.close_at = 0
        assert connection.connection is not None and connection.in_atomic_block
        django.Group.objects.create(name="still there")
    connection.close_at = None
    assert django.Group.objects.filter(name="still there").exists()


def test_a_worker_without_settings_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "tasks.py").write_text("from django.contrib.auth.models import User\n")
    program = "from rqueue_workers.worker.app_import import import_app; import_app(['shop.tasks'])"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "; a Django project's pool is started by manage.py rqueue worker" in run.stderr


def test_the_page_is_the_example() -> None:
    page = FollowedPage("django.md", EXAMPLES)
    example = EXAMPLES / "django_shop"
    there = {
        str(path.relative_to(example)): path.read_text(encoding="utf-8")
        for path in example.rglob("*.py")
        if "migrations" not in path.parts
    }
    assert page.files == there


def test_the_page_is_followed_word_for_word(tmp_path: Path) -> None:
    """A real web server, a real pool: an order is placed, its receipt comes."""
    page = FollowedPage("django.md", tmp_path)
    page.make_files()
    try:
        page.follow()
        for unknown in ("nosuch", NOT_AN_ID, "x" * 600):
            assert page.status_of(f"/receipts/{unknown}") == 404, page.log
        assert page.end() == [0, 0], page.log
        assert "Traceback" not in page.log
    finally:
        page.close()
