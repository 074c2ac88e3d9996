"""Workflows in queues with limits, signatures and dead letters elsewhere, and in many pieces."""

import tracemalloc

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError, QueueFull
from rqueue.protocol import commands
from rqueue.protocol.workflow_packing import packed_steps
from rqueue.settings import Settings
from rqueue.tasks.options import Options
from rqueue.tasks.workflow import chain, chord, group
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids, one_kind
from tests.support.workflows import (
    double,
    fails,
    listed,
    nothing_is_kept,
    requeue,
    run,
    send,
    states,
    step,
    total,
)


@one_kind
def test_what_waits_is_signed_too(q: QueueFixture) -> None:
    settings = Settings(signing_keys={"k": "a secret of 20 bytes"})
    with Queue(q.queue.name, redis=q.queue.redis, settings=settings) as queue:
        names = [f"{'long' * 30}-{n}" for n in range(100)]
        for name in names:
            queue.send("double", [1], None, Options(id=name))
        queue.send("double", [1], None, Options(id="then", after=names))
        queue.enqueue_workflow(
            chord([double.s(1), chain(double.s(1), double.s())], total.s()), id="w"
        )
        c = q.join()
        done: list[str] = []
        while jobs := c.pull():
            for job in jobs:
                call = queue.envelope(job)  # raises Forged
                done.append(job.id)
                c.ack(job, double(*call.args) if call.task == "double" else total(*call.args))
        assert {"then", "w", "w.1.0", *names} <= {*done}
        assert queue.job("w").result(0) == 6


@one_kind
def test_a_workflow_that_is_refused_half_way_is_withdrawn(q: QueueFixture) -> None:
    q.queue.configure(max_jobs=300)
    with pytest.raises(QueueFull):
        q.queue.enqueue_workflow(chord([double.s(n) for n in range(400)], total.s()), id="w")
    assert states(q, "w", "w.0", "w.248") == ["cancelled"] * 3
    assert run(q, q.join()) == []
    assert nothing_is_kept(q)


@one_kind
def test_one_step_may_end_many_for_each_of_which_many_wait(q: QueueFixture) -> None:
    q.put(*"01234")
    for parent in "01234":
        with q.queue.transaction() as tx:
            for n in range(900):
                tx.send("t", [], None, Options(id=f"{parent}-{n}", after=[parent]))
    c = q.join()
    settle = commands.settle(
        q.queue.keys, c.name, c.term, None, ack=ids(c.pull()), rows=0, batch=b""
    )
    execute(q.queue.redis, settle)
    assert q.queue.counts().scheduled == 4500
    assert nothing_is_kept(q)


@one_kind
def test_a_large_workflow_takes_little_memory_until_it_is_sent(q: QueueFixture) -> None:
    members = 2000
    steps = chord((double.s(n) for n in range(members)), total.si([])).steps("w")
    tracemalloc.start()
    try:
        batches = [*packed_steps(q.queue._packer, steps)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(len(batch.jobs) for batch in batches) == members + 1
    assert taken < members * 1000  # bytes


@one_kind
def test_what_others_wait_for_stays_in_its_queue(q: QueueFixture) -> None:
    other = q.queue.at(f"{q.queue.name}-other")
    other.configure()
    handle = send(q, chord([double.s(1), double.s(2)], listed.s()))
    for id_, after in (("a", None), ("b", None), ("after", ["a"])):
        q.queue.send("double", [1], None, Options(id=id_, after=after))
    moved = q.queue.move(other.name, *handle.ids, "a", "after", "b")
    assert moved == 1
    assert {id_: said.partition(" of this")[0] for id_, said in moved.stayed.items()} == {
        "w": "it waits for other jobs",
        "after": "it waits for other jobs",
        "a": "other jobs",
        "w.0": "other jobs",
        "w.1": "other jobs",
    }
    c = q.join()
    step(q, c)
    assert states(q, "w", "after") == ["scheduled"] * 2
    for change in (q.queue.move, q.queue.copy):
        assert "the results" in change(other.name, "w").stayed["w"]
    assert {*run(q, c)} == {"w", "after"}
    assert other.move_all(q.queue.name) == 1  # nobody waits there
    other.delete()


@one_kind
def test_nobody_waits_for_a_dead_letter_that_is_elsewhere(q: QueueFixture) -> None:
    morgue = q.queue.at(f"{q.queue.name}-dead")
    morgue.configure()
    q.queue.configure(dead_to=morgue.name)
    send(q, chain(fails.s(), double.s(), on_failure="wait"))
    run(q, q.join())
    assert states(q, "w") == ["cancelled"]
    assert nothing_is_kept(q)


@one_kind
def test_what_is_too_long_or_too_wide_says_so(q: QueueFixture) -> None:
    with pytest.raises(ConfigError, match="201 calls follow one another in it, at most 200"):
        chain(*[double.si(1)] * 201)
    wide = chain(group(double.si(1) for _ in range(100)), group(double.si(1) for _ in range(101)))
    with pytest.raises(ConfigError, match="10,000 times in all"):
        send(q, wide)
    assert len(q.queue.enqueue_workflow(chain(*[double.si(1)] * 200)).ids) == 200


@one_kind
def test_a_dead_letter_of_one_that_waits_for_it_may_be_moved_once_it_counted(
    q: QueueFixture,
) -> None:
    other = q.queue.at(f"{q.queue.name}-other")
    other.configure()
    send(q, chain(fails.s(), double.s(), on_failure="wait"))
    c = q.join()
    run(q, c)
    assert q.queue.move(other.name, "w.0", dead=True) == 0
    requeue(q, "w.0")
    c.ack(*c.pull(), 1)
    assert invariants.of_state(q.look()) == []
    send(q, chord([fails.s(), double.s(1)], listed.si(1), on_failure="continue"), "v")
    assert "v.0" in ids(c.pull())
    c.reject("v.0", "no")
    assert q.queue.move(other.name, "v.0", dead=True) == 1
