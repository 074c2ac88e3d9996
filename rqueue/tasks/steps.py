"""Durable steps and positions of loops: what a job has done is not done again by its next
attempt."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from time import monotonic
from typing import Any, Protocol, TypeVar
from weakref import WeakValueDictionary

from rqueue.errors import NotEncodable, NotKept
from rqueue.model.envelope import decode_result, encode_result
from rqueue.model.expect import expect
from rqueue.model.json_forms import typed, untyped
from rqueue.model.steps import KeptSteps
from rqueue.tasks.control import Snooze

__all__ = ["JobSteps", "StepKeeper"]

C = TypeVar("C")
T = TypeVar("T")

SAVE_S = 1.0
"""Seconds between two times that a loop's position is saved."""

RESULT_MOST, STEPS_MOST, ALL_MOST = 65_536, 1000, 400_000


class StepKeeper(Protocol):
    """Of the worker: keeps text with a job that it runs. behind: by the ids of jobs, those whose
    loops have come further than was saved."""

    behind: WeakValueDictionary[str, JobSteps]

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
        """True if an earlier attempt did this step. Raises NotKept if this attempt has had a step
        or a loop of that name, or if the job has no room for another step."""
        expect("name", name, str, "a text")
        if name in self._named:
            raise self._refused(name, "the name is there twice in one attempt")
        self._named.add(name)
        if name in self._kept.results:
            return True
        if len(self._kept.results) >= STEPS_MOST:
            raise self._refused(name, f"a job has at most {STEPS_MOST} steps")
        return False

    def _refused(self, name: str, problem: str) -> NotKept:
        return NotKept(self._task, f"'{name}': {problem}")

    def result(self, name: str) -> Any:
        """What a step returned, in its JSON form."""
        return self._kept.results[name]

    def _add(self, name: str, result: Any) -> str:
        try:
            payload = encode_result(result)
        except NotEncodable as error:
            raise self._refused(name, error.problem) from None
        if len(payload) > RESULT_MOST:
            raise self._refused(name, f"{len(payload):,} bytes, at most {RESULT_MOST:,} fit")
        self._kept.results[name] = decode_result(payload)
        try:
            return self.text()
        except NotKept:
            del self._kept.results[name]
            raise

    def done(self, name: str, result: Any) -> Any:
        """Keep what a step returned. Raises NotKept, and as `StepKeeper`."""
        self._keeper.keep_steps(*self._job, self._add(name, result))
        return self.result(name)

    async def adone(self, name: str, result: Any) -> Any:
        """The same on the event loop."""
        await self._keeper.akeep_steps(*self._job, self._add(name, result))
        return self.result(name)

    def text(self) -> str:
        """All steps and positions, as they are kept. Raises NotKept."""
        text = self._kept.text()
        if len(text) > ALL_MOST:
            said = f"{len(text):,} bytes of steps and positions, at most {ALL_MOST:,} fit in a job"
            raise NotKept(self._task, said)
        return text

    # -- loops -------------------------------------------------------------------------------------

    def begin(self, name: str) -> Any:
        """The position that was saved; None at the beginning. Raises as `known`."""
        self.known(name)
        return untyped(self._kept.positions.get(name))

    def _checked(self, name: str, position: Any) -> Any:
        """The position of a row whose turn begins. Raises NotKept if a later attempt would get
        another value."""
        try:
            kept = typed(position)
            encode_result(kept)
        except (ValueError, NotEncodable) as error:
            said = error.problem if isinstance(error, NotEncodable) else str(error)
            raise self._refused(name, f"its position: {said}") from None
        return kept

    def _due(self, name: str, position: Any, saved_at: float) -> str | None:
        """The text to keep now that a row's turn is over; None if it is too soon. Raises
        NotKept."""
        self._kept.positions[name] = position
        if not self._stopping() and monotonic() - saved_at < SAVE_S:
            self._keeper.behind[self._job[0]] = self
            return None
        return self.text()

    def iterate(self, name: str, source: Callable[[Any], Iterable[tuple[C, T]]]) -> Iterator[T]:
        """The rows of `source(position)`; the position of each is saved when its turn is over, once
        a second at the most, at the end, and where the worker stops, which is a `Snooze`."""
        saved_at = monotonic()
        for position, row in source(self.begin(name)):
            kept = self._checked(name, position)
            yield row
            if (text := self._due(name, kept, saved_at)) is not None:
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
            kept = self._checked(name, position)
            yield row
            if (text := self._due(name, kept, saved_at)) is not None:
                await self._keeper.akeep_steps(*self._job, text)
                saved_at = monotonic()
                if self._stopping():
                    raise Snooze(0, "the worker stops")
        if (text := self._due(name, self._kept.positions.get(name), 0.0)) is not None:
            await self._keeper.akeep_steps(*self._job, text)


def call(steps: JobSteps, name: str, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Run a step once, also if the job is tried again; what it returned."""
    if steps.known(name):
        found: T = steps.result(name)
        return found
    result: T = steps.done(name, function(*args, **kwargs))
    return result


async def acall(
    steps: JobSteps, name: str, function: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any
) -> T:
    """The same on the event loop."""
    if steps.known(name):
        found: T = steps.result(name)
        return found
    result: T = await steps.adone(name, await function(*args, **kwargs))
    return result
