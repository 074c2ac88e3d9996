"""Background puts from a thread: listeners, an idle thread, forks, the end of the process."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import (
    BufferClosed,
    LifecycleError,
)
from rqueue.protocol import put_buffer
from rqueue.tasks.decorator import task
from rqueue.tasks.registry import Registry
from tests.support.proxy import Proxy

registry = Registry()


@task(name="add", registry=registry)
def add(a: int, b: int = 0) -> int:
    return a + b


def waiting(queue: Queue) -> list[str]:
    """Ids of the jobs that wait, in their order."""
    with queue.consumer(jobs=500, mode="browse", renew=False) as browser:
        return [job.id for job in browser.flush()]


def test_a_listener_may_put_but_not_wait(queue: Queue) -> None:
    errors: list[Exception] = []
    with queue.putter(limit=1) as putter:

        def listener(handle: Any) -> None:
            if handle.number == 1:
                for _ in range(3):
                    putter.put("echo")  # more than the buffer holds: it cannot wait for itself
                for act in (putter.flush, putter.close):
                    try:
                        act()
                    except LifecycleError as error:
                        errors.append(error)
                done.set()

        done = threading.Event()
        putter.add_listener(listener)
        putter.put("t")
        assert done.wait(20)
        assert putter.flush(20)
    assert len(waiting(queue)) == 4
    assert len(errors) == 2


def test_close_stores_what_is_there_and_takes_no_more(queue: Queue) -> None:
    putter = queue.putter(linger=60)
    handles = [putter.put("t") for _ in range(5)]
    assert putter.close() == []
    assert putter.close() == []
    assert waiting(queue) == [handle.id for handle in handles]
    with pytest.raises(BufferClosed):
        putter.put("t")
    assert putter.flush(0)
    assert "rqueue-puts" not in [thread.name for thread in threading.enumerate()]
    assert queue.putter().close() == []  # never used: no thread was started


def test_an_idle_putter_costs_nothing(
    queue: Queue, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rqueue.transport.put_thread.IDLE_S", 0.05)
    with queue.putter() as putter:
        putter.put("t")
        assert putter.flush(20)
        thread = putter._engine._thread
        assert thread is not None
        thread.join(20)  # it ends by itself
        assert putter._engine._thread is None
        assert putter._engine._connection is None
        putter.put("t")  # and another one is started
        assert putter.flush(20)
    assert len(waiting(queue)) == 2


def test_many_threads_put(queue: Queue) -> None:
    with queue.putter(limit=200) as putter, ThreadPoolExecutor(4) as threads:
        made = list(
            threads.map(lambda n: [putter.put("t", n, i).id for i in range(1000)], range(4))
        )
        assert putter.flush(20)
    stored = waiting(queue)
    assert len(stored) == 4000
    for ids in made:
        mine = set(ids)
        assert [id_ for id_ in stored if id_ in mine] == ids


# -- outages ---------------------------------------------------------------------------------------


def test_a_restart_of_redis_loses_nothing(near: Queue, private_server: EmbeddedRedis) -> None:
    ids: list[str] = []
    stop = threading.Event()
    with near.putter(limit=500) as putter:

        def produce() -> None:
            while not stop.is_set():
                ids.append(putter.put("t", len(ids)).id)

        producer = threading.Thread(target=produce)
        producer.start()
        try:
            while len(ids) < 1000:
                putter.flush(20)
            private_server.kill()
            private_server.start()
            target = len(ids) + 1000
            while len(ids) < target:
                putter.flush(20)
        finally:
            stop.set()
            producer.join(20)
        assert putter.flush(20)
    stored = waiting(near)
    # what a kill without an fsync takes with it is the server's; ours is what it confirmed since
    assert [id_ for id_ in ids if id_ in set(stored)] == stored
    assert len(set(stored)) == len(stored)
    assert stored[-1] == ids[-1]


def test_a_forked_child_does_not_store_the_parents_jobs(
    far: Queue, near: Queue, proxy: Proxy
) -> None:
    with far.putter() as putter:
        putter.put("t", "warm")
        putter.flush()
        proxy.hold()
        parents = [putter.put("t", i) for i in range(3)]
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                said = [putter.pending, putter.flush(0)]
                mine = Queue(near.name, near.settings.url).putter()
                own = putter.put("t", "child")  # over the same putter: a buffer of its own
                said += [putter.pending, mine.put("t").wait_stored(20)]
                os.write(write, f"{said} {own.id} {parents[0].stored}".encode())
            finally:
                os._exit(0)
        os.close(write)
        said = os.read(read, 1000).decode()
        os.close(read)
        assert os.waitpid(child, 0)[1] == 0
        assert said.startswith("[0, True, 1, True] "), said
        proxy.release()
        assert putter.flush(20)
    stored = waiting(near)
    assert len(stored) == len(set(stored)) == 5
    assert {handle.id for handle in parents} < set(stored)


def test_a_process_that_ends_stores_what_it_put(queue: Queue, server: EmbeddedRedis) -> None:
    program = (
        "import sys, atexit\n"
        "from rqueue import Queue\n"
        "queue = Queue(sys.argv[1], sys.argv[2])\n"
        "putter = queue.putter(linger=60)\n"
        "for i in range(100): putter.put('t', i)\n"
        "print('put')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, queue.name, server.url],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("put\n", "", 0)
    assert len(waiting(queue)) == 100


def test_a_put_at_the_very_end(queue: Queue, server: EmbeddedRedis) -> None:
    """Where no thread can be started any more the jobs are stored all the same."""
    putter = queue.putter()
    putter._engine._start = lambda: False  # type: ignore[method-assign]
    handles = [putter.put("t") for _ in range(700)]
    assert putter.close() == []
    assert waiting(queue) == [handle.id for handle in handles]


def test_a_killed_process_has_stored_what_was_flushed(queue: Queue, server: EmbeddedRedis) -> None:
    program = (
        "import sys\n"
        "from rqueue import Queue\n"
        "putter = Queue(sys.argv[1], sys.argv[2]).putter(linger=60)\n"
        "for i in range(10): putter.put('t', i)\n"
        "print(putter.flush(), flush=True)\n"
        "putter.put('t')\n"
        "sys.stdin.read()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, queue.name, server.url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stdin
    assert process.stdout.readline() == "True\n"
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    process.stdout.close()
    process.stdin.close()
    assert len(waiting(queue)) == 10


def test_backoff_grows_and_ends() -> None:
    assert [put_buffer.backoff(n) for n in (1, 2, 3)] == [0.05, 0.1, 0.2]
    assert put_buffer.backoff(1000) == 1.0
