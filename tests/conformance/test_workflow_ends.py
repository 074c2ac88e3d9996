"""Whatever ends a job of a workflow, those that wait for it hear of it once."""

from collections.abc import Callable
from typing import Any

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.errors import JobCancelled
from rqueue.model.parents import Failure
from rqueue.protocol import commands
from rqueue.tasks.workflow import chain, chord, group
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, one_kind
from tests.support.workflows import (
    double,
    fails,
    listed,
    nothing_is_kept,
    plus,
    requeue,
    run,
    send,
    states,
    step,
    total,
)


@one_kind
def test_where_a_call_fails_those_behind_it_are_cancelled(q: QueueFixture) -> None:
    handle = send(q, chain(plus.s(1, 1), fails.s(), double.s(), double.s()))
    assert run(q, q.join()) == ["w.0.0.0", "w.0.0"]
    assert states(q, *handle.ids) == ["cancelled", "cancelled", "dead", "done"]
    with pytest.raises(JobCancelled, match=r"job 'w.0.0', for which it waited, is dead: .*no such"):
        handle.result(0)
    assert nothing_is_kept(q)


@one_kind
def test_a_member_that_fails_stops_the_callback_and_no_other_member(q: QueueFixture) -> None:
    handle = send(q, chord([double.s(1), fails.s(), double.s(2)], total.s()))
    assert run(q, q.join(1)) == ["w.0", "w.1", "w.2"]
    assert states(q, *handle.ids) == ["cancelled", "done", "dead", "done"]
    assert nothing_is_kept(q)


@one_kind
def test_on_failure_continue(q: QueueFixture) -> None:
    handle = send(q, chord([double.s(1), fails.s()], listed.s(), on_failure="continue"))
    c = q.join()
    step(q, c)
    (job,) = c.pull()
    ((two, failure),) = q.queue.envelope(job).args
    assert two == 2
    assert isinstance(failure, Failure)
    assert (failure.id, failure.state) == ("w.1", "dead")
    assert "no such page" in failure.message
    c.ack(job)
    assert handle.result(0) is None


@one_kind
def test_a_dead_letter_that_lives_again_counts_once(q: QueueFixture) -> None:
    """Counted as a failure, and done later: the callback has run by then, once."""
    send(q, chord([double.s(1), fails.s()], listed.si(0), on_failure="continue"))
    c = q.join()
    assert run(q, c)[-1] == "w"
    requeue(q, "w.1")
    c.ack(*c.pull())
    assert run(q, c) == []
    assert nothing_is_kept(q)


@one_kind
def test_counted_as_a_failure_while_others_run_and_done_later(q: QueueFixture) -> None:
    send(q, chord([double.s(1), fails.s(), double.s(1)], listed.s(), on_failure="continue"))
    c = q.join(1)
    assert step(q, c) + step(q, c) == ["w.0", "w.1"]
    requeue(q, "w.1")
    (job,) = c.pull()
    c.ack(job, 4)
    assert job.id == "w.2"
    assert states(q, "w") == ["scheduled"]  # all three have ended once
    assert nothing_is_kept(q)


@one_kind
def test_on_failure_wait(q: QueueFixture) -> None:
    handle = send(q, chain(fails.s(), double.s(), on_failure="wait"))
    c = q.join()
    run(q, c)
    assert states(q, "w", "w.0") == ["deferred", "dead"]
    requeue(q, "w.0")
    c.ack(*c.pull(), 4)
    assert run(q, c) == ["w"]
    assert handle.result(0) == 8


@one_kind
def test_a_dead_letter_requeued_after_the_stop_runs_alone(q: QueueFixture) -> None:
    send(q, chain(fails.s(), double.s()))
    c = q.join()
    run(q, c)
    requeue(q, "w.0")
    c.ack(*c.pull(), 4)
    assert run(q, c) == []
    assert states(q, "w", "w.0") == ["cancelled", "done"]


def cancel(q: QueueFixture, c: Consumer, id: str) -> None:
    assert q.queue.cancel(id)


def purge_dead(q: QueueFixture, c: Consumer, id: str) -> None:
    job = next(job for job in c.pull() if job.id == id)
    c.reject(job, "no")
    execute(q.queue.redis, commands.purge_dead(q.queue.keys, [id]))


def expire(q: QueueFixture, c: Consumer, id: str) -> None:
    assert q.queue.expire(id) == 1


ENDS: dict[str, Callable[[QueueFixture, Consumer, str], None]] = {
    "cancel": cancel,
    "purge_dead": purge_dead,
    "expire": expire,
}


@one_kind
@pytest.mark.parametrize("how", list(ENDS))
@pytest.mark.parametrize("on_failure", ["stop", "continue"])
def test_whatever_ends_a_member(q: QueueFixture, how: str, on_failure: Any) -> None:
    send(q, chord([double.s(1), double.s(2)], listed.si(0), on_failure=on_failure))
    c = q.join()
    ENDS[how](q, c, "w.1")
    assert invariants.of_state(q.look()) == []
    if how == "purge_dead":
        c.ack("w.0", 2)
    run(q, c)
    assert states(q, "w") == ["cancelled" if on_failure == "stop" else "done"]
    assert nothing_is_kept(q)


@one_kind
def test_a_member_that_expires(q: QueueFixture) -> None:
    send(q, chain(double.options(ttl=5).s(1), double.s()))
    move_time(q.queue, 6000)
    assert run(q, q.join()) == []
    assert states(q, "w", "w.0") == ["cancelled", "expired"]


@one_kind
def test_who_waits_expires_too(q: QueueFixture) -> None:
    send(q, chain(double.s(1), double.options(ttl=5).s(), double.s()))
    move_time(q.queue, 6000)
    c = q.join()
    assert run(q, c) == ["w.0.0"]
    assert states(q, "w", "w.0", "w.0.0") == ["cancelled", "expired", "done"]
    assert nothing_is_kept(q)


@one_kind
@pytest.mark.parametrize("steps", range(4))
def test_cancel_of_the_whole_at_every_moment(q: QueueFixture, steps: int) -> None:
    handle = send(q, chain(group(double.s(1), double.s(2)), total.s(), double.s()))
    c = q.join(1)
    for _ in range(steps):
        step(q, c)
    held = c.pull()
    before = states(q, *handle.ids).count("done")
    assert handle.cancel() == len(handle.ids) - before
    c.ack(*held)
    assert run(q, c) == []
    assert {*states(q, *handle.ids)} <= {"cancelled", "done"}
    assert nothing_is_kept(q)
