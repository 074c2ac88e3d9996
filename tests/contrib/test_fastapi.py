"""The lifespan and the dependencies of FastAPI and Starlette."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rqueue.client import default_queues
from rqueue.client._async.queue import AsyncQueue
from rqueue.contrib.fastapi import QueueDep, lifespan, queue_named
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, InvalidName
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from tests.support.composed_jobs import for_jobs
from tests.support.followed_page import EXAMPLES, NOT_AN_ID, FollowedPage
from tests.support.pages import DOCS


async def requested(app: Any, method: str, path: str) -> tuple[int, bytes]:
    """What an ASGI application answers."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [],
        "state": {},
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


def test_queues_are_dependencies(no_defaults: Any, server: EmbeddedRedis, queue_name: str) -> None:
    from typing import Annotated

    from fastapi import Depends, FastAPI

    api = FastAPI(lifespan=lifespan(url=server.url))

    @api.post("/named")
    async def named(queue: Annotated[AsyncQueue, Depends(queue_named(queue_name))]) -> str:
        return (await queue.send("t", [1])).queue

    @api.post("/default")
    async def default(queue: QueueDep) -> str:
        return queue.name

    async def main() -> None:
        async with api.router.lifespan_context(api):
            assert await requested(api, "POST", "/named") == (200, f'"{queue_name}"'.encode())
            assert await requested(api, "POST", "/default") == (200, b'"default"')
            assert (await default_queues.aqueue(queue_name).counts()).ready == 1
            api.dependency_overrides[queue_named("default")] = lambda: AsyncQueue("x", server.url)
            assert (await requested(api, "POST", "/default"))[1] == b'"x"'

    asyncio.run(main())
    with pytest.raises(InvalidName):
        queue_named("a\nb")


def test_the_end_closes_the_connections(no_defaults: Any, server: EmbeddedRedis) -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def own(app: str) -> AsyncIterator[dict[str, str]]:
        seen.append(app)
        yield {"who": "own"}
        seen.append("ended")

    async def main() -> None:
        async with lifespan(own, url=server.url)("app") as state:
            assert state == {"who": "own"}
            first = default_queues.aqueue()
            await first.counts()
        assert (no_defaults._async_roots, no_defaults._keepers) == ({}, {})
        assert default_queues.aqueue() is not first, "the next use opens others"
        await default_queues.adisconnect()
        await default_queues.adisconnect()

    asyncio.run(main())
    assert seen == ["app", "ended"]


def test_a_server_that_does_not_answer_is_a_warning(
    no_defaults: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with lifespan(url="redis://127.0.0.1:1")("app"):
            pass

    with caplog.at_level(logging.WARNING, "rqueue"):
        asyncio.run(main())
    assert "enqueues will fail until it answers" in caplog.text


def test_a_start_without_an_address_is_refused(
    no_defaults: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> None:
        async with lifespan()("app"):
            raise AssertionError("it started")

    with pytest.raises(ConfigError, match="RQUEUE_URL"):
        asyncio.run(main())


def test_a_dependency_serves_jobs_too(
    no_defaults: Any, server: EmbeddedRedis, queue_name: str
) -> None:
    from fastapi import Depends

    default_queues.configure(server.url)

    provider = queue_named(queue_name)

    async def follow(number: int, *, mail: Any = Depends(provider)) -> str:
        return str((await mail.send("t", [number])).queue)

    assert asyncio.run(for_jobs(task(registry=Registry())(follow))(7)) == queue_name


def test_a_server_that_is_away_is_answered_with_503(no_defaults: Any) -> None:
    from fastapi import FastAPI

    page = (DOCS / "fastapi.md").read_text(encoding="utf-8")
    handler = page.partition("## While Redis is away")[2].partition("```python")[2]
    api = FastAPI()
    exec(compile(handler.partition("```")[0], "fastapi.md", "exec"), {"api": api})
    away = AsyncQueue("mail", "redis://127.0.0.1:1")

    @api.post("/orders")
    async def place_order() -> str:
        return (await away.send("t", [1])).id

    async def main() -> None:
        status, body = await requested(api, "POST", "/orders")
        assert (status, body) == (503, b'{"detail":"try again","stored":false}')
        await away.close()

    asyncio.run(main())


def test_the_page_is_the_example() -> None:
    page = FollowedPage("fastapi.md", EXAMPLES)
    folder = EXAMPLES / "fastapi_shop"
    assert page.files == {path.name: path.read_text() for path in folder.glob("*.py")}


def test_the_page_is_followed_word_for_word(tmp_path: Path) -> None:
    """A real web server, a real pool: an order is placed, its receipt comes."""
    page = FollowedPage("fastapi.md", tmp_path)
    page.make_files()
    try:
        page.follow()
        for unknown in ("nosuch", NOT_AN_ID, "x" * 600):
            assert page.status_of(f"/receipts/{unknown}") == 404, page.log
        assert page.end() == [0, 0], page.log
        assert "Traceback" not in page.log
    finally:
        page.close()
