"""Threads that run one at a time, in an order that the test chooses, in a time that it makes.

A worker is a main thread, a stand-by thread, threads and an event loop, that wait for sockets,
tokens and the clock. On the stage each is an actor: where it would wait it is parked, and goes on
when the test lets it and what it waits for is there. The same choices give the same course of
events.
"""

from __future__ import annotations

import asyncio
import selectors
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from rqueue.transport.resp import readable as real_readable

STUCK_S = 60.0
"""Real seconds after which an actor that does not come back to a waiting point counts as stuck."""

TURNS_MOST = 2_000
"""Resumptions, while no time passes and nothing new is asked, after which the actors spin."""

LOOKS_MOST = 500
"""Looks without waiting that one actor takes in an instant before it spins."""

INSTANT_S = 1e-6
"""The shortest that a wait for the clock takes."""


class Gone(BaseException):
    """The process that this actor belongs to has died: it is taken off the stage."""


class Stuck(AssertionError):
    """An actor waits for something that the stage does not know, or does not wait at all."""


class Spinning(AssertionError):
    """Actors go on and on although nothing happens."""


class Actor:
    """One thread. `owner`: whatever it belongs to; it ends when that has `dead` set, and stands
    still while that is `frozen`."""

    def __init__(self, name: str, owner: Any) -> None:
        self.name = name
        self.owner = owner
        self.go = threading.Semaphore(0)
        self.running = False
        self.ready: Callable[[], Any] = lambda: True
        self.until: float | None = None
        self.looks = 0
        self.looked_at = 0.0
        self.ident = 0

    def __repr__(self) -> str:
        return f"<{self.name}>"


class Stage:
    """The actors and their time. `now`: what `time.monotonic()` says on the stage."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.turns = 0
        """Resumptions since the last call of `settle`."""
        self.choices: deque[int] = deque()
        """Which of the actors that can go on goes first; 0, the one that came first, when empty."""
        self.pauses: deque[bool] = deque()
        """Whether an actor that meets a pause lets others go first; no, when empty."""
        self._actors: dict[threading.Thread, Actor] = {}
        self._changed = threading.Condition()
        self._real_start = threading.Thread.start

    # -- actors come and go ------------------------------------------------------------------------

    def cast(self, name: str, owner: Any, work: Callable[[], None]) -> None:
        """Begin a thread of its own; it stops at its first waiting point."""
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._resume(self._begin(thread, owner))

    def _begin(self, thread: threading.Thread, owner: Any) -> Actor:
        # parked from its first line on: beside the one that starts it, it would run in no order
        actor = Actor(thread.name, owner)
        work = thread.run

        def run() -> None:
            actor.ident = threading.get_ident()
            actor.go.acquire()
            try:
                self._check(actor)
                work()
            except Gone:
                pass
            finally:
                with self._changed:
                    self._actors.pop(thread)
                    self._changed.notify_all()

        thread.run = run  # type: ignore[method-assign]
        with self._changed:
            self._actors[thread] = actor
        self._real_start(thread)
        return actor

    def start(self, thread: threading.Thread) -> None:
        """Stands for `threading.Thread.start`: what an actor starts is one too."""
        me = self._actors.get(threading.current_thread())
        if me is None:
            self._real_start(thread)
        else:
            self._begin(thread, me.owner)

    @property
    def me(self) -> Actor | None:
        """The actor that asks."""
        return self._actors.get(threading.current_thread())

    def of(self, owner: Any) -> list[Actor]:
        """Its actors, in the order in which they came."""
        return [actor for actor in self._actors.values() if actor.owner is owner]

    def dismiss(self, owner: Any) -> None:
        """Take all of a dead owner's actors off the stage."""
        assert owner.dead
        for _ in range(100):
            left = [actor for actor in self.of(owner) if not actor.running]
            if not left:
                return
            self._resume(left[0])
        raise Stuck(f"{self.of(owner)} do not leave\n{self.stacks()}")

    # -- waiting points ----------------------------------------------------------------------------

    def wait(self, ready: Callable[[], Any], seconds: float | None = None) -> None:
        """Wait until `ready()`, or until `seconds` of the stage's time have passed."""
        actor = self.me
        assert actor is not None, "only an actor can wait"
        self._check(actor)
        actor.ready = ready
        # a real clock has moved a little when it is looked at again
        actor.until = None if seconds is None else self.now + max(INSTANT_S, seconds)
        with self._changed:
            actor.running = False
            self._changed.notify_all()
        actor.go.acquire()
        self._check(actor)

    def pause(self) -> None:
        """Where others may go first, if the test wants it: a reply is on its way."""
        if self.me is not None:
            self._check(self.me)
            if self.pauses and self.pauses.popleft():
                self.wait(lambda: True)

    @staticmethod
    def _check(actor: Actor) -> None:
        if actor.owner.dead:
            raise Gone

    def monotonic(self) -> float:
        """Stands for `time.monotonic`."""
        return self.now

    def readable(self, watched: Iterable[Any], seconds: float | None) -> list[Any]:
        """Stands for `rqueue.transport.resp.readable`."""
        watched = list(watched)
        actor = self.me
        if actor is None:
            return real_readable(watched, seconds)
        found = real_readable(watched, 0)
        if found or (seconds is not None and seconds <= 0):
            self._looked(actor)
            return found
        self.wait(lambda: bool(real_readable(watched, 0)), seconds)
        return real_readable(watched, 0)

    def _looked(self, actor: Actor) -> None:
        self._check(actor)
        if actor.looked_at != self.now:
            actor.looked_at, actor.looks = self.now, 0
        actor.looks += 1
        if actor.looks > LOOKS_MOST:
            raise Spinning(f"{actor} looks and looks:\n{self.stacks()}")

    # -- the test's side ---------------------------------------------------------------------------

    def settle(self) -> None:
        """Let everybody go on until all wait for something that only the test can bring."""
        self.turns = 0
        self._parked()
        while runnable := [actor for actor in self._actors.values() if self._can(actor)]:
            choice = self.choices.popleft() if self.choices else 0
            self._resume(runnable[choice % len(runnable)])
            self.turns += 1
            if self.turns > TURNS_MOST:
                raise Spinning(f"{runnable} go on and on:\n{self.stacks()}")

    def next_at(self) -> float | None:
        """When the first of them goes on by itself."""
        going = [actor for actor in self._actors.values() if not actor.owner.frozen]
        return min((a.until for a in going if a.until is not None), default=None)

    def _can(self, actor: Actor) -> bool:
        if actor.owner.frozen:
            return False
        due = actor.until is not None and self.now >= actor.until
        return bool(due or actor.ready())

    def _resume(self, actor: Actor) -> None:
        with self._changed:
            actor.running = True
            actor.until = None
        actor.go.release()
        self._parked()

    def _parked(self) -> None:
        with self._changed:
            quiet = self._changed.wait_for(
                lambda: not any(actor.running for actor in self._actors.values()), STUCK_S
            )
        if not quiet:
            raise Stuck(f"an actor does not come back:\n{self.stacks()}")

    def stacks(self) -> str:
        """Where everybody is."""
        frames: Mapping[int, Any] = sys._current_frames()
        stacks = []
        for actor in self._actors.values():
            frame = frames.get(actor.ident)
            lines = traceback.format_stack(frame)[-8:] if frame is not None else []
            stacks.append(f"{actor} running={actor.running} until={actor.until}\n{''.join(lines)}")
        return "\n".join(stacks)

    # -- what stands for the things that threads wait with -----------------------------------------

    def module_threading(self) -> SimpleNamespace:
        """Stands for the module `threading`, where events are made."""
        kept = {name: getattr(threading, name) for name in ("Thread", "Lock", "current_thread")}
        return SimpleNamespace(Event=lambda: Event(self), **kept)

    def lock(self) -> Lock:
        """Stands for `threading.Lock`."""
        return Lock(self)

    def simple_queue(self) -> SimpleQueue:
        """Stands for `queue.SimpleQueue`."""
        return SimpleQueue(self)

    def event_loop(self) -> asyncio.AbstractEventLoop:
        """An event loop in the stage's time."""
        loop = asyncio.SelectorEventLoop(Selector(self))
        loop.time = self.monotonic  # type: ignore[method-assign]
        return loop


class Event:
    """`threading.Event`, as far as it is used."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def wait(self, seconds: float | None = None) -> bool:
        if not self._set:
            self._stage.wait(lambda: self._set, seconds)
        return self._set


class Lock:
    """`threading.Lock`, as a context."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._held = False

    def __enter__(self) -> None:
        while self._held:
            self._stage.wait(lambda: not self._held)
        self._held = True

    def __exit__(self, *_: object) -> None:
        self._held = False


class SimpleQueue:
    """`queue.SimpleQueue`, as far as it is used."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._stage.pause()  # who waits for it may be faster

    def get(self) -> Any:
        while not self._items:
            self._stage.wait(lambda: self._items)
        return self._items.popleft()


class Selector(selectors.SelectSelector):
    """What an event loop waits with."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    def select(self, timeout: float | None = None) -> Sequence[tuple[Any, int]]:  # type: ignore[override]
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0) or self._stage.me is None:
            return found
        self._stage.wait(lambda: super(Selector, self).select(0), timeout)
        return super().select(0)
