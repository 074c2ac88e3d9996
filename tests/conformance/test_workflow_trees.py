"""Chains, groups and chords in each other, to a depth of four, with calls that fail anywhere, in
each way of going on: every call runs as often, and with what, a model says that knows no ids."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.errors import WorkflowEnded
from rqueue.model.parents import Failure
from rqueue.protocol.settling import retried
from rqueue.tasks.workflow import Chain, Chord, Group
from tests.support import invariants
from tests.support.planting import planted
from tests.support.profiles import examples
from tests.support.queue_fixture import QueueFixture, one_kind
from tests.support.workflow_trees import Call, Drawing, Node, expect_first, expect_requeued
from tests.support.workflows import nothing_is_kept, requeue

TREES = examples(40, 200)


def plain(what: Any) -> Any:
    """What a call is given, failures as the model writes them."""
    if isinstance(what, Failure):
        return ["failed", what.state]
    return [plain(one) for one in what] if isinstance(what, list) else what


def run(q: QueueFixture, c: Consumer, calls: dict[str, Call], random: Random) -> list[str]:
    """Until nothing is ready, in any order; what is wrong with what calls were given."""
    wrong = []
    attempts: dict[str, int] = {}
    while jobs := c.pull():
        random.shuffle(jobs)
        for job in jobs:
            *given, name = plain(q.queue.envelope(job).args)
            one, attempts[name] = calls[name], attempts.get(name, 0) + 1
            if given != one.given:
                wrong.append(f"{name} was given {given}, not {one.given}")
            if one.state == "dead":
                c.reject(job, "no", "exception")
            elif one.fate == "late" and attempts[name] == 1:
                c.settle(retry=[retried(job.id, 0, {}, "", True)])
            else:
                c.ack(job, one.value)
    for name, count in attempts.items():
        if count != 1 + (calls[name].fate == "late" and calls[name].state == "done"):
            wrong.append(f"{name} ran {count} times")
    return wrong


def played(q: QueueFixture, c: Consumer, tree: Node, id: str, random: Random) -> list[str]:
    """A workflow runs; what is wrong then, and after its dead letters lived again."""
    tree.wired(None)
    calls = {one.name: one for one in tree.calls()}
    workflow = tree.workflow()
    ids = {made.args[-1]: made_id for made_id, made in workflow.calls(id).items()}
    if lacking := calls.keys() - ids.keys():
        return [f"{sorted(lacking)} are no jobs"]
    q.queue.enqueue_workflow(workflow, id=id)

    def differing() -> list[str]:
        found = {name: str(q.queue.job(ids[name]).state()) for name in calls}
        return [
            f"{name} is {found[name]}, not {one.state}"
            for name, one in calls.items()
            if found[name] != one.state
        ]

    expect_first([*calls.values()])
    wrong = [*run(q, c, calls, random), *differing(), *invariants.of_state(q.look())]
    dead = [ids[name] for name, one in calls.items() if one.state == "dead"]
    expect_requeued([*calls.values()])
    for one in dead:
        requeue(q, one)
    wrong += [*run(q, c, calls, random), *differing()]
    return [*wrong, *([] if nothing_is_kept(q) else ["something is kept"])]


def search(q: QueueFixture, trees: int) -> list[str]:
    c = q.join()
    for seed in range(trees):
        random = Random(seed)
        tree = Drawing(random).tree(3 + seed % 2)
        try:
            wrong = played(q, c, tree, f"w{seed}", random)
        except WorkflowEnded as refused:
            wrong = [str(refused)]
        if wrong:
            return [f"tree {seed}: {one}" for one in wrong]
    return []


def test_each_call_runs_as_the_model_says(q: QueueFixture) -> None:
    assert search(q, TREES) == []


def test_each_call_has_an_id_of_its_own() -> None:
    """Else one of two is taken for the other, sent again. Whatever waits waits for jobs that come
    later, or by their names."""
    for seed in range(1000):
        steps = [*Drawing(Random(seed)).tree(3 + seed % 2).workflow().steps("w")]
        ids = [step.request.options.id for step in steps]
        assert len({*ids}) == len(ids), f"tree {seed}: {ids}"
        named = {name for step in steps if step.waits for name in step.waits.ids}
        assert named <= {*ids}, f"tree {seed}"


FAULTS: dict[str, tuple[type, str, str, str]] = {
    "the first part of a chain stops where the chain goes on": (
        Chain,
        "placed",
        "Chain(tuple(earlier), self.on_failure)",
        "Chain(tuple(earlier))",
    ),
    "the list of a group is taken for one result": (
        Chain,
        "placed",
        "many = _makes_list(first)",
        "many = False",
    ),
    "members wait for the first of those before them": (
        Group,
        "placed",
        "workflow=None, ids=names,",
        "workflow=None, ids=names[:1],",
    ),
    "what goes before the first of two groups is forgotten": (
        Group,
        "placed",
        "yield from first.placed(name, None, earlier, spread)",
        "yield from first.placed(name, None, None, spread)",
    ),
    "a callback stops whatever its chord says": (
        Chord,
        "placed",
        "True, self.on_failure, before)",
        'True, "stop", before)',
    ),
    "members of a chord wait for nobody": (
        Chord,
        "placed",
        "True, self.on_failure, before)",
        "True, self.on_failure)",
    ),
}


@one_kind
@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "_"))
def test_what_is_planted_is_found(
    fault: str, q: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, right, wrong = FAULTS[fault]
    monkeypatch.setattr(owner, name, planted(owner, name, right, wrong))
    assert search(q, 60)
