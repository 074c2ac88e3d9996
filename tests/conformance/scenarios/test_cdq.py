"""Curator's distributed queue (after TestDistributedQueue). Its normal mode is a consumer that does
not ack, its safe mode one that does."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import BufferClosed, LifecycleError, NotRegistered
from rqueue.protocol import commands
from rqueue.protocol.job_packer import Call
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.forked_program import ForkedProgram
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.queue_fixture import QueueFixture, ids
from tests.workers.children import WorkerFixture, eventually

TEN = [f"j{n}" for n in range(10)]
RUN_CODE = "tests.support.run_code"


@pytest.fixture
def proxy(private_server: EmbeddedRedis) -> Iterator[Proxy]:
    port = int(private_server.tcp_url.rpartition(":")[2].partition("/")[0])
    with Proxy(("127.0.0.1", port)) as proxy:
        yield proxy


def test_CDQ_01_one_consumer_gets_all_in_order(own_q: QueueFixture) -> None:
    """C-03, C-04."""
    consumer = own_q.consumer(mode="no_ack", jobs=3).register()
    with own_q.queue.putter() as putter:
        puts = [putter.put("t", n) for n in range(10)]
    got = [consumer.receive(PATIENCE) for _ in puts]
    assert ids(got) == [put.id for put in puts]
    assert consumer.receive(0) is None


def test_CDQ_03_safe_consumption_is_in_order(own_q: QueueFixture) -> None:
    """C-05: nothing is held afterwards."""
    own_q.put(*TEN)
    consumer = own_q.join(1)
    for id_ in TEN:
        job = consumer.receive(PATIENCE)
        assert job is not None and job.id == id_ and consumer.ack(job)
    counts = own_q.queue.counts()
    assert (counts.held, counts.ready, own_q.look().held) == (0, 0, {})


def test_CDQ_04_a_batch_keeps_its_order(own_q: QueueFixture) -> None:
    """C-20."""
    consumer = own_q.consumer(mode="no_ack", jobs=30).register()
    handles = own_q.queue.enqueue_many(Call("t", (n,)) for n in range(100))
    assert ids([job for batch in consumer.drain() for job in batch]) == [h.id for h in handles]


def test_CDQ_05_a_listener_hears_of_each_put_once(own_q: QueueFixture) -> None:
    """C-14."""
    heard = []
    consumer = own_q.consumer(mode="no_ack", jobs=10).register()
    with own_q.queue.putter() as putter:
        putter.add_listener(lambda put: heard.append(put.id))
        puts = [putter.put("t", n).id for n in range(10)]
        assert putter.flush(5)
    assert heard == puts
    assert ids([consumer.receive(PATIENCE) for _ in puts]) == puts


def test_CDQ_06_a_failed_job_comes_again_or_is_dropped(own_q: QueueFixture) -> None:
    """C-06, C-07: the queue says whether what failed comes again, or is deleted."""
    consumer = own_q.join(1)
    calls = []
    own_q.put("1")
    while job := consumer.receive(0):
        calls.append(job.id)
        if len(calls) == 1:
            consumer.retry(job, place="tail")
        else:
            consumer.ack(job)
    assert calls == ["1", "1"]
    own_q.queue.configure(max_deliveries=1, dead_letters=False)
    own_q.put("2")
    job = consumer.receive(0)
    assert job is not None
    consumer.retry(job)
    assert consumer.receive(0) is None
    assert own_q.look().jobs == {}
    assert own_q.queue.counts().dead == 0


def test_CDQ_08_no_job_runs_twice_in_a_pool_of_threads(own_q: QueueFixture) -> None:
    """C-18."""
    many = [f"m{n}" for n in range(300)]
    started: list[str] = []
    with ThreadPoolExecutor(16) as threads:
        own_q.put(*many)
        consumer = own_q.join(50)
        for jobs in consumer.drain():
            list(threads.map(lambda job: started.append(job.id), jobs))
            consumer.settle(ack=jobs)
    assert sorted(started) == sorted(many)


def test_CDQ_09_four_processes_share_a_queue(
    server: EmbeddedRedis, queue_name: str, tmp_path: Path
) -> None:
    """C-34."""
    code = f"""
from rqueue import Queue
with Queue({queue_name!r}, {server.url!r}).consumer(jobs=7) as consumer:
    for jobs in consumer.drain():
        for job in jobs:
            print(job.id, flush=True)
        consumer.settle(ack=jobs)
"""
    with Queue(queue_name, server.url) as queue:
        with queue.putter() as putter:
            sent = [putter.put("t", n).id for n in range(200)]
        # a file for each: without a buffer, `print` writes a line and its end apart
        files = [tmp_path / f"seen by {n}" for n in range(4)]
        processes = []
        for file in files:
            with file.open("wb") as output:
                processes.append(ForkedProgram(RUN_CODE, code, output=output))
        assert [process.wait(PATIENCE) for process in processes] == [0] * 4
        seen = [line for file in files for line in file.read_text().splitlines()]
        assert sorted(seen) == sorted(sent)
        assert queue.counts().held == 0


def test_CDQ_11_a_flush_waits_for_a_put_that_is_delayed(
    private_server: EmbeddedRedis, queue_name: str, proxy: Proxy
) -> None:
    """C-11, C-13."""
    with Queue(queue_name, proxy.url) as queue, queue.putter() as putter:
        putter.put("t", 0)
        assert putter.flush(10)
        proxy.hold()
        putter.put("t", 1)
        assert putter.flush(0.05) is False
        proxy.release()
        assert putter.flush(10) is True


def test_CDQ_13_calls_in_the_wrong_phase_raise(own_q: QueueFixture) -> None:
    """C-02."""
    consumer = own_q.queue.consumer(renew=False)
    with pytest.raises(NotRegistered):
        consumer.pull()
    consumer.register()
    with pytest.raises(LifecycleError):
        consumer.register()
    consumer.close()
    consumer.close()
    with pytest.raises(NotRegistered):
        consumer.pull()
    putter = own_q.queue.putter()
    putter.close()
    putter.close()
    with pytest.raises(BufferClosed):
        putter.put("t")


def test_CDQ_15_a_batch_in_one_job_runs_again_as_a_whole(own_q: QueueFixture) -> None:
    """C-20: jobs that share their fate are one job with a list."""
    consumer = own_q.join(1)
    own_q.queue.send("t", [["a", "b", "c"]])
    own_q.queue.send("t", [["d"]])
    calls: list[str] = []
    while job := consumer.receive(0):
        for element in own_q.queue.envelope(job).args[0]:
            calls.append(element)
            if element == "b" and calls.count("b") == 1:
                consumer.retry(job, place="tail")
                break
        else:
            consumer.ack(job)
    assert calls == ["a", "b", "d", "a", "b", "c"]


def test_CDQ_16_a_consumer_survives_a_lost_connection(
    private_server: EmbeddedRedis, queue_name: str, proxy: Proxy
) -> None:
    """C-16."""
    with (
        Queue(queue_name, private_server.url) as near,
        Queue(queue_name, proxy.url) as far,
        far.consumer(jobs=2, renew=False) as consumer,
    ):
        for n in range(6):
            sent = near.send("t", [n])
            if n % 2:
                proxy.cut()
            job = consumer.receive(PATIENCE)
            assert job is not None and job.id == sent.id
            consumer.ack(job)
    assert near.counts().held == 0


def test_CDQ_18_a_worker_hears_of_its_connection(
    private_server: EmbeddedRedis,
    queue_name: str,
    proxy: Proxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """C-29, C-38."""
    states = tmp_path / "states"
    states.touch()
    monkeypatch.setenv("STATES_FILE", str(states))
    workers = WorkerFixture(private_server.url, queue_name, tmp_path)
    settings = Settings(url=proxy.url, lease_ms=600_000)
    try:
        worker = workers.child(settings=settings, app=("tests.workers.states_app",))

        def heard(*expected: str) -> None:
            eventually(lambda: states.read_text().split() == [*expected], str(expected))

        heard("connected")
        proxy.refuse()
        heard("connected", "suspended")
        job = workers.send("s.echo", 1)
        proxy.accept()
        assert job.result(60) == 1
        before = ["connected", "suspended", "reconnected"]
        heard(*before)
        proxy.refuse()
        heard(*before, "suspended")
        move_time(workers.queue, timedelta(minutes=11))
        execute(workers.redis, commands.renew(workers.queue.keys, 600_000, []))
        job = workers.send("s.echo", 2)
        proxy.accept()
        assert job.result(60) == 2
        heard(*before, "suspended", "lost", "reconnected")
        assert worker.leave() == 0
    finally:
        workers.close()


LEADER = """
import os, sys
from rqueue import Queue
from rqueue.errors import RegistrationLost
queue = Queue(sys.argv[1], sys.argv[2])
with queue.consumer(jobs=3, lease=1.5) as consumer:
    for job in consumer:
        queue.redis.rpush(sys.argv[3], f"{os.getpid()} {job.id}")
        try:
            consumer.ack(job)
        except RegistrationLost:
            pass
"""


def test_CDQ_19_a_leader_consumes_in_order_and_others_follow_it(
    server: EmbeddedRedis, queue_name: str, tmp_path: Path
) -> None:
    """C-31: one live consumer; what it held comes first to its successor."""
    seen = f"seen:{queue_name}"
    many = [f"m{n:03}" for n in range(60)]
    with Queue(queue_name, server.url) as queue:
        queue.configure(live_consumers=1)
        code = [RUN_CODE, LEADER, queue_name, server.url, seen]
        with (tmp_path / "said").open("wb") as said:
            processes = [ForkedProgram(*code, output=said) for _ in range(3)]
        try:
            eventually(lambda: queue.redis.zcard(queue.keys.consumers) == 3, "three consumers")
            for some in (many[:20], many[20:40], many[40:]):
                queue.enqueue_many(Call("t", options=Options(id=id_)) for id_ in some)
                last = some[-1].encode()
                eventually(
                    lambda last=last: last in (queue.redis.lindex(seen, -1) or b""), "the last one"
                )
                leader = int(queue.redis.lindex(seen, -1).split()[0])
                (process,) = [one for one in processes if one.pid == leader]
                process.kill()
                process.wait()
            order = [line.split() for line in queue.redis.lrange(seen, 0, -1)]
        finally:
            for process in processes:
                process.kill()
                process.wait()
            queue.redis.delete(seen)
    assert list(dict.fromkeys(id_.decode() for _, id_ in order)) == many
    assert len({pid for pid, _ in order}) == 3
