"""What a worker process holds for its jobs as long as it lives: lifespans, dependencies of the
process, and the hooks of its start and end."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar

from rqueue.logs import logger
from rqueue.tasks import app
from rqueue.tasks.app import Lifespan
from rqueue.tasks.dependencies import Provider, Resource, plan
from rqueue.tasks.middleware import WorkerInfo, has
from rqueue.tasks.task import Task
from rqueue_workers.worker.app_import import AppError, failed
from rqueue_workers.worker.composing import Held, held_sources
from rqueue_workers.worker.executors.event_loop import EventLoopExecutor

log = logger("rqueue.worker")

T = TypeVar("T")


class Services:
    """Opened before the first job, in their order, and closed in the reverse of it after the last
    one is settled. All in the main thread; what is async runs on the loop of the async jobs.

    held: what is made here by its source, for the jobs.
    """

    def __init__(self, info: WorkerInfo, tasks: Sequence[Task[Any, Any]], held: Held) -> None:
        self._info = info
        self._held = held
        needs = [need for task in tasks for need in plan(task.name, task.function)]
        self._sources = list(dict.fromkeys(held_sources(tuple(needs))))
        self._middleware = tuple(app.middleware())
        self._apps = app.apps()
        self._loop: EventLoopExecutor | None = None
        self._ends: list[tuple[str, Callable[[], None]]] = []

    @property
    def waits(self) -> bool:
        """Whether something of it may be async, and needs a loop."""
        if any(isinstance(source, Provider) and source.waits for source in self._sources):
            return True
        hooks = (getattr(one, name) for one in self._middleware for name in ("startup", "shutdown"))
        return any(one.lifespan is not None for one in self._apps) or any(
            map(inspect.iscoroutinefunction, hooks)
        )

    def open(self, loop: EventLoopExecutor | None) -> None:
        """Begin all of it. Raises AppError where something fails; what began before is ended."""
        self._loop = loop
        try:
            given: list[Any] = []
            for one in self._apps:
                if one.lifespan is not None:
                    value = self._do(f"lifespan '{_name(one.lifespan)}'", self._begin, one.lifespan)
                    given += value if isinstance(value, tuple) else [value]
            for source in self._sources:
                if isinstance(source, Resource):
                    self._held[source] = _find(source, given)
                else:
                    name = f"dependency '{source.name}'"
                    self._held[source] = self._do(name, self._make, source)
            for hooks in self._middleware:
                name = type(hooks).__name__
                if has(hooks, "startup"):
                    self._do(f"{name}.startup", self._call, hooks.startup)
                if has(hooks, "shutdown"):
                    self._ends.append((f"{name}.shutdown", partial(self._call, hooks.shutdown)))
        except AppError:
            self.close()
            raise

    def close(self) -> None:
        """End all of it, in the reverse order. What fails is logged, and the rest goes on."""
        while self._ends:
            name, end = self._ends.pop()
            try:
                end()
            except Exception:
                log.exception("%s failed at its end", name)

    def _do(self, name: str, action: Callable[[T], Any], of: T) -> Any:
        try:
            return action(of)
        except AppError:
            raise
        except BaseException as error:
            raise AppError(failed(f"{name} failed, and the worker cannot begin", error)) from error

    def _call(self, hook: Callable[[WorkerInfo], Any]) -> None:
        answer = hook(self._info)
        if inspect.iscoroutine(answer):
            self._wait(answer)

    def _begin(self, lifespan: Lifespan) -> Any:
        return self._enter(lifespan(self._info))

    def _make(self, source: Provider) -> Any:
        """The value of a dependency of the process."""
        given = {name: self._held[inner] for name, inner in source.needs}
        if source.kind == "gen":
            return self._enter(contextmanager(source.call)(**given))
        if source.kind == "asyncgen":
            return self._enter(asynccontextmanager(source.call)(**given))
        value = source.call(**given)
        return self._wait(value) if source.kind == "async" else value

    def _enter(self, manager: Any) -> Any:
        """Enter a context manager, which is left at the end."""
        if hasattr(manager, "__aenter__"):
            kept = _Kept(manager)
            value = self._wait(kept.enter())
            self._ends.append((repr(manager), lambda: self._wait(kept.leave())))
            return value
        if hasattr(manager, "__enter__"):
            value = manager.__enter__()
            self._ends.append((repr(manager), lambda: manager.__exit__(None, None, None)))
            return value
        kind = "asynccontextmanager" if inspect.isasyncgen(manager) else "contextmanager"
        raise TypeError(f"it is no context manager: put @{kind} above it")

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        if self._loop is None:
            work.close()
            raise AppError("the app has async hooks, and a pool without async slots runs none")
        return self._loop.complete(work)


class _Kept:
    """An async context manager, entered and left by one asyncio task, as some of them ask for."""

    def __init__(self, manager: AbstractAsyncContextManager[Any]) -> None:
        self._manager = manager

    async def enter(self) -> Any:
        loop = asyncio.get_running_loop()
        entered: asyncio.Future[Any] = loop.create_future()
        self._end = asyncio.Event()
        self._task = asyncio.Task(self._keep(entered), loop=loop)
        await asyncio.wait({entered, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if not entered.done():
            self._task.result()
        return entered.result()

    async def _keep(self, entered: asyncio.Future[Any]) -> None:
        async with self._manager as value:
            entered.set_result(value)
            await self._end.wait()

    async def leave(self) -> None:
        self._end.set()
        await self._task


def _find(source: Resource, given: Sequence[Any]) -> Any:
    found = [value for value in given if isinstance(value, source.type)]
    if len(found) == 1:
        return found[0]
    many = f"{len(found)} of them" if found else "none"
    raise AppError(
        f"the app cannot be used: {source.place} asks for the {source.type.__name__} of a lifespan,"
        f" and the lifespans gave {many}"
    )


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
