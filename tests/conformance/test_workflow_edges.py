"""Workflows at the edges: without members, too deep, too many, or under an id that is taken."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from random import Random
from typing import Any

import pytest

from rqueue.errors import ConfigError, WorkflowExists
from rqueue.model.parents import CHAIN_MAX, PARENTS_MAX
from rqueue.tasks.workflow import Workflow, chain, chord, group
from tests.support.queue_fixture import QueueFixture, one_kind
from tests.support.workflows import double, listed, nothing_is_kept, plus, run, send, step

EMPTY: dict[str, tuple[Callable[[], Workflow[Any]], list[str], Any]] = {
    "chord": (lambda: chord([], listed.s()), ["w"], [[]]),
    "chord, nothing given": (lambda: chord([], listed.si("own")), ["w"], ["own"]),
    "chain": (lambda: chain(group([]), listed.s()), ["w"], [[]]),
    "behind a call": (lambda: chain(plus.s(1, 2), group([]), listed.s()), ["w.0", "w"], [[]]),
    "before a chain": (
        lambda: chain(group([]), chain(listed.s(), listed.s())),
        ["w.0", "w"],
        [[[]]],
    ),
    "before a group": (
        lambda: chain(group([]), group(listed.s(), listed.si("own"))),
        ["w.0", "w.1"],
        [[[]], ["own"]],
    ),
    "before a chord": (
        lambda: chain(group([]), chord([listed.s(), listed.s()], listed.s())),
        ["w.0", "w.1", "w"],
        [[[[]], [[]]]],
    ),
    "two in a row": (lambda: chain(group([]), group([]), listed.s()), ["w"], [[]]),
    "in a chord": (
        lambda: chord([chord([], listed.s()), double.s(1)], listed.s()),
        ["w.0", "w.1", "w"],
        [[[[]], 2]],
    ),
    "before a chord without members": (
        lambda: chain(double.s(1), chord([], listed.s())),
        ["w-before", "w"],
        [[]],
    ),
    "nothing at all": (lambda: group([]), [], []),
}


@one_kind
@pytest.mark.parametrize("name", EMPTY)
def test_a_group_without_members_is_an_end_with_an_empty_list(q: QueueFixture, name: str) -> None:
    made, order, result = EMPTY[name]
    handle = send(q, made())
    assert run(q, q.join()) == order
    assert handle.result(0) == result
    assert nothing_is_kept(q)


def test_what_has_no_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="ends with a group without calls"):
        chain(double.s(1), group([]))
    with pytest.raises(ConfigError, match="there is nothing to enqueue"):
        group([]).enqueue()


SHAPES: dict[str, Callable[[], Workflow[Any]]] = {
    "chain of 2": lambda: chain(double.s(1), double.s()),
    "chain of 3": lambda: chain(double.s(1), double.s(), double.s()),
    "chord of 2": lambda: chord([double.s(n) for n in range(2)], listed.s()),
    "chord of 3": lambda: chord([double.s(n) for n in range(3)], listed.s()),
    "chord of chains": lambda: chord([chain(double.s(1), double.s()), double.s(1)], listed.s()),
}


@one_kind
@pytest.mark.parametrize(("first", "second"), list(permutations(SHAPES, 2)))
def test_another_workflow_under_its_id_is_one_error(
    q: QueueFixture, first: str, second: str
) -> None:
    """Before anything is written, and the first one goes on."""
    send(q, SHAPES[first]())
    before = q.look().jobs
    with pytest.raises(WorkflowExists) as error:
        send(q, SHAPES[second]())
    assert (error.value.queue, error.value.id) == (q.queue.name, "w")
    assert q.look().jobs == before
    send(q, SHAPES[first]())
    run(q, q.join())
    assert q.queue.counts().more.get("deferred", 0) == 0


@one_kind
def test_a_workflow_that_is_under_way_clashes_too(q: QueueFixture) -> None:
    send(q, chord([double.s(n) for n in range(2)], listed.s()))
    c = q.join(1)
    step(q, c)
    before = q.look().jobs
    with pytest.raises(WorkflowExists, match="goes on"):
        send(q, chord([double.s(n) for n in range(3)], listed.s()))
    assert q.look().jobs == before
    send(q, chord([double.s(n) for n in range(2)], listed.s()))
    assert run(q, c)[-1] == "w"


def nested(random: Random, levels: int) -> Workflow[Any]:
    flow: Workflow[Any] = double.s(1)
    for _ in range(levels):
        way = random.choice(["chain", "chord", "callback"])
        if way == "chain":
            flow = chain(flow, double.s())
        elif way == "chord":
            flow = chord([flow], listed.s())
        else:
            flow = chain(flow, double.s().on_success(double.s()))
    return flow


@one_kind
@pytest.mark.parametrize("seed", range(5))
def test_the_deepest_workflow_that_can_be_made_can_be_enqueued(q: QueueFixture, seed: int) -> None:
    """Whatever is too deep is refused when it is put together, without a RecursionError."""
    random, levels = Random(seed), CHAIN_MAX
    with pytest.raises(ConfigError, match="follow one another in it, at most 200"):
        nested(Random(seed), 3 * CHAIN_MAX)
    while True:
        random.seed(seed)
        try:
            flow = nested(random, levels)
        except ConfigError:
            levels -= 1
            continue
        break
    assert flow.depth > CHAIN_MAX - 3
    assert len(q.queue.enqueue_workflow(flow, id="w").ids) == flow.size


def test_callbacks_of_callbacks_are_counted() -> None:
    call = double.s()
    with pytest.raises(ConfigError, match="follow one another"):
        for _ in range(CHAIN_MAX):
            call = double.s().on_success(call)


def test_what_doubles_is_refused_before_it_is_large() -> None:
    flow: Workflow[Any] = double.s(1)
    with pytest.raises(ConfigError, match=f"at most {PARENTS_MAX:,}"):
        for _ in range(30):
            flow = chord([flow, flow], listed.si(1))
