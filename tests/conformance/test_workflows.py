"""Workflows: a job waits for others, gets their results, and hears of the end of each once."""

from collections.abc import Callable
from typing import Any

import pytest

from rqueue.errors import ConfigError, InvalidName, UnknownJob, WorkflowEnded
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.workflow_packing import packed_steps
from rqueue.tasks.limits import Concurrency, Rate
from rqueue.tasks.options import Options
from rqueue.tasks.workflow import Signature, chain, chord, group
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids, one_kind
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


def test_a_chain_passes_results_on(q: QueueFixture) -> None:
    handle = send(q, chain(plus.s(1, 2), double.s(), plus.s(10)))
    assert handle.ids == ["w", "w.0", "w.0.0"]
    assert states(q, *handle.ids) == ["deferred", "deferred", "ready"]
    assert run(q, q.join()) == ["w.0.0", "w.0", "w"]
    assert handle.result(0) == 16
    assert nothing_is_kept(q)


@one_kind
def test_a_chord_gets_results_in_the_order_of_its_members(q: QueueFixture) -> None:
    handle = send(q, chord((double.s(n) for n in range(5)), listed.s()))
    c = q.join()
    jobs = c.pull()
    for job in reversed(jobs):
        c.ack(job, double(*q.queue.envelope(job).args))
    assert run(q, c) == ["w"]
    assert handle.result(0) == [[0, 2, 4, 6, 8]]
    assert nothing_is_kept(q)


@one_kind
def test_a_place_counts_that_is_said_in_the_one_way(q: QueueFixture) -> None:
    """Anybody may give a job an id that looks derived."""
    for id_ in ("w.01", "w.7", "w.0x1", "w.1e0", "w.99999999999", "w."):
        q.queue.send(double.name, [1], options=Options(id=id_))
    send(q, chord([double.si(n) for n in range(3)], plus.si(1, 1)))
    c = q.join()
    assert step(q, c) == [
        "w.01",
        "w.7",
        "w.0x1",
        "w.1e0",
        "w.99999999999",
        "w.",
        "w.0",
        "w.1",
        "w.2",
    ]
    assert run(q, c) == ["w"]
    assert nothing_is_kept(q)


@one_kind
def test_members_that_end_far_apart_are_all_counted(q: QueueFixture) -> None:
    """Among them the last, the first and the middle in one step."""
    handle = send(q, chord([double.si(n) for n in range(2000)], plus.si(1, 1)))
    c = q.join(jobs=2000)
    jobs = [job for _ in range(4) for job in c.pull()]
    assert len(jobs) == 2000
    for some in (jobs[::1999], jobs[1000:1001], jobs[1:1000], jobs[1001:1999]):
        assert states(q, "w") == ["deferred"]
        for first in range(0, len(some), 500):
            c.settle(ack=some[first : first + 500])
            assert invariants.of_state(q.look()) == []
    assert run(q, c) == ["w"]
    assert handle.result(0) == 2


@one_kind
def test_a_chord_without_results(q: QueueFixture) -> None:
    handle = send(q, chord([double.s(n) for n in range(3)], plus.si(1, 1)))
    assert run(q, q.join())[-1] == "w"
    assert handle.result(0) == 2


@one_kind
def test_groups_in_chains(q: QueueFixture) -> None:
    """Behind a call each member gets its result; behind a group all of its results go on."""
    workflow = chain(
        plus.s(1, 1),
        group(plus.s(n) for n in range(3)),
        total.s(),
        group(double.s(), chain(plus.s(1), double.s())),
        group(listed.s(), total.s()),
    )
    handle = send(q, workflow)
    run(q, q.join())
    # 2; 2 3 4; 9; 18 and 20; both to both
    assert handle.result(0) == [[[18, 20]], 38]
    assert nothing_is_kept(q)


@one_kind
def test_a_pipe_makes_a_chain(q: QueueFixture) -> None:
    """A group behind a pipe is waited for as in a chain, also where chains are parts of chains."""
    piped = plus.s(1, 1) | group(plus.s(1), plus.s(2)) | total.s() | double.s()
    assert piped == chain(plus.s(1, 1), group(plus.s(1), plus.s(2)), total.s(), double.s())
    assert (plus.s(1, 1) | (double.s() | plus.s(2))) == chain(plus.s(1, 1), double.s(), plus.s(2))
    behind = chain(plus.s(1), double.s(), on_failure="continue")
    assert (plus.s(1, 1) | behind) == chain(plus.s(1, 1), behind)
    handle = send(q, piped)
    run(q, q.join())
    assert handle.result(0) == 14
    assert nothing_is_kept(q)


@one_kind
def test_a_chain_that_ends_with_a_group_is_part_of_another(q: QueueFixture) -> None:
    """Who follows it gets all results of the group."""
    ends = chain(plus.s(1, 1), group(plus.s(1), plus.s(2)))
    for number, workflow in enumerate(
        (chain(ends, total.s()), chain(ends, group(total.s(), listed.s())))
    ):
        handle = q.queue.enqueue_workflow(workflow, id=f"w{number}")
        run(q, q.join(name=f"c{number}"))
        assert handle.result(0) == [7, [7, [[3, 4]]]][number]
        assert nothing_is_kept(q)


@one_kind
@pytest.mark.parametrize(
    "options", [{"unique": True}, {"limit": Concurrency(2)}, {"limit": Rate(2, per=1)}, {"id": "j"}]
)
def test_what_no_queue_has_beside_workflows_is_refused_in_them(
    q: QueueFixture, options: dict[str, Any]
) -> None:
    call = double.options(**options).s(1)
    for workflow in (call, chain(call, double.s()), chord([double.s(1)], call)):
        with pytest.raises(ConfigError, match=r"takes neither id, after.*, unique nor limit"):
            send(q, workflow)
    assert q.look().jobs == {}


@one_kind
def test_a_group_is_done_when_its_members_are(q: QueueFixture) -> None:
    handle = send(q, group(double.s(1), chain(double.s(1), double.s())))
    assert [job.id for job in handle.jobs] == ["w.0", "w.1"]
    run(q, q.join())
    assert handle.result(0) == [2, 4]


@one_kind
def test_a_job_that_comes_again_is_counted_once(q: QueueFixture) -> None:
    send(q, chord([double.s(1), double.s(2)], listed.s()))
    c = q.join()
    first, second = c.pull()
    c.release(first)
    assert states(q, "w") == ["deferred"]
    (first,) = c.pull()
    c.ack(first, 1)
    c.ack(first, 5)  # stale: it has ended
    c.retry(second, delay=0)
    assert states(q, "w") == ["deferred"]
    (second,) = c.pull()
    c.ack(second, 2)
    assert run(q, c) == ["w"]
    assert q.queue.job("w").result(0) == [[1, 2]]


@one_kind
def test_after(q: QueueFixture) -> None:
    q.put("a", "b")
    later = double.options(after=["a", q.queue.job("b")], id="c").si(4)
    handle = q.queue.enqueue(later.task, *later.args)
    assert handle.state() == "deferred"
    c = q.join(1)
    c.ack(*c.pull())
    assert handle.state() == "deferred"
    c.ack(*c.pull())
    assert run(q, c) == ["c"]
    assert handle.result(0) == 8
    assert nothing_is_kept(q)


@one_kind
def test_after_jobs_that_have_ended(q: QueueFixture) -> None:
    q.put("a", "b", "c")
    c = q.join()
    a, b, held = c.pull()
    c.ack(a)
    c.reject(b, "no")
    for name, after, policy in (
        ("1", ["a"], "stop"),
        ("2", ["a", "b"], "stop"),
        ("3", ["a", "b"], "continue"),
        ("4", ["b"], "wait"),
        ("5", ["a", "c"], "stop"),
    ):
        q.queue.send("t", [], None, Options(id=name, after=after, on_failure=policy))
        assert invariants.of_state(q.look()) == []
    assert states(q, *"12345") == ["scheduled", "cancelled", "scheduled", "deferred", "deferred"]
    requeue(q, "b")
    for job in (held, *c.pull()):
        c.ack(job)
    assert states(q, *"12345") == ["done", "cancelled", "done", "scheduled", "scheduled"]
    for job in c.pull():
        c.ack(job)
    assert states(q, *"45") == ["done", "done"]
    assert nothing_is_kept(q)


@one_kind
def test_after_a_job_that_is_not_there(q: QueueFixture) -> None:
    with pytest.raises(UnknownJob, match="'never'"):
        q.put("1", after=["never"])
    assert "jobs" not in q.look().keys
    for wrong in ([], "one", ["a", "a"], [7], [str(n) for n in range(101)]):
        with pytest.raises((ConfigError, InvalidName), match=r"after|id"):
            Options(after=wrong)
    with pytest.raises(ConfigError, match="on_failure"):
        Options(after=["a"], on_failure="ignore")  # type: ignore[arg-type]


@one_kind
def test_one_that_waits_becomes_ready_before_what_has_not_begun(q: QueueFixture) -> None:
    """What has begun is finished first: there are never more open workflows than workers."""
    send(q, chain(double.s(1), double.s()), "v")
    send(q, chain(double.s(1), double.s()), "w")
    assert run(q, q.join(1)) == ["v.0", "v", "w.0", "w"]


@one_kind
def test_one_that_waits_wakes_one_consumer(q: QueueFixture) -> None:
    a, b = q.join(1), q.join(1)
    send(q, chord([double.s(1), double.s(2)], listed.s()))
    (job,) = a.pull()
    (other,) = b.pull()
    a.ack(job, 1)
    assert invariants.of_state(q.look()) == []
    b.ack(other, 1)
    assert invariants.of_state(q.look()) == []


@one_kind
def test_callbacks(q: QueueFixture) -> None:
    good = double.s(4).on_success(listed.s()).on_error(plus.s(1))
    bad = fails.s().on_success(listed.s()).on_error(listed.s())
    send(q, good, "g")
    send(q, bad, "b")
    c = q.join()
    step(q, c)
    calls = {job.id: q.queue.envelope(job).args for job in c.pull()}
    assert calls["g-success0"] == [8]
    (failure,) = calls["b-error0"]
    assert (failure.id, failure.state) == ("b", "dead")
    assert states(q, "g-error0", "b-success0") == ["cancelled", "cancelled"]


@one_kind
def test_what_is_sent_again_goes_on(q: QueueFixture) -> None:
    workflow = chord([double.s(n) for n in range(600)], listed.si(1))
    sent = workflow.steps("w")
    first = next(packed_steps(q.queue._packer, sent))
    execute(q.queue.redis, first.call(q.queue.keys), queue=q.queue.name)
    c = q.join(250)
    run(q, c)
    assert states(q, "w") == ["deferred"]  # its creator died: it never begins early
    send(q, workflow)
    assert run(q, c)[-1] == "w"
    assert nothing_is_kept(q)


@one_kind
def test_a_member_of_what_has_ended_is_refused(q: QueueFixture) -> None:
    send(q, chord([double.s(1), double.s(2)], listed.s()))
    q.queue.cancel("w")
    with pytest.raises(WorkflowEnded):
        send(q, chord([double.s(n) for n in range(3)], listed.s()))


@one_kind
def test_a_workflow_inside_a_transaction_of_a_job(q: QueueFixture) -> None:
    """A job waits for the one that enqueues it: it becomes ready in the step that acks that."""
    q.put("a")
    c = q.join()
    (job,) = c.pull()
    with q.queue.transaction(c) as tx:
        tx.send("t", [], None, Options(id="b", after=["a"]))
        tx.ack(job)
    assert ids(c.pull()) == ["b"]


@one_kind
def test_purge_ends_those_that_wait(q: QueueFixture) -> None:
    handle = send(q, chain(double.s(1), double.s(), double.s()))
    execute(q.queue.redis, commands.purge(q.queue.keys, scheduled=True, limit=500))
    assert "ready" not in states(q, *handle.ids)
    assert "deferred" not in states(q, *handle.ids)
    assert nothing_is_kept(q)


@one_kind
def test_more_results_than_fit_one_job(q: QueueFixture) -> None:
    many = [double.s(n) for n in range(1001)]
    with pytest.raises(ConfigError, match="1,001 results"):
        send(q, chord(many, listed.s()))
    send(q, chord([listed.s("x" * 300_000) for _ in range(4)], listed.s()))
    run(q, q.join())
    assert states(q, "w") == ["cancelled"]


@one_kind
def test_what_is_no_workflow(q: QueueFixture) -> None:
    wrong: list[Callable[[], object]] = [
        lambda: chain(),
        lambda: chain(double),  # type: ignore[arg-type]
        lambda: group(7),  # type: ignore[arg-type]
        lambda: group(),
        lambda: group(group(double.s(1))),
        lambda: chord([double.s(1)], double),  # type: ignore[arg-type]
        lambda: chain(double.s(1), on_failure="x"),  # type: ignore[arg-type]
        lambda: send(q, chain(double.options(id="a").s(1))),
    ]
    for make in wrong:
        with pytest.raises(ConfigError):
            make()
    assert isinstance(double.s(1), Signature)
    assert JobState.DEFERRED.ended is False
