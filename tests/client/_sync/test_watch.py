# Generated from tests/client/_async/test_watch.py (`make generate`): do not edit.
"""One watches a job: its reports and its end are heard, without polling, and nobody else's."""

from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.job_handle import JobHandle
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RegistrationLost, ResultError, UnknownJob
from rqueue.model.job import Delivery
from rqueue.model.log_line import packed_line
from rqueue.model.progress import packed
from rqueue.protocol import commands
from rqueue.protocol.commands import JobReport
from tests.support.both import Together, outside
from tests.support.monitor import monitoring
from tests.support.patience import PATIENCE
from tests.support.proxy import Proxy
from tests.support.pulling import pull

pytestmark = pytest.mark.each_server


def report(
    queue: Queue,
    consumer: Consumer,
    id: str,
    done: int,
    *,
    term: str = "",
    over: tuple[str, ...] = (),
) -> list[str]:
    """What a worker sends for a job that reports."""
    said = [JobReport(id, 1, packed((done, 10, "pages")))]
    call = commands.report(queue.keys, consumer.name, term or consumer.term, said, over)
    return queue._run(call)


def seen(handle: JobHandle[None], timeout: float | None) -> list[str]:
    found = []
    for update in handle.watch(timeout):
        found.append(f"{update.state} {update.progress or ''}".strip())
    return found


def test_reports_and_the_end_are_heard(
    queue: Queue, consumer: Consumer, server: EmbeddedRedis
) -> None:
    handle = queue.send("t")
    (job,) = pull(consumer, 1)
    with Together() as together:
        with monitoring(server.url) as monitor:
            watching = together.start(seen, handle, None)
            outside(monitor.wait_for, "XREAD", handle.id)
            for done in (3, 7):
                assert report(queue, consumer, handle.id, done) == []
                outside(monitor.wait_for, "XREAD", handle.id)
            consumer.ack(job)
            heard = watching.result(PATIENCE)
    assert heard == [
        "held",
        "held 3/10 (30%) pages",
        "held 7/10 (70%) pages",
        "done",
    ]
    # what is left of it goes with the word that the attempt is over
    queue._run(commands.report(queue.keys, consumer.name, consumer.term, [], [handle.id]))
    assert seen(handle, None) == ["done"]
    assert not queue.redis.exists(queue.keys.progress(handle.id))


def test_lines_are_there_once_and_bounded(queue: Queue, consumer: Consumer) -> None:
    handle = queue.send("t")
    (job,) = pull(consumer, 1)

    def log(token: str, first: int, *lines: str) -> None:
        stored = [packed_line(1000, 20, line) for line in lines]
        said = [JobReport(handle.id, 1, b"", token, first, stored)]
        queue._run(commands.report(queue.keys, consumer.name, consumer.term, said))

    log("a", 1, "one", "two")
    log("a", 1, "one", "two", "three")  # the reply was lost: they are sent again
    log("a", 4, "four")
    log("b", 1, "of another attempt")
    said = ["one", "two", "three", "four", "of another attempt"]
    consumer.ack(job)
    watched = [update for update in handle.watch()]
    lines = [(line.number, line.text) for update in watched for line in update.lines]
    assert lines == [*enumerate(said, 1)]
    assert [str(update.state) for update in watched] == ["done"]
    call = commands.report(queue.keys, consumer.name, consumer.term, [], [handle.id])
    queue._run(call)
    assert 0 < queue.redis.pttl(queue.keys.log(handle.id)) <= 600_000  # as its record


def test_the_last_lines_are_kept(queue: Queue, consumer: Consumer) -> None:
    """1000 of them, or 100 KB; a watcher gets them by pages, also when the job has ended."""
    small, large = queue.send("t"), queue.send("t")
    jobs = pull(consumer, 2)
    for first in (1, 501, 1001):
        lines = [packed_line(1000, 20, f"line {first + i}") for i in range(500)]
        wide = [packed_line(1000, 20, "x" * 1990) for _ in range(30)]
        said = [
            JobReport(small.id, 1, b"", "a", first, lines),
            JobReport(large.id, 1, b"", "a", first, wide),
        ]
        queue._run(commands.report(queue.keys, consumer.name, consumer.term, said))
    kept = queue.redis.llen(queue.keys.log(large.id))
    assert kept == 51  # with the one in which the last 100 KB begin
    consumer.settle(ack=[job.id for job in jobs])
    updates = [update for update in small.watch()]
    assert [len(update.lines) for update in updates[:5]] == [200] * 5
    assert [line.number for update in updates for line in update.lines] == [*range(501, 1501)]
    assert {str(update.state) for update in updates} == {"done"}


Ending = Callable[[Queue, Consumer, Delivery], Awaitable[object]]
ENDS: dict[str, Ending] = {
    "cancelled": lambda q, c, job: q.cancel(job.id),
    "dead": lambda q, c, job: c.reject(job, "why"),
    "done": lambda q, c, job: c.settle(ack=[job.id]),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_watch_ends_with_the_job_and_wakes_who_waits_too(
    queue: Queue, consumer: Consumer, server: EmbeddedRedis, end: str
) -> None:
    """Who waits for the result beside it, before or after, takes nothing from it."""
    handle = queue.send("t")
    (job,) = pull(consumer, 1)
    with Together() as together:
        with monitoring(server.url) as monitor:
            first = together.start(seen, handle, None)
            outside(monitor.wait_for, "XREAD", handle.id)
            waiting = together.start(seen_state, handle)
            outside(monitor.wait_for, "BLMOVE", handle.id)
            second = together.start(seen, handle, None)
            outside(monitor.wait_for, "XREAD", handle.id)
            ENDS[end](queue, consumer, job)
            assert first.result(PATIENCE) == ["held", end]
            assert second.result(PATIENCE) == ["held", end]
            assert waiting.result(PATIENCE) == end


@pytest.mark.parametrize("end", ENDS)
def test_the_last_word_is_the_end(queue: Queue, consumer: Consumer, end: str) -> None:
    """A report that was on its way when the job was done says nothing any more; of one that was
    not done it says how far it came."""
    handle = queue.send("t")
    (job,) = pull(consumer, 1)
    report(queue, consumer, handle.id, 5)
    ENDS[end](queue, consumer, job)
    came = "" if end == "done" else " 5/10 (50%) pages"
    assert seen(handle, None) == [f"{end}{came}"]


def seen_state(handle: JobHandle[None]) -> str:
    with suppress(ResultError):
        handle.result()
    return str(handle.state())


def test_others_wake_nobody(queue: Queue, consumer: Consumer, server: EmbeddedRedis) -> None:
    handle, other = queue.send("t"), queue.send("t")
    mine, job = pull(consumer, 2)
    with Together() as together:
        with monitoring(server.url) as monitor:
            watching = together.start(seen, handle, None)
            outside(monitor.wait_for, "XREAD", handle.id)
            report(queue, consumer, other.id, 5)
            consumer.ack(job)
            queue.send("t")
            consumer.ack(mine)
            assert watching.result(PATIENCE) == ["held", "done"]
            queue.redis.ping()
            looks = outside(commands_until_ping, monitor, handle.id)
    assert looks == 1  # for its end


def commands_until_ping(monitor: object, id: str) -> int:
    """How often the job was looked at."""
    count = 0
    while True:
        said = str(monitor._monitor.next_command()["command"])  # type: ignore[attr-defined]
        if said.upper() == "PING":
            return count
        count += said.startswith("EVALSHA") and said.endswith(f"{id} look 0")


def test_only_who_holds_a_job_reports_for_it(queue: Queue, consumer: Consumer) -> None:
    """H-08."""
    queue.pause()
    handle = queue.send("t")
    assert report(queue, consumer, handle.id, 1) == [handle.id]  # it waits
    queue.resume()
    (job,) = pull(consumer, 1)
    with queue.consumer(renew=False) as another:
        assert report(queue, another, handle.id, 1) == [handle.id]
    with pytest.raises(RegistrationLost):
        report(queue, consumer, handle.id, 1, term="0")
    assert not queue.redis.exists(queue.keys.progress(handle.id))
    assert report(queue, consumer, handle.id, 2) == []
    assert 0 < queue.redis.pttl(queue.keys.progress(handle.id)) <= 86_400_000
    # an attempt is over, and the job lives: how far that one came is known
    consumer.retry(job)
    assert report(queue, consumer, handle.id, 3, over=(handle.id,)) == [handle.id]
    assert seen(handle, 0) == ["ready 2/10 (20%) pages"]
    found = handle.progress()
    assert found is not None and (found.done, found.total) == (2, 10)


def test_what_has_ended_is_seen_at_once(queue: Queue) -> None:
    handle = queue.send("t")
    assert seen(handle, 0) == ["ready"]
    assert seen(handle, 0.05) == ["ready"]
    assert handle.progress() is None
    queue.cancel(handle.id)
    assert seen(queue.job(handle.id), None) == ["cancelled"]
    with pytest.raises(UnknownJob):
        seen(queue.job("none"), None)
    with pytest.raises(UnknownJob):
        queue.job("none").progress()


def test_a_watch_goes_on_behind_a_cut_connection(
    far: Queue, near: Queue, proxy: Proxy, private_server: EmbeddedRedis
) -> None:
    handle = far.send("t")
    with Together() as together:
        with monitoring(private_server.url) as monitor:
            watching = together.start(seen, handle, 30)
            outside(monitor.wait_for, "XREAD")
            proxy.cut()
            outside(monitor.wait_for, "XREAD")
            near.cancel(handle.id)
            assert watching.result(PATIENCE) == ["ready", "cancelled"]
