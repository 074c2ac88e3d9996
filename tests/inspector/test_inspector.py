"""The inspector as a library; most of it is tested through the command line in tests/cli."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
import redis

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError, InvalidName, UnknownJob, UnknownQueue
from rqueue.inspector import DeadFilter, Doctor, Inspector, stats
from rqueue.protocol import commands
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.transport.redis_client import open_client
from tests.support.profiles import examples

pytestmark = pytest.mark.each_server

Make = Callable[..., Consumer]


def test_it_needs_a_server() -> None:
    with pytest.raises(ConfigError, match="RQUEUE_URL"):
        Inspector(settings=Settings())


def test_a_client_that_decodes_is_refused(server: Any) -> None:
    with (
        open_client(server.url, decode_responses=True) as decoding,
        pytest.raises(ConfigError),
    ):
        Inspector(redis=decoding)


def test_it_closes_what_it_opened(server: Any, client: redis.Redis) -> None:
    with Inspector(server.url, namespace="nobody") as inspector:
        assert inspector.queue_names() == []
    with Inspector(redis=client):
        pass
    assert client.ping()


def test_names(inspector: Inspector) -> None:
    for wrong in ("", "a\0b"):
        with pytest.raises(InvalidName):
            inspector.queue(wrong)
    with pytest.raises(UnknownQueue):
        inspector.queue("nobody")


def test_a_job_is_found_in_any_queue(inspector: Inspector, queue: Queue) -> None:
    id_ = queue.send("app.t", [1]).id
    look = inspector.job(id_)
    assert (look.job.queue, look.job.task, look.place) == (queue.name, "app.t", 0)
    assert look.now >= look.job.enqueued_ms > 0
    with pytest.raises(UnknownJob):
        inspector.job("nowhere")


def test_dead_letters_are_chosen_by_their_ids(
    inspector: Inspector, queue: Queue, consumer: Make
) -> None:
    queue.enqueue_puts([commands.Put(f"j{i}", b'["t"]') for i in range(5)])
    one = consumer(jobs=4)
    jobs = one.pull()
    one.settle(reject=[(job, {"type": "E"}) for job in jobs[:3]])
    chosen = DeadFilter(ids=("j2", "j0", "j3", "j4", "none", "j2"))
    assert [job.id for job in inspector.dead(queue.name, chosen)] == ["j2", "j0"]
    assert list(inspector.dead(queue.name, DeadFilter(ids=("j2",), error="no such"))) == []
    assert inspector.purge_dead(queue.name, DeadFilter(ids=("j1",))) == 1
    assert inspector.requeue_dead(queue.name, chosen) == 2
    info = inspector.queue(queue.name)
    assert (info.ready + info.held, info.dead) == (4, 0)


def test_accepted_counts_each_job_once(inspector: Inspector, queue: Queue, consumer: Make) -> None:
    queue.enqueue_puts([commands.Put(f"j{i}", b'["t"]') for i in range(3)])
    one = consumer(jobs=3)
    jobs = one.pull()
    one.retry(jobs[0], place="tail")
    one.reject(jobs[1], "no")
    assert inspector.requeue_dead(queue.name) == 1
    info = inspector.queue(queue.name)
    assert info.accepted == 3
    assert (info.ready, info.held, info.dead) == (2, 1, 0)
    assert info.counters["requeued"] == 1


def test_a_dead_letter_that_dies_again_is_not_requeued_again(
    inspector: Inspector, queue: Queue, consumer: Make
) -> None:
    """The hungry consumer rejects each job as soon as it is requeued."""
    one = consumer(jobs=1000)
    queue.enqueue_puts([commands.Put(f"j{i:03}", b'["t"]') for i in range(400)])
    jobs = one.pull()
    one.settle(reject=[(job, {"type": "E"}) for job in jobs])
    reported: list[tuple[int, int]] = []

    def reject(looked: int, done: int) -> None:
        reported.append((looked, done))
        again = one.pull()
        one.settle(reject=[(job, {"type": "E"}) for job in again])

    assert inspector.requeue_dead(queue.name, DeadFilter(error="e"), reject) == 400
    assert reported[-1][1] == 400
    assert inspector.queue(queue.name).dead == 400


def test_stats_between_two_looks(inspector: Inspector, queue: Queue, consumer: Make) -> None:
    queue.enqueue_puts([commands.Put(f"j{i}", b'["t"]') for i in range(4)])
    first = inspector.survey(queue.name)
    one = consumer(jobs=2)
    one.settle(ack=one.pull())
    report = inspector.stats(queue.name, 0, wait=lambda _seconds: None, first=first)
    assert report.rates["acked"] > 0
    assert report.drain_s is not None and report.drain_s > 0
    assert report.wait is not None and report.wait.jobs == 2


def test_stats_of_a_queue_whose_jobs_wait_behind_others(
    inspector: Inspector, queue: Queue, consumer: Make
) -> None:
    """A group that is worked off has one ready job at most: those behind it count too."""
    for _ in range(4):
        queue.send("t", options=Options(group="g"))
    first = inspector.survey(queue.name)
    one = consumer(jobs=1)
    one.settle(ack=one.pull(), pull=True)
    report = inspector.stats(queue.name, 0, wait=lambda _seconds: None, first=first)
    assert (report.info.ready, report.info.blocked) == (0, 2)
    assert report.drain_s is not None and report.drain_s > 0


def test_spread() -> None:
    assert stats.spread([]) is None
    found = stats.spread(float(n) for n in range(100))
    assert found == stats.Spread(100, 50.0, 90.0, 99.0, 99.0)


def test_a_moving_queue_has_no_findings(
    inspector: Inspector, client: redis.Redis, queue: Queue, consumer: Make
) -> None:
    """Producers, consumers, retries, rejects, cancels and releases run while the doctor looks."""
    queue.enqueue_puts([commands.Put(f"old{i}", b'["t"]') for i in range(900)])
    stop = threading.Event()
    failures: list[BaseException] = []

    def guarded(body: Callable[[int], None]) -> None:
        number = 0
        try:
            while not stop.is_set():
                number += 1
                body(number)
        except BaseException as error:
            failures.append(error)

    def produce(number: int) -> None:
        delay = 30 if number % 3 == 0 else 0
        puts = [commands.Put(f"n{number}.{i}", b'["t"]', i % 10, delay_ms=delay) for i in range(20)]
        queue.enqueue_puts(puts)
        queue.cancel(f"n{number}.7")
        queue.cancel(f"n{number - 1}.9")

    consumers = [consumer(jobs=30, priority=i, bytes=600 * i) for i in range(3)]

    def consume(one: Consumer) -> Callable[[int], None]:
        def body(number: int) -> None:
            jobs = one.pull()
            if not jobs:
                jobs = [wake.job for wake in one.wait(0.05) if wake.job]
            if number % 5 == 0 and jobs:
                one.retry(jobs.pop(), delay=0.02)
            if number % 7 == 0 and jobs:
                one.reject(jobs.pop(), "no")
            half = len(jobs) // 2
            one.settle(ack=jobs[:half], release=jobs[half:])

        return body

    bodies = [produce, *(consume(one) for one in consumers)]
    threads = [threading.Thread(target=guarded, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    try:
        doctor = Doctor(client, "rqueue")
        found = [
            finding for _ in range(examples(2, 8)) for finding in doctor.check_queue(queue.name)
        ]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == []
    assert [finding for finding in found if finding.severity == "problem"] == []
    settled = Doctor(client, "rqueue").check_queue(queue.name)
    assert [finding for finding in settled if finding.severity == "problem"] == []


def test_a_queue_of_another_version_does_not_hide_the_others(
    inspector: Inspector, queue: Queue
) -> None:
    foreign = queue.at(f"{queue.name}-foreign")
    queue.redis.hset(foreign.keys.meta, "v", "99")
    id_ = queue.send("app.t").id
    assert inspector.job(id_).job.queue == queue.name
    with pytest.raises(UnknownJob) as caught:
        inspector.job("nowhere")
    assert any(foreign.name in note for note in caught.value.__notes__)
    queue.redis.delete(foreign.keys.meta)
