"""rqueue in Starlette, and in whatever runs a lifespan as it does; see `docs/fastapi.md`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar

from rqueue.client.default_queues import adisconnect, aqueue, configure
from rqueue.errors import EvictionPolicy, RedisUnavailable
from rqueue.logs import logger
from rqueue.protocol.advice import describe
from rqueue.settings import Settings
from rqueue.transport.server_check import aserver_facts

__all__ = ["lifespan"]

App = TypeVar("App")
Lifespan = Callable[[App], AbstractAsyncContextManager[Any]]

log = logger("rqueue")


def lifespan(
    own: Lifespan[App] | None = None,
    *,
    url: str | None = None,
    namespace: str | None = None,
    signing_keys: dict[str, str] | None = None,
    settings: Settings | None = None,
) -> Lifespan[App]:
    """The lifespan of an application that uses queues: `Starlette(lifespan=lifespan())`.

    At the start it looks at the server: one that cannot be used (too old, a replica, a wrong login)
    ends the start, one that does not answer is a warning in the log, as it may be back before the
    first request. At the end the connections of this event loop are closed. own: the application's
    own lifespan, which runs inside. The others say where the queues are, as `rqueue.configure`
    does; the variables RQUEUE_* where none of them is given. Raises ConfigError and the server
    errors at the start.
    """
    given = (url, namespace, signing_keys, settings)

    @asynccontextmanager
    async def run(app: App) -> AsyncIterator[Any]:
        if any(value is not None for value in given):
            configure(url, namespace=namespace, signing_keys=signing_keys, settings=settings)
        try:
            await _look()
            if own is None:
                yield None
            else:
                async with own(app) as state:
                    yield state
        finally:
            await adisconnect()

    return run


async def _look() -> None:
    try:
        facts = await aserver_facts(aqueue().redis)
    except RedisUnavailable as error:
        log.warning("%s; enqueues will fail until it answers", describe(error))
        return
    problem = facts.replica or facts.problem
    if problem is not None and not isinstance(problem, EvictionPolicy):
        raise problem
