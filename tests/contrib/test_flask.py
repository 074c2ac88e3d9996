"""The extension of Flask: settings from the config, jobs in the application's context."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rqueue.client import default_queues
from rqueue.client._sync.queue import Queue
from rqueue.contrib.flask import Rqueue, extension
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, LifecycleError
from rqueue.tasks import app as app_module
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry, registry
from tests.support.composed_jobs import for_jobs
from tests.support.followed_page import EXAMPLES, NOT_AN_ID, FollowedPage


@pytest.fixture
def tasks(no_defaults: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """The registry, without what an application puts around jobs."""
    monkeypatch.setattr(extension, "_app", None)
    monkeypatch.setattr(app_module, "_apps", [])
    yield registry


def make_app(url: str, **config: Any) -> Any:
    from flask import Flask

    app = Flask("shop")
    app.config.update(RQUEUE_URL=url, **config)
    return app


def test_the_config_says_where_the_queues_are(tasks: Registry, server: EmbeddedRedis) -> None:
    queues = Rqueue()
    with pytest.raises(LifecycleError, match="init_app"):
        queues.queue("mail")
    queues.init_app(make_app(server.url, RQUEUE_NAMESPACE="shop", RQUEUE_LEASE="10s"))
    settings = queues.queue("mail").settings
    assert (settings.url, settings.namespace, settings.lease_ms) == (server.url, "shop", 10_000)
    assert default_queues.queue("mail") is queues.queue("mail")
    with pytest.raises(ConfigError, match="RQUEUE_LEASE"):
        Rqueue(make_app(server.url, RQUEUE_LEASE="5 fortnights"))


def test_a_job_runs_in_a_context_of_its_own(tasks: Registry, server: EmbeddedRedis) -> None:
    from flask import current_app, g, has_app_context

    app = make_app(server.url, SHOP="Ada's")
    ended: list[Any] = []
    app.teardown_appcontext(ended.append)
    for one in (make_app(server.url), app):  # the last one's
        Rqueue().init_app(one)

    def look(fail: bool = False) -> tuple[str, bool]:
        fresh = "seen" not in g
        g.seen = True
        if fail:
            raise ValueError("no")
        return current_app.config["SHOP"], fresh

    async def alook() -> tuple[str, bool]:
        await asyncio.sleep(0)
        return look()

    run: Any = for_jobs(task(registry=Registry())(look))
    assert run() == run() == ("Ada's", True)
    assert ended == [None, None]
    with pytest.raises(ValueError, match="no") as raised:
        run(True)
    assert ended[2:] == [raised.value]
    arun: Any = for_jobs(task(registry=Registry())(alook))

    async def both() -> Any:
        return await asyncio.gather(arun(), arun())

    assert asyncio.run(both()) == [("Ada's", True)] * 2
    assert not has_app_context()


def test_the_command_is_the_command_line(
    tasks: Registry, queue_name: str, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RQUEUE_URL", "redis://127.0.0.1:1")  # the config wins
    with Queue(queue_name, server.url) as queue:
        queue.send("t", [1])
    app = make_app(server.url)
    Rqueue(app)
    said = app.test_cli_runner().invoke(args=["rqueue", "jobs", queue_name, "--json"])
    assert said.exit_code == 0 and '"args":[1]' in said.output
    said = app.test_cli_runner().invoke(args=["rqueue", "--help"])
    assert "Usage: flask rqueue" in said.output
    said = app.test_cli_runner().invoke(args=["rqueue", "worker", "--help"])
    assert "Usage: flask rqueue worker [OPTIONS] [QUEUE]..." in said.output
    assert "app.tasks" not in said.output
    said = app.test_cli_runner().invoke(args=["rqueue", "worker", "rqueue.contrib", "mail"])
    assert said.exit_code == 2 and "'rqueue.contrib' is a module" in said.output


def test_the_page_is_the_example() -> None:
    page = FollowedPage("flask.md", EXAMPLES)
    folder = EXAMPLES / "flask_shop"
    assert page.files == {path.name: path.read_text() for path in folder.glob("*.py")}


def test_the_page_is_followed_word_for_word(tmp_path: Path) -> None:
    """A real web server, a real pool: an order is placed, its receipt comes."""
    page = FollowedPage("flask.md", tmp_path)
    page.make_files()
    try:
        page.follow()
        for unknown in ("nosuch", NOT_AN_ID, "x" * 600):
            assert page.status_of(f"/receipts/{unknown}") == 404, page.log
        assert page.end() == [0, 0], page.log
        assert "Traceback" not in page.log
    finally:
        page.close()
