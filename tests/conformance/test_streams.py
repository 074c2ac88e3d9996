"""Streams: members are stored while they are drawn, and what waits for them waits for the end of
the stream too."""

from collections.abc import Iterator
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.workflows import WorkflowHandle
from rqueue.errors import (
    ConfigError,
    JobCancelled,
    ProducerLost,
    ScriptError,
    StreamSealed,
    WorkflowEnded,
)
from rqueue.inspector.history import read_history
from rqueue.model.parents import LOST_MS
from rqueue.protocol import commands, stream_packing
from rqueue.protocol.commands import Put
from rqueue.protocol.commands.streams import read_stream, seal
from rqueue.tasks.options import Options
from rqueue.tasks.stream import stream
from rqueue.tasks.workflow import Signature
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, on_real_servers, one_kind
from tests.support.workflows import (
    double,
    fails,
    nothing_is_kept,
    plus,
    requeue,
    run,
    states,
)

DONE = plus.si(1, 1)
BATCH = 50
"""Members of a step: here fewer than a client sends."""


@pytest.fixture(autouse=True)
def full_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step is as large as it gets, however long the members of a test take."""
    monkeypatch.setattr(stream_packing, "BATCH", BATCH)
    monkeypatch.setattr(stream_packing, "LINGER_S", 3600.0)


def send(
    q: QueueFixture, members: Any, id: str | None = "w", **options: Any
) -> WorkflowHandle[Any]:
    handle = q.queue.enqueue_workflow(stream(members, DONE, **options), id=id)
    assert invariants.of_state(q.look()) == []
    return handle


def joined(q: QueueFixture, id: str = "w") -> int | None:
    return execute(q.queue.redis, read_stream(q.queue.keys, id)).joined


def open_with(q: QueueFixture, count: int) -> None:
    """A stream whose producer died behind so many members."""

    def members() -> Iterator[Signature[int]]:
        yield from (double.s(n) for n in range(count))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_packing, "LINGER_S", 0.0)
        send(q, members())
    assert joined(q) == count


def test_members_run_while_others_are_drawn(q: QueueFixture) -> None:
    c = q.join()
    count, ran = 2 * BATCH + 10, []

    def members() -> Iterator[Signature[int]]:
        for n in range(count):
            if n in (BATCH + 1, 2 * BATCH + 1):
                ran.extend(run(q, c))
                assert states(q, "w") == ["deferred"], "all have ended, and there are more"
            yield double.s(n)

    handle = send(q, members())
    assert len(ran) == 2 * BATCH
    assert len(handle.ids) == count + 1
    assert handle.ids[:3] == ["w", "w.0", "w.1"]
    assert handle.ids[-1] == f"w.{count - 1}"
    ran += run(q, c)
    assert ran == [*handle.ids[1:], "w"]
    assert handle.result(0) == 2
    assert nothing_is_kept(q)


def test_the_callback_runs_where_all_have_ended_before_the_end(q: QueueFixture) -> None:
    c = q.join()

    def members() -> Iterator[Signature[int]]:
        yield from (double.s(n) for n in range(BATCH))
        yield double.s(0)  # the batch before is stored now
        run(q, c)

    send(q, members())
    assert run(q, c) == [f"w.{BATCH}", "w"]
    assert nothing_is_kept(q)


@one_kind
def test_a_stream_without_members(q: QueueFixture) -> None:
    handle = send(q, iter(()))
    execute(q.queue.redis, seal(q.queue.keys, "w", 0))
    with pytest.raises(StreamSealed, match="has 0 members, and not 1"):
        execute(q.queue.redis, seal(q.queue.keys, "w", 1))
    assert run(q, q.join()) == ["w"]
    assert handle.result(0) == 2
    assert nothing_is_kept(q)


@one_kind
def test_who_sleeps_is_woken_by_the_seal(q: QueueFixture) -> None:
    open_with(q, 1)
    c = q.join()
    run(q, c)
    assert q.state(c) == "interested"
    execute(q.queue.redis, seal(q.queue.keys, "w", 1))
    assert q.state(c) == "notified"
    assert run(q, c) == ["w"]


@one_kind
@pytest.mark.parametrize(("on_failure", "end"), [("stop", "cancelled"), ("continue", "done")])
def test_a_member_that_fails(q: QueueFixture, on_failure: Any, end: str) -> None:
    c = q.join()

    def members() -> Iterator[Signature[Any]]:
        yield from (fails.s() for _ in range(BATCH))
        yield double.s(1)
        run(q, c)
        yield from (double.s(n) for n in range(BATCH))

    if on_failure == "stop":
        with pytest.raises(WorkflowEnded):
            send(q, members(), on_failure=on_failure)
    else:
        send(q, members(), on_failure=on_failure)
    run(q, c)
    assert states(q, "w") == [end]
    assert nothing_is_kept(q)


@one_kind
def test_a_dead_member_is_waited_for(q: QueueFixture) -> None:
    send(q, [fails.s()], on_failure="wait")
    c = q.join()
    run(q, c)
    assert states(q, "w", "w.0") == ["deferred", "dead"]
    requeue(q, "w.0")
    (job,) = c.pull()
    c.ack(job, 1)
    assert run(q, c) == ["w"]


def test_a_cancel_reaches_the_producer(q: QueueFixture) -> None:
    drawn = []

    def members() -> Iterator[Signature[int]]:
        for n in range(3 * BATCH):
            if n == BATCH + 1:
                q.queue.cancel("w")
            drawn.append(n)
            yield double.s(n)

    with pytest.raises(WorkflowEnded, match="'w' waits for no more parts"):
        send(q, members())
    assert len(drawn) == 2 * BATCH, "its next step says so, and no more are drawn"
    assert len(run(q, q.join())) == BATCH
    assert nothing_is_kept(q)


@one_kind
def test_members_that_cannot_be_drawn(q: QueueFixture) -> None:
    """Nobody knows the id: what waits is cancelled."""

    def members() -> Iterator[Signature[int]]:
        yield from (double.s(n) for n in range(BATCH + 1))
        raise OSError("no such table")

    with pytest.raises(OSError, match="no such table") as error:
        send(q, members(), None)
    assert not getattr(error.value, "__notes__", [])
    assert q.queue.counts().more["deferred"] == 0
    assert len(run(q, q.join())) == BATCH
    assert nothing_is_kept(q)


def test_the_same_goes_on_where_it_stopped(q: QueueFixture) -> None:
    """With an id of the caller's: members that are there are drawn again, and not stored."""
    broken = True

    def members() -> Iterator[Signature[int]]:
        for n in range(2 * BATCH):
            if broken and n == BATCH + 5:
                raise OSError("no such table")
            yield double.s(n)

    with pytest.raises(OSError) as error:
        send(q, members())
    assert "enqueued again as id='w'" in error.value.__notes__[0]
    assert states(q, "w") == ["deferred"]
    c = q.join()
    ran = run(q, c)
    broken = False
    handle = send(q, members())
    ran += run(q, c)
    assert ran == [*handle.ids[1:], "w"]


@one_kind
def test_what_is_sealed_is_not_drawn_again(q: QueueFixture) -> None:
    send(q, [double.s(1), double.s(2)])

    def never() -> Iterator[Signature[int]]:
        raise AssertionError
        yield

    assert send(q, never()).ids[:] == ["w", "w.0", "w.1"]
    c = q.join()
    run(q, c)
    assert send(q, never()).result(0) == 2
    assert run(q, c) == []


@one_kind
def test_what_was_cancelled_is_not_begun_again(q: QueueFixture) -> None:
    open_with(q, 2)
    q.queue.cancel("w")
    with pytest.raises(WorkflowEnded):
        send(q, [double.s(1)])


@one_kind
def test_an_id_of_something_else(q: QueueFixture) -> None:
    q.put("w")
    with pytest.raises(ConfigError, match="job 'w' is there, and waits for no stream"):
        send(q, [double.s(1)])


def test_a_seal_is_said_twice(q: QueueFixture) -> None:
    open_with(q, 2)
    keys, client = q.queue.keys, q.queue.redis
    with pytest.raises(StreamSealed, match="stream 'w' has 2 members, and not 3"):
        execute(client, seal(keys, "w", 3))
    assert joined(q) == 2
    for _ in range(2):
        execute(client, seal(keys, "w", 2))
    with pytest.raises(StreamSealed) as error:
        execute(client, seal(keys, "w", 1))
    assert (error.value.total, error.value.said, error.value.id) == (2, 1, "w")
    c = q.join()
    assert run(q, c) == ["w.0", "w.1", "w"]
    execute(client, seal(keys, "w", 2))
    q.put("x")
    with pytest.raises(WorkflowEnded):
        execute(client, seal(keys, "y", 2))


@one_kind
def test_a_shorter_stream_under_the_same_id(q: QueueFixture) -> None:
    open_with(q, 3)
    with pytest.raises(StreamSealed, match="has 3 members, and not 1"):
        send(q, [double.s(1)])


@one_kind
def test_two_producers_of_one_stream(q: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a job is delivered again while its first attempt lives: each member comes once."""

    def members(*, first: bool = False) -> Iterator[Signature[int]]:
        for n in range(6):
            if n == 3 and first:
                send(q, members())
            yield double.s(n)

    monkeypatch.setattr(stream_packing, "LINGER_S", 0.0)
    handle = send(q, members(first=True))
    assert run(q, q.join()) == [*handle.ids[1:], "w"]


@one_kind
def test_a_member_is_known_by_its_number(q: QueueFixture) -> None:
    """Also where nothing else is known of it any more."""
    open_with(q, 2)
    run(q, q.join())
    q.queue.redis.delete(q.queue.keys.ended, q.queue.keys.ended_old)
    puts = [Put(f"w.{n}", b'["t"]', counts=True) for n in range(3)]
    answer = execute(q.queue.redis, commands.enqueue(q.queue.keys, puts))
    assert (answer.accepted, sorted(answer.known)) == (1, [0, 1])
    assert joined(q) == 3
    again = execute(q.queue.redis, commands.enqueue(q.queue.keys, puts[:2]))
    assert (again.accepted, sorted(again.known)) == (0, [0, 1])


@one_kind
def test_no_number_is_left_out(q: QueueFixture) -> None:
    open_with(q, 2)
    before = q.look().keys
    with pytest.raises(ScriptError, match="more parents than it waits for"):
        execute(
            q.queue.redis,
            commands.enqueue(q.queue.keys, [Put("w.3", b'["t"]', counts=True)]),
        )
    assert q.look().keys == before


def test_a_producer_that_went_away(q: QueueFixture) -> None:
    """What it enqueued runs; what waits for it ends, and says why."""
    open_with(q, 2)
    q.queue.send("t", options=Options(id="then", after=["w"]))
    c = q.join()
    assert len(run(q, c)) == 2
    move_time(q.queue, LOST_MS - 1000)
    q.renew(c, lease_ms=LOST_MS)
    assert states(q, "w", "then") == ["deferred", "deferred"]
    move_time(q.queue, 2000)
    q.renew(c)
    assert states(q, "w", "then") == ["cancelled", "cancelled"]
    with pytest.raises(ProducerLost, match="its producer went away, with 2 members enqueued"):
        q.queue.job("w").result(0)
    rows = {row["id"]: row for row in read_history(q.queue.redis, q.queue.keys)}
    assert (rows["w"]["outcome"], rows["w"]["error"]) == ("cancelled", "ProducerLost")
    with pytest.raises(JobCancelled, match="job 'w', for which it waited"):
        q.queue.job("then").result(0)
    with pytest.raises(WorkflowEnded):
        send(q, [double.s(1), double.s(2), double.s(3)])
    assert invariants.of_state(q.look()) == []
    assert nothing_is_kept(q)


@one_kind
def test_each_step_says_that_its_producer_lives(q: QueueFixture) -> None:
    c = q.join()

    def members() -> Iterator[Signature[int]]:
        for n in range(4):
            move_time(q.queue, LOST_MS // 2)
            q.renew(c, lease_ms=10 * LOST_MS)
            yield double.s(n)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_packing, "LINGER_S", 0.0)
        send(q, members())
    assert states(q, "w") == ["deferred"]
    move_time(q.queue, 2 * LOST_MS)
    q.renew(c)
    assert states(q, "w") == ["deferred"], "it is sealed: it waits for its members alone"


@one_kind
def test_a_purge_ends_what_is_open(q: QueueFixture) -> None:
    open_with(q, 2)
    while q.purge():
        pass
    assert q.look().keys.get("unsealed") is None
    assert nothing_is_kept(q)


@on_real_servers
def test_signed_jobs(q: QueueFixture, queue_name: str) -> None:
    """How many members came is said by the queue, and not by who signed the callback."""
    with Queue(queue_name, q._url, signing_keys={"k": "a secret of sixteen"}) as queue:
        q.queue = queue
        send(q, [double.s(1), double.s(2)])
        assert run(q, q.join()) == ["w.0", "w.1", "w"]


@one_kind
def test_a_queue_is_deleted_with_what_is_open(q: QueueFixture) -> None:
    open_with(q, 2)
    assert q.queue.delete(jobs=True) == 3
    left = list(q.queue.redis.scan_iter(f"*{q.queue.name}*"))
    assert left == [q.queue.keys.meta.encode()]
