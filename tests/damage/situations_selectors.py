"""What every job takes where consumers select by labels."""

from __future__ import annotations

from typing import Any

from rqueue.model.selector import selector
from rqueue.protocol import commands
from rqueue.protocol.commands import Put, Retried, Window
from rqueue.protocol.policies import Kind
from tests.damage.situation import done, pull, settle, situation
from tests.damage.world import ERROR, KEYS, World


def labelled(label: str) -> bytes:
    return b'["t",["x"],{},{"labels":{"x":"%s"}}]' % label.encode()


def puts(*ids: str, **terms: Any) -> list[Put]:
    """Jobs with the label x, "<x><number>"."""
    return [Put(id, labelled(id[0]), **terms) for id in ids]


def put(world: World, *ids: str, **terms: Any) -> None:
    world.run(commands.enqueue(KEYS, puts(*ids, **terms)))


def joins(world: World, name: str, jobs: int, *labels: str, **options: Any) -> None:
    listed = ", ".join(f"'{label}'" for label in labels)
    world.join(name, jobs, select=selector(f"x in ({listed})"), **options)


def kind(world: World) -> None:
    stamp = Kind.of(["selectors"]).stamp
    world.run(commands.configure(KEYS, {"v": stamp}))


def waits(world: World, name: str, *labels: str, jobs: int = 1, **options: Any) -> None:
    """It selects these, has had a job, and waits."""
    put(world, f"{labels[0]}9")
    joins(world, name, jobs, *labels, **options)
    world.pull(name, jobs)
    done(world, name, f"{labels[0]}9", Window(jobs))


@situation
def enqueue_into_classes(world: World) -> Any:
    kind(world)
    put(world, "a0", "b0")
    return lambda: commands.enqueue(KEYS, puts("a1", "b1", "c1"))


@situation
def enqueue_to_who_selects_it(world: World) -> Any:
    kind(world)
    waits(world, "c3", "b")
    waits(world, "c2", "a")
    return lambda: commands.enqueue(KEYS, puts("a1"))


@situation
def enqueue_that_tells_who_selects_it(world: World) -> Any:
    kind(world)
    waits(world, "c3", "b")
    waits(world, "c2", "a")
    return lambda: commands.enqueue(KEYS, puts("a1", "b1"))


@situation
def pull_of_two_classes(world: World) -> Any:
    kind(world)
    put(world, "a0", "b0", "a1", "b1", "a2")
    joins(world, "c2", 4, "a", "b")
    return pull(world, "c2", Window(4))


@situation
def pull_of_all_classes(world: World) -> Any:
    kind(world)
    put(world, "a0", "b0", "a1")
    world.join("c2", 9)
    return pull(world, "c2", Window(9))


@situation
def pull_of_what_is_due_for_others(world: World) -> Any:
    kind(world)
    waits(world, "c3", "b")
    waits(world, "c2", "a")
    put(world, "b1", "a1", delay_ms=1000)
    world.move(2000)
    return pull(world, "c2", Window(2))


@situation
def pull_of_a_full_consumer_while_others_select_the_same(world: World) -> Any:
    kind(world)
    put(world, "a0", "a1", "a2")
    joins(world, "c2", 1, "a")
    world.pull("c2", 1)
    waits(world, "c3", "b")
    return pull(world, "c2", Window(1))


@situation
def settle_of_one_of_a_class(world: World) -> Any:
    kind(world)
    put(world, "a0", "a1", "b1")
    joins(world, "c2", 1, "a")
    world.pull("c2", 1)
    return settle(world, "c2", Window(1), ack=["a0"])


@situation
def settle_of_outcomes_of_classes(world: World) -> Any:
    kind(world)
    put(world, "a0", "b0", "c0", "a1", "b1")
    world.join("c2", 9)
    world.pull("c2", 9)
    return settle(
        world,
        "c2",
        Window(9),
        4,
        ack=["a0"],
        retry=[
            Retried("b0", 0, "old", True, ERROR),
            Retried("c0", 0, "tail", True, ERROR),
            Retried("a1", 1000, "head", True, ERROR),
        ],
        reject=[("b1", ERROR)],
    )


@situation
def settle_of_a_release_while_others_select_it(world: World) -> Any:
    kind(world)
    put(world, "a0")
    joins(world, "c2", 2, "a")
    world.pull("c2", 2)
    waits(world, "c3", "b", "a")
    return settle(world, "c2", None, 0, release=["a0"])


@situation
def pull_with_ranks_in_classes(world: World) -> Any:
    kind(world)
    waits(world, "c3", "b", priority=5)
    joins(world, "c2", 2, "a", "b")
    put(world, "b1", "a1")
    return pull(world, "c2", Window(2))
