"""A call in the middle of another one on the same thread, at any line, and a fork there: both are
right. Signal handlers, finalizers and listeners make such calls."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.model import ids
from rqueue.model.ids import new_id
from rqueue.protocol import scripts
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from tests.support import profiles
from tests.support.inner_call import Interruption, in_time, places_of

registry = Registry()
HANGS_S = 60


@task(name="n", registry=registry)
def n(x: Any) -> Any:
    return x


class Calls:
    """What may be called in the middle of what, each with what has to come of it."""

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.ids: list[str] = []
        self.put: list[Any] = []
        self.handle = queue.enqueue(n, -1)
        self.putter = queue.putter()
        self.patience = 0.001

    def enqueue(self) -> None:
        handle = self.queue.enqueue(n, 0)
        assert handle.state() == "ready"
        self.ids.append(handle.id)

    def many(self) -> None:
        self.ids += [one.id for one in self.queue.enqueue_many([Call(n, (1,)), Call(n, (2,))])]

    def state(self) -> None:
        assert self.handle.state() == "ready"

    def cancel(self) -> None:
        assert not self.queue.cancel("unknown")

    def result(self) -> None:
        with pytest.raises(TimeoutError):
            self.handle.result(timeout=self.patience)

    def puts(self) -> None:
        self.put.append(self.putter.put(n, 3))

    def counts(self) -> None:
        assert self.queue.counts().ready >= 1

    def all(self) -> list[Callable[[], None]]:
        return [
            self.enqueue, self.many, self.state, self.cancel, self.result, self.puts, self.counts
        ]  # fmt: skip

    def check(self) -> None:
        """All is there, each once."""
        assert self.putter.flush(HANGS_S)
        stored = [*self.ids, *(put.id for put in self.put), self.handle.id]
        assert len(set(stored)) == len(stored)
        assert self.queue.counts().ready == len(stored)
        self.putter.close()


@pytest.mark.parametrize("number", range(7))
def test_a_call_at_any_line_of_another_call(queue: Queue, number: int) -> None:
    calls = Calls(queue)
    outer = calls.all()[number]
    outer()
    drawn = random.Random(number)
    places = places_of(outer)
    most = profiles.examples(12, 400)
    for at in drawn.sample(places, min(most, len(places))):
        inner = drawn.choice(calls.all())
        interruption = Interruption(at, inner)
        try:
            in_time(lambda i=interruption: i.run(outer), HANGS_S)
        except BaseException as error:
            error.add_note(
                f"{inner.__name__} in the middle of {outer.__name__} at {interruption.place}"
            )
            raise
    calls.check()


@pytest.mark.parametrize("number", range(7))
def test_a_call_that_raises_leaves_the_outer_one_to_its_caller(queue: Queue, number: int) -> None:
    """What a signal handler raises comes out of the call that it interrupted, and what follows gets
    its own reply."""
    calls = Calls(queue)
    outer = calls.all()[number]
    outer()

    class Struck(BaseException):
        pass

    def strike() -> None:
        calls.state()
        raise Struck

    drawn = random.Random(number)
    places = places_of(outer, raises=True)
    for at in drawn.sample(places, min(profiles.examples(8, 200), len(places))):
        interruption = Interruption(at, strike, raises=True)
        with suppress(Struck):
            in_time(lambda i=interruption: i.run(outer), HANGS_S)
        for follows in (calls.state, calls.cancel, calls.counts):
            in_time(follows, HANGS_S)
    calls.putter.close()


def test_while_a_script_is_loaded(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    call = Calls(queue)
    fresh: list[scripts.Scripts] = []

    def first() -> None:
        monkeypatch.setattr(scripts, "SCRIPTS", scripts.Scripts())
        fresh.append(scripts.SCRIPTS)
        call.enqueue()

    first()
    drawn = random.Random(1)
    places = places_of(first)
    for at in drawn.sample(places, profiles.examples(8, 500)):
        in_time(lambda at=at: Interruption(at, call.enqueue).run(first), HANGS_S)
    call.check()
    shas = {
        script.sha for one in fresh for (name, _), script in one.loaded.items() if name == "enqueue"
    }
    assert len(shas) == 1


def test_ids_are_made_in_the_middle_of_making_one() -> None:
    for at in range(1, 40):
        for begins in (True, False):
            made = [new_id()]

            def outer(made: list[str] = made, begins: bool = begins) -> None:
                if begins:
                    ids._last_ms -= 1_000  # a new millisecond begins
                made.append(new_id())

            in_time(
                lambda at=at, o=outer, m=made: Interruption(at, lambda: m.append(new_id())).run(o),
                HANGS_S,
            )
            two = made[1:]
            made += [new_id(), new_id()]
            assert len(set(made)) == len(made)
            assert max(two) < made[-2] < made[-1]
            assert min(two) > made[0] or begins


def forked(inside: Callable[[], object]) -> int:
    """The exit code of a child in which `inside` ran; 98 where it raised."""
    pid = os.fork()
    if pid == 0:
        code = 98
        try:
            signal.alarm(HANGS_S)
            inside()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_another_thread_forks_at_any_line_of_a_first_call(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Calls(queue)

    def first() -> None:
        monkeypatch.setattr(scripts, "SCRIPTS", scripts.Scripts())
        queue.enqueue(n, 1)
        call.puts()

    first()
    drawn = random.Random(2)
    places = places_of(first)
    for at in drawn.sample(places, profiles.examples(8, 200)):
        there, go_on = threading.Event(), threading.Event()

        def stop(there: threading.Event = there, go_on: threading.Event = go_on) -> None:
            there.set()
            assert go_on.wait(HANGS_S)

        interruption = Interruption(at, stop)
        thread = threading.Thread(target=lambda i=interruption: i.run(first), daemon=True)
        thread.start()
        while not there.wait(0.01) and thread.is_alive():
            pass
        code = forked(lambda: [inner() for inner in call.all()])
        go_on.set()
        thread.join(HANGS_S)
        assert code == 0, interruption.place
    call.putter.close()


@pytest.mark.parametrize("name", ["enqueue", "many", "state", "cancel", "result", "counts"])
def test_a_fork_in_the_middle_of_a_call_that_goes_on_in_both(queue: Queue, name: str) -> None:
    """As a signal handler that forks and returns in both processes: neither reads the other's
    reply."""
    calls = Calls(queue)
    calls.patience = 0.2  # there is time to ask again
    outer = getattr(calls, name)
    outer()
    places = places_of(outer)
    for at in random.Random(3).sample(places, profiles.examples(4, 100)):
        children: list[int] = []
        parent = os.getpid()

        def fork(children: list[int] = children) -> None:
            children.append(os.fork())

        code = 98
        try:
            interruption = Interruption(at, fork)
            interruption.run(outer)
            for follows in (calls.state, calls.cancel, calls.counts):
                follows()
            code = 0
        finally:
            if os.getpid() != parent:
                os._exit(code)
        for child in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, interruption.place
    calls.putter.close()


FIRST_CALLS = """
import json, sys
from rqueue import Call, Queue, task
@task(name="n")
def n(x): return x
queue = Queue("q", sys.argv[1])
putter = queue.putter()
before = set(sys.modules)
handle = queue.enqueue(n, 1)
handle.state(), queue.cancel(handle.id), queue.enqueue_many([Call(n, (1,))]), queue.counts()
try:
    queue.enqueue(n, 1).result(timeout=0.01)
except TimeoutError:
    pass
putter.put(n, 1), putter.flush(60)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_a_first_call_imports_nothing(server: EmbeddedRedis) -> None:
    """A module that another thread imports at a fork can never be imported in the child: its lock
    is held there for ever."""
    found = subprocess.run(
        [sys.executable, "-c", FIRST_CALLS, server.url],
        check=True, capture_output=True, text=True, timeout=HANGS_S,
    )  # fmt: skip
    assert json.loads(found.stdout) == []


def test_a_handler_calls_while_a_reply_is_awaited(private_server: EmbeddedRedis) -> None:
    """A real signal, in the middle of a blocking read."""
    with Queue("q", private_server.url) as queue, redis.Redis.from_url(private_server.url) as other:
        calls = Calls(queue)
        found: list[str] = []
        before = signal.signal(signal.SIGALRM, lambda *_: found.append(queue.enqueue(n, 2).id))
        try:
            for number, call in enumerate((calls.state, calls.cancel, calls.counts), 1):
                other.execute_command("CLIENT", "PAUSE", 200, "ALL")
                signal.setitimer(signal.ITIMER_REAL, 0.05)
                call()
                while len(found) < number:
                    signal.pause()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert len(set(found)) == 3
        calls.putter.close()
