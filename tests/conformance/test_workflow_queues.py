"""Workflows whose jobs are in several queues: each hears of the end of what it waits for once, by
way of the outbox, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.client._sync.queue import Queue
from rqueue.client._sync.workflows import WorkflowHandle
from rqueue.errors import ConfigError, QueueFull
from rqueue.model.parents import QUEUES_MAX, Failure
from rqueue.protocol import commands
from rqueue.protocol.commands.outgoing import join, outgoing_take
from rqueue.settings import Settings
from rqueue.tasks.bound_task import BoundTask
from rqueue.tasks.decorator import task
from rqueue.tasks.task import Task
from rqueue.tasks.workflow import Workflow, chain, chord, group
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, one_kind
from tests.support.workflows import double, fails, listed, nothing_is_kept, plus, registry, total

pytestmark = one_kind


@task(name="noted", registry=registry)
def noted(what: Any) -> list[Any]:
    return [list(what) if isinstance(what, Failure) else what]


class Shops:
    """Queues a, b and c, a consumer in each, and the tasks as they are of each."""

    def __init__(self, q: QueueFixture) -> None:
        self.at = {"a": q}
        for name in "bc":
            self.at[name] = QueueFixture(q.queue.at(f"{q.queue.name}-{name}"))
        self.consumers: dict[str, Consumer] = {}

    def of(self, task: Task[Any, Any], name: str) -> BoundTask[Any, Any]:
        return task.options(queue=self.at[name].queue.name)

    def send(self, workflow: Workflow[Any], id: str = "w") -> WorkflowHandle[Any]:
        queue = self.at["a"].queue
        handle = queue.at(workflow.ends()[0].task.queue).enqueue_workflow(
            workflow, id=id, spread=True
        )
        self.right()
        return handle

    def pull(self, name: str) -> list[Any]:
        if name not in self.consumers:
            self.consumers[name] = self.at[name].join()
        return self.consumers[name].pull()

    def step(self) -> list[str]:
        """What is ready in each queue runs, and is settled; which jobs of which queues."""
        done = []
        for name, q in self.at.items():
            for job in self.pull(name):
                call = q.queue.envelope(job)
                try:
                    result = registry.get(call.task).function(*call.args, **call.kwargs)
                except ValueError as error:
                    self.consumers[name].reject(job, str(error), "exception")
                else:
                    self.consumers[name].ack(job, result)
                done.append(f"{name}:{job.id}")
        self.right()
        return done

    def run(self) -> list[str]:
        done: list[str] = []
        while now := self.step():
            done += now
        return done

    def right(self) -> None:
        for q in self.at.values():
            assert invariants.of_state(q.look()) == []

    def nothing_is_kept(self) -> bool:
        return all(nothing_is_kept(q) and "outgoing" not in q.look().keys for q in self.at.values())

    def states(self, *names: str) -> list[str]:
        """Of jobs, each "<queue>:<id>"."""
        split = [name.split(":", 1) for name in names]
        return [str(self.at[at].queue.job(id_).state()) for at, id_ in split]


@pytest.fixture
def shops(q: QueueFixture) -> Iterator[Shops]:
    shops = Shops(q)
    yield shops
    for name in "bc":
        shops.at[name].close()


def test_a_chain_goes_from_queue_to_queue(shops: Shops) -> None:
    calls = (shops.of(double, "a").s(1), shops.of(plus, "b").s(10), shops.of(double, "c").s())
    handle = shops.send(chain(*calls))
    assert shops.states("a:w.0.0", "b:w.0", "c:w") == ["ready", "deferred", "deferred"]
    assert shops.run() == ["a:w.0.0", "b:w.0", "c:w"]
    assert handle.result(0) == 24
    assert shops.nothing_is_kept()


def test_a_chord_over_queues_gets_results_in_the_order_of_its_members(shops: Shops) -> None:
    members = [shops.of(double, "abc"[n % 3]).s(n) for n in range(9)]
    handle = shops.send(chord(members, shops.of(listed, "b").s()))
    assert shops.run()[-1] == "b:w"
    assert handle.result(0) == [[0, 2, 4, 6, 8, 10, 12, 14, 16]]
    assert shops.nothing_is_kept()


def test_a_chain_that_ends_with_a_group_is_part_of_another_in_queues(shops: Shops) -> None:
    ends = chain(shops.of(plus, "a").s(1, 1), group(shops.of(plus, n).s(1) for n in "bc"))
    handle = shops.send(chain(ends, shops.of(total, "a").s()))
    shops.run()
    assert handle.result(0) == 6
    assert shops.nothing_is_kept()


def test_groups_behind_each_other_in_queues(shops: Shops) -> None:
    workflow = chain(
        group(shops.of(plus, "ab"[n % 2]).s(1, n) for n in range(4)),
        group(shops.of(total, "c").s(), chain(shops.of(total, "a").s(), shops.of(double, "b").s())),
        shops.of(listed, "a").s(),
    )
    handle = shops.send(workflow)
    shops.run()
    assert handle.result(0) == [[10, 20]]
    assert shops.nothing_is_kept()


def test_a_group_over_queues_is_done_when_its_members_are(shops: Shops) -> None:
    handle = shops.send(group(shops.of(double, "b").s(1), shops.of(double, "c").s(2)))
    shops.run()
    assert handle.result(0) == [2, 4]


def test_callbacks_in_other_queues(shops: Shops) -> None:
    after = shops.of(listed, "b").s()
    good = shops.of(double, "a").s(4).on_success(after).on_error(after)
    bad = shops.of(fails, "a").s().on_success(after).on_error(shops.of(noted, "a").s())
    shops.send(good, "g")
    shops.send(bad, "x")
    shops.run()
    assert shops.states("b:g-success0", "b:g-error0") == ["done", "cancelled"]
    assert shops.states("b:x-success0", "a:x-error0") == ["cancelled", "done"]
    assert shops.at["b"].queue.job("g-success0").result(0) == [8]
    (failure,) = shops.at["a"].queue.job("x-error0").result(0)
    assert failure[:2] == ["x", "dead"]
    shops.at["a"].purge_dead("x")
    shops.at["a"].queue.forward()
    assert shops.nothing_is_kept()


@pytest.mark.parametrize("policy", ["stop", "continue", "wait"])
def test_a_failure_in_another_queue(shops: Shops, policy: Any) -> None:
    bad, then = shops.of(fails, "b").s(), shops.of(noted, "c").s()
    shops.send(chain(bad, shops.of(noted, "a").s(), then, on_failure=policy))
    shops.run()
    assert shops.states("b:w.0.0") == ["dead"]
    if policy == "wait":
        assert shops.states("a:w.0", "c:w") == ["deferred", "deferred"]
        assert shops.at["b"].requeue("w.0.0") == 1
        (job,) = shops.pull("b")
        shops.consumers["b"].ack(job, 5)
        shops.run()
    over = {"stop": "cancelled", "continue": "done", "wait": "done"}[policy]
    assert shops.states("a:w.0", "c:w") == [over, over]
    if policy == "stop":
        cause = shops.at["c"].queue.job("w")
        with pytest.raises(Exception, match=r"w\.0\.0.*no such page"):
            cause.result(0)
    shops.at["b"].purge_dead("w.0.0")
    shops.at["b"].queue.forward()
    assert shops.nothing_is_kept()


def test_a_dead_letter_elsewhere_that_is_purged_is_waited_for_no_more(shops: Shops) -> None:
    shops.send(chain(shops.of(fails, "b").s(), shops.of(listed, "a").s(), on_failure="wait"))
    shops.run()
    shops.at["b"].purge_dead("w.0")
    shops.at["b"].queue.forward()
    assert shops.states("a:w") == ["cancelled"]
    assert shops.nothing_is_kept()


def test_what_is_said_twice_counts_once(shops: Shops) -> None:
    """Who sends a word of an end dies before it can say so: it is sent again."""
    members = [shops.of(double, "b").s(n) for n in range(3)]
    shops.send(chord(members, shops.of(total, "a").s()))
    b, a = shops.at["b"].queue, shops.at["a"].queue
    jobs = shops.pull("b")
    consumer = shops.consumers["b"]
    settle = commands.settle(
        b.keys, consumer.name, consumer.term, None, done=[(jobs[0].id, None, b"7")], rows=0,
        batch=b"",
    )  # fmt: skip
    execute(b.redis, settle)
    (word,) = execute(b.redis, outgoing_take(b.keys)).jobs
    assert (word.id, word.ends) == ("w", 1)
    for _ in range(3):
        joined = execute(a.redis, join(a.keys, [(word.id, word.envelope)]))
        assert joined.waiting == 1
    assert shops.states("a:w") == ["deferred"]
    for job in jobs[1:]:
        consumer.ack(job, 1)
    assert shops.step() == ["a:w"]
    assert a.job("w").result(0) == 9
    assert execute(a.redis, join(a.keys, [(word.id, word.envelope)])).waiting == 0
    assert shops.states("a:w") == ["done"]


def test_one_step_that_ends_many_says_so_in_one_word(shops: Shops) -> None:
    shops.send(chord([shops.of(double, "b").s(n) for n in range(50)], shops.of(total, "a").s()))
    b = shops.at["b"].queue
    ids = [job.id for job in shops.pull("b")]
    consumer = shops.consumers["b"]
    settle = commands.settle(b.keys, consumer.name, consumer.term, None, ack=ids, rows=0, batch=b"")
    execute(b.redis, settle)
    assert len(execute(b.redis, outgoing_take(b.keys)).jobs) == 1


def test_the_whole_is_cancelled_in_all_queues(shops: Shops) -> None:
    members = [shops.of(double, "abc"[n % 3]).s(n) for n in range(6)]
    handle = shops.send(chain(chord(members, shops.of(total, "a").s()), shops.of(double, "b").s()))
    assert handle.cancel() == 8
    assert shops.run() == []
    assert shops.nothing_is_kept()


def test_one_that_is_cancelled_elsewhere_is_heard_of_at_once(shops: Shops) -> None:
    shops.send(chain(shops.of(double, "b").s(1), shops.of(double, "a").s()))
    shops.at["b"].queue.cancel("w.0")
    assert shops.states("a:w") == ["cancelled"]


def test_a_queue_that_is_deleted_says_that_its_jobs_have_ended(shops: Shops) -> None:
    shops.send(chain(shops.of(double, "b").s(1), shops.of(double, "a").s()))
    shops.at["b"].queue.delete(jobs=True)
    assert shops.states("a:w") == ["cancelled"]


def test_a_queue_that_is_gone_hears_nothing_and_comes_not_back(shops: Shops) -> None:
    shops.send(chain(shops.of(double, "b").s(1), shops.of(double, "c").s()))
    shops.at["c"].queue.delete(jobs=True)
    shops.consumers["b"] = shops.at["b"].join()
    shops.consumers["b"].ack(*shops.pull("b"), 2)
    assert {*shops.at["c"].look().keys} == {"meta"}
    assert shops.at["b"].queue.counts().outgoing == 0


def test_what_is_waited_for_elsewhere_stays_in_its_queue(shops: Shops) -> None:
    shops.send(chain(shops.of(double, "b").s(1), shops.of(double, "a").s()))
    shops.at["c"].queue.configure()
    moved = shops.at["b"].queue.move(shops.at["c"].queue.name, "w.0")
    assert moved == 0
    assert "other jobs" in moved.stayed["w.0"]


def test_a_workflow_of_queues_that_is_sent_again_goes_on(shops: Shops) -> None:
    members = [shops.of(double, "bc"[n % 2]).s(n) for n in range(6)]
    workflow = chord(members, shops.of(total, "a").s())
    shops.send(workflow)
    *some, last = shops.pull("b")
    for job in some:
        shops.consumers["b"].ack(job, 1)
    shops.consumers["b"].release(last)
    assert {*shops.send(workflow).ids} == {"w", *(f"w.{n}" for n in range(6))}
    shops.run()
    assert shops.states("a:w") == ["done"]
    assert shops.nothing_is_kept()


def test_a_part_that_is_refused_withdraws_all_parts(shops: Shops) -> None:
    shops.at["c"].queue.configure(max_jobs=1)
    members = [shops.of(double, "bc"[n % 2]).s(n) for n in range(6)]
    with pytest.raises(QueueFull):
        shops.send(chord(members, shops.of(total, "a").s()))
    assert shops.states("a:w", "b:w.0", "b:w.2") == ["cancelled"] * 3
    assert shops.run() == []


def test_what_has_dependants_is_signed_too(q: QueueFixture) -> None:
    settings = Settings(signing_keys={"k": "a secret of 20 bytes"})
    with Queue(q.queue.name, redis=q.queue.redis, settings=settings) as queue:
        shops = Shops(QueueFixture(queue))
        members = [shops.of(double, "ab"[n % 2]).s(n) for n in range(4)]
        first = group(members)
        handle = shops.send(chain(first, group(shops.of(total, "c").s(), shops.of(total, "a").s())))
        shops.run()  # raises Forged
        assert handle.result(0) == [12, 12]
        for other in shops.at.values():
            other.close()


def test_too_many_queues(shops: Shops) -> None:
    members = [double.options(queue=f"q{n}").s(n) for n in range(QUEUES_MAX + 1)]
    with pytest.raises(ConfigError, match="17 queues"):
        group(members).enqueue()
