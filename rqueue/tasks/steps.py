"""Durable steps and positions of loops: what a job has done is not done again by its next
attempt."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from time import monotonic
from typing import Any, Protocol, TypeVar

from rqueue.errors import ConfigError, NotEncodable
from rqueue.model.envelope import decode_result, encode_result
from rqueue.model.expect import expect
from rqueue.model.steps import KeptSteps
from rqueue.tasks.control import Snooze

__all__ = ["JobSteps", "StepKeeper"]

C = TypeVar("C")
T = TypeVar("T")

SAVE_S = 1.0
"""Seconds between two times that a loop's position is saved."""

RESULT_MOST, STEPS_MOST, ALL_MOST = 65_536, 1000, 400_000


class StepKeeper(Protocol):
    """Of the worker: keeps text with a job that it runs."""

    def keep_steps(self, id: str, deliveries: int, text: str) -> None:
        """From the job's own thread. Raises `Cancelled` where the job is not held any more, and the
        server errors."""

    async def akeep_steps(self, id: str, deliveries: int, text: str) -> None:
        """The same on the event loop."""


class JobSteps:
    """Of one attempt. stopping: asks whether the worker is about to stop."""

    def __init__(
        self,
        keeper: StepKeeper,
        task: str,
        id: str,
        deliveries: int,
        value: bytes,
        stopping: Callable[[], bool],
    ) -> None:
        self._keeper = keeper
        self._task = task
        self._job = id, deliveries
        self._kept = KeptSteps.of(value)
        self._stopping = stopping
        self._named: set[str] = set()

    # -- steps -------------------------------------------------------------------------------------

    def known(self, name: str) -> bool:
        """Whether a step was done by an attempt before. Raises ConfigError where this one has had a
        step, or a loop, of that name."""
        expect("name", name, str, "a text")
        if name in self._named:
            raise ConfigError("step", f"'{name}' is there twice in one attempt")
        self._named.add(name)
        return name in self._kept.results

    def result(self, name: str) -> Any:
        """What a step returned, in its JSON form."""
        return self._kept.results[name]

    def _add(self, name: str, result: Any) -> str:
        payload = encode_result(result, self._task)
        if len(payload) > RESULT_MOST:
            said = f"step '{name}' returned {len(payload)} bytes of JSON, at most {RESULT_MOST} fit"
            raise NotEncodable("", self._task, said)
        if len(self._kept.results) >= STEPS_MOST:
            raise ConfigError("step", f"a job has at most {STEPS_MOST} steps")
        self._kept.results[name] = decode_result(payload)
        try:
            return self._text()
        except ConfigError:
            del self._kept.results[name]
            raise

    def done(self, name: str, result: Any) -> Any:
        """A step has returned: keep that. Raises NotEncodable, ConfigError, and as `StepKeeper`."""
        self._keeper.keep_steps(*self._job, self._add(name, result))
        return self.result(name)

    async def adone(self, name: str, result: Any) -> Any:
        """The same on the event loop."""
        await self._keeper.akeep_steps(*self._job, self._add(name, result))
        return self.result(name)

    def _text(self) -> str:
        text = self._kept.text()
        if len(text) > ALL_MOST:
            raise ConfigError(
                "step", f"{len(text)} bytes of steps, at most {ALL_MOST} fit in one job"
            )
        return text

    # -- loops -------------------------------------------------------------------------------------

    def begin(self, name: str) -> Any:
        """The position that was saved; None at the beginning. Raises as `known`."""
        self.known(name)
        return self._kept.positions.get(name)

    def _due(self, name: str, position: Any, saved_at: float) -> str | None:
        """A row's turn is over: what is to be kept now; None where it is too soon. Raises
        NotEncodable, and ConfigError."""
        self._kept.positions[name] = position
        if not self._stopping() and monotonic() - saved_at < SAVE_S:
            return None
        try:
            return self._text()
        except TypeError as error:
            raise NotEncodable("", self._task, f"position of '{name}': {error}") from None

    def iterate(self, name: str, source: Callable[[Any], Iterable[tuple[C, T]]]) -> Iterator[T]:
        """The rows of `source(position)`; the position of each is saved when its turn is over, once
        a second at the most, at the end, and where the worker stops, which is a `Snooze`."""
        saved_at = monotonic()
        for position, row in source(self.begin(name)):
            yield row
            if (text := self._due(name, position, saved_at)) is not None:
                self._keeper.keep_steps(*self._job, text)
                saved_at = monotonic()
                if self._stopping():
                    raise Snooze(0, "the worker stops")
        if (text := self._due(name, self._kept.positions.get(name), 0.0)) is not None:
            self._keeper.keep_steps(*self._job, text)

    async def aiterate(
        self, name: str, source: Callable[[Any], AsyncIterable[tuple[C, T]]]
    ) -> AsyncIterator[T]:
        """The same on the event loop."""
        saved_at = monotonic()
        async for position, row in source(self.begin(name)):
            yield row
            if (text := self._due(name, position, saved_at)) is not None:
                await self._keeper.akeep_steps(*self._job, text)
                saved_at = monotonic()
                if self._stopping():
                    raise Snooze(0, "the worker stops")
        if (text := self._due(name, self._kept.positions.get(name), 0.0)) is not None:
            await self._keeper.akeep_steps(*self._job, text)


def call(steps: JobSteps, name: str, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run a step once, also if the job is tried again; what it returned."""
    if steps.known(name):
        found: T = steps.result(name)
        return found
    result: T = steps.done(name, function(*args, **kwargs))
    return result


async def acall(
    steps: JobSteps, name: str, function: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any
) -> T:
    """The same on the event loop."""
    if steps.known(name):
        found: T = steps.result(name)
        return found
    result: T = await steps.adone(name, await function(*args, **kwargs))
    return result
