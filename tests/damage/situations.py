"""What every job takes, in all the ways that it goes: queues as they are then, and the call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import redis

from rqueue.protocol import commands
from rqueue.protocol.commands import Note, Put, Retried, ScriptCall, Window
from tests.damage.world import BODY, ERROR, KEYS, World

Setting = Callable[[World], Callable[[], ScriptCall[Any]]]
"""Brings a new queue to where the call is interesting; the call, made anew each time."""

SITUATIONS: dict[str, Setting] = {}


def situation(make: Setting) -> Setting:
    SITUATIONS[make.__name__.replace("_", " ")] = make
    return make


def make(client: redis.Redis, name: str) -> tuple[World, Callable[[], ScriptCall[Any]]]:
    client.flushdb()
    world = World(client)
    call = SITUATIONS[name](world)
    return world.keep(), call


def _put(world: World, *ids: str) -> None:
    for id in ids:
        world.put(id)


def _worked(world: World, name: str = "c2", jobs: int = 1, bytes: int = 0) -> None:
    """A plain queue on which this consumer has had a job, and waits."""
    world.put("k0")
    world.join(name, jobs, bytes)
    world.pull(name, jobs, bytes)
    _done(world, name, "k0", Window(jobs, bytes))


def _done(world: World, name: str, id: str, window: Window | None) -> None:
    term = world.terms[name]
    world.run(commands.settle(KEYS, name, term, window, ack=[id], batch=b"?", rows=1, freed=20))


def _failed(world: World) -> None:
    """A dead letter, errors of a job that waits, and one that is scheduled."""
    world.put("x0", "e0", "s0")
    world.join("c3", 3)
    world.pull("c3", 3)
    world.settle("c3", reject=[("x0", ERROR)])
    world.settle("c3", retry=[Retried("e0", 0, "old", True, ERROR)])
    world.settle("c3", retry=[Retried("s0", 5_000_000, "head", True, ERROR)])
    world.run(commands.unregister(KEYS, "c3", world.terms["c3"]))


def _settle(
    world: World, name: str, window: Window | None, rows: int = 1, **outcomes: Any
) -> Callable[[], ScriptCall[Any]]:
    term = world.terms[name]
    return lambda: commands.settle(
        KEYS, name, term, window, freed=20, batch=b"?", rows=rows, **outcomes
    )


def _pull(world: World, name: str, window: Window, recall: int | None = None) -> Any:
    return lambda: commands.pull(KEYS, name, world.terms[name], window, recall=recall)


@situation
def enqueue_of_one(world: World) -> Any:
    _put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_into_a_new_queue(world: World) -> Any:
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_to_who_waits(world: World) -> Any:
    _worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_to_who_waits_for_several(world: World) -> Any:
    _worked(world, jobs=5, bytes=500)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_to_who_watches_the_schedule(world: World) -> Any:
    _worked(world)
    _worked(world, "c3")
    world.put("s0", delay_ms=5_000_000)
    world.pull("c3", 1)
    world.pull("c2", 1)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_at_once_or_not(world: World) -> Any:
    _worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)], immediate=True)


@situation
def enqueue_of_a_level(world: World) -> Any:
    _put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, priority=9)])


@situation
def enqueue_of_a_level_to_who_waits(world: World) -> Any:
    _worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, priority=9)])


@situation
def enqueue_of_several_levels(world: World) -> Any:
    _put(world, "r0")
    return lambda: commands.enqueue(
        KEYS, [Put(f"n{n}", BODY, priority=n, max_deliveries=2) for n in (0, 4, 6, 9)]
    )


@situation
def enqueue_for_later(world: World) -> Any:
    _put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, delay_ms=5000), Put("n1", BODY)])


@situation
def enqueue_for_later_where_some_wait(world: World) -> Any:
    _worked(world)
    _worked(world, "c3")
    world.put("s0", delay_ms=5_000_000)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, delay_ms=5000)])


@situation
def enqueue_sooner_than_is_watched(world: World) -> Any:
    world.put("s0", delay_ms=5_000_000)
    _worked(world)
    _worked(world, "c3")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, delay_ms=5000)])


@situation
def enqueue_of_a_batch(world: World) -> Any:
    _put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put(f"n{n}", BODY) for n in range(9)])


@situation
def enqueue_of_a_batch_to_some_who_wait(world: World) -> Any:
    for name in ("c2", "c3", "c4"):
        _worked(world, name, 3)
    return lambda: commands.enqueue(KEYS, [Put(f"n{n}", BODY) for n in range(7)])


@situation
def enqueue_where_consumers_are_ranked(world: World) -> Any:
    _worked(world)
    world.join("c3", 2, priority=5)
    world.join("c4", 2, priority=3)
    world.pull("c3", 2)
    world.put("r0", "r1")
    return lambda: commands.enqueue(KEYS, [Put(f"n{n}", BODY) for n in range(7)])


@situation
def enqueue_with_browsers(world: World) -> Any:
    _put(world, "r0")
    world.join("b1", 5, mode="browse")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_with_a_note(world: World) -> Any:
    _put(world, "r0")
    first = Note("run", 1, 0, 0, 600_000, b"12345678")
    world.run(commands.enqueue_alike(KEYS, ["w0", BODY], note=first))
    note = Note("run", 1, 0, 8, 600_000, b"12345678")
    return lambda: commands.enqueue_alike(KEYS, ["n0", BODY], note=note)


@situation
def enqueue_with_a_first_note(world: World) -> Any:
    _worked(world)
    note = Note("run", 1, 0, 0, 600_000, b"12345678")
    return lambda: commands.enqueue_alike(KEYS, ["n0", BODY, "n1", BODY], note=note)


@situation
def pull_of_one(world: World) -> Any:
    world.join("c2", 1)
    _put(world, "r0", "r1")
    return _pull(world, "c2", Window(1))


@situation
def pull_of_some_with_another_window(world: World) -> Any:
    world.join("c2", 1)
    _put(world, "r0", "r1", "r2")
    world.pull("c2", 1)
    return _pull(world, "c2", Window(2, 500))


@situation
def pull_of_all(world: World) -> Any:
    world.join("c2", 1)
    _put(world, "r0", "r1")
    return _pull(world, "c2", Window(5))


@situation
def pull_of_nothing(world: World) -> Any:
    _worked(world)
    world.put("r0")  # delivered directly
    return _pull(world, "c2", Window(5))


@situation
def pull_of_nothing_again(world: World) -> Any:
    _worked(world)
    _worked(world, "c3")
    return _pull(world, "c2", Window(1))


@situation
def pull_after_a_reconnect(world: World) -> Any:
    _worked(world, jobs=2)
    world.put("r0")
    world.put("r1")
    return _pull(world, "c2", Window(5), 0)


@situation
def pull_with_cancelled_ones(world: World) -> Any:
    world.join("c2", 1)
    _put(world, "r0", "m0", "r1", "m1")
    for id in ("m0", "m1"):
        world.run(commands.cancel(KEYS, id))
    return _pull(world, "c2", Window(5))


@situation
def pull_of_what_is_too_big(world: World) -> Any:
    world.join("c2", 5, 60)
    _put(world, "r0", "r1", "r2", "r3")
    return _pull(world, "c2", Window(5, 60))


@situation
def pull_of_what_another_had_no_room_for(world: World) -> Any:
    world.join("c2", 5, 60)
    _put(world, "r0", "r1", "r2", "r3")
    world.pull("c2", 5, 60)
    world.join("c3", 1)
    return _pull(world, "c3", Window(1))


@situation
def pull_in_a_paused_queue(world: World) -> Any:
    world.join("c2", 1)
    _put(world, "r0", "r1")
    world.run(commands.pause(KEYS))
    return _pull(world, "c2", Window(1))


@situation
def pull_of_a_full_consumer(world: World) -> Any:
    world.join("c2", 1)
    _put(world, "r0", "r1")
    world.pull("c2", 2)
    return _pull(world, "c2", Window(1))


@situation
def pull_of_levels_while_others_wait(world: World) -> Any:
    _worked(world)
    _worked(world, "c3")
    world.run(commands.pause(KEYS))
    world.put("r0", "r1", "r2", priority=9)
    world.put("r3", "r4", "r5")
    world.run(commands.resume(KEYS))
    return _pull(world, "c2", Window(2))


@situation
def pull_where_consumers_are_ranked(world: World) -> Any:
    _worked(world)
    world.join("c3", 2, priority=5)
    world.pull("c3", 2)
    world.join("c4", 2, priority=3)
    world.put("r0", "r1", "r2", "r3", "r4")
    return _pull(world, "c2", Window(2))


@situation
def pull_of_what_is_due(world: World) -> Any:
    _worked(world)
    world.put("s0", "s1", "s2", delay_ms=1000)
    world.put("s3", delay_ms=1000, priority=9)
    world.move(2000)
    return _pull(world, "c2", Window(2))


@situation
def pull_of_what_goes_back_to_its_place(world: World) -> Any:
    _worked(world)
    world.join("c3", 4)
    world.join("b1", 5, mode="browse")
    world.put("s0", "s1", "s2", "r0", "r1")
    world.pull("c3", 4)
    world.settle("c3", retry=[Retried("s0", 1000, "park", False, b'{"reason":"unknown"}')])
    world.settle("c3", retry=[Retried("s1", 1000, "tail", True, ERROR)])
    world.settle("c3", retry=[Retried("s2", 1000, "aside", False, b"")])
    world.client.hset(KEYS.jobs, "s2", "garbage")
    world.move(2000)
    return _pull(world, "c2", Window(5))


@situation
def pull_that_watches_the_schedule(world: World) -> Any:
    _worked(world)
    _worked(world, "c3")
    world.put("s0", delay_ms=5_000_000)
    return _pull(world, "c3", Window(1))


@situation
def settle_of_one(world: World) -> Any:
    _worked(world)
    world.put("r0")
    return _settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_with_the_next(world: World) -> Any:
    _worked(world)
    _put(world, "r0", "r1", "r2")
    return _settle(world, "c2", Window(1), done=[("r0", None, b"1")])


@situation
def settle_of_one_with_the_next_and_bytes(world: World) -> Any:
    _worked(world, bytes=500)
    _put(world, "r0", "r1", "r2")
    return _settle(world, "c2", Window(1, 500), ack=["r0"])


@situation
def settle_of_one_whose_next_is_cancelled(world: World) -> Any:
    _worked(world)
    _put(world, "r0", "m0", "r1")
    world.run(commands.cancel(KEYS, "m0"))
    return _settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_while_others_wait(world: World) -> Any:
    _worked(world)
    _worked(world, "c3")
    world.put("r0")
    return _settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_that_is_awaited(world: World) -> Any:
    _worked(world)
    world.put("r0")
    world.run(commands.await_result(KEYS, "r0", wait=True))
    return _settle(world, "c2", Window(1), done=[("r0", None, b"1")])


@situation
def settle_of_one_that_failed_before(world: World) -> Any:
    _worked(world)
    world.put("r0")
    world.settle("c2", retry=[Retried("r0", 0, "old", True, ERROR)])
    world.pull("c2", 1)
    return _settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_where_others_failed(world: World) -> Any:
    _failed(world)
    world.join("c2", 1)
    world.pull("c2", 1)
    _done(world, "c2", "e0", Window(1))
    _put(world, "r0", "r1", "r2")
    return _settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_and_no_pull(world: World) -> Any:
    _worked(world)
    _put(world, "r0", "r1")
    return _settle(world, "c2", None, ack=["r0"])


@situation
def settle_of_one_and_another_window(world: World) -> Any:
    _worked(world)
    _put(world, "r0", "r1", "r2")
    return _settle(world, "c2", Window(3), ack=["r0"])


@situation
def settle_of_one_among_several(world: World) -> Any:
    _worked(world, jobs=3)
    _put(world, "r0", "r1", "r2", "r3", "r4")
    world.pull("c2", 3)
    return _settle(world, "c2", Window(3), ack=["r0"])


@situation
def settle_of_several(world: World) -> Any:
    world.join("c2", 3, 500)
    _put(world, "r0", "r1", "r2", "r3", "r4")
    world.pull("c2", 3, 500)
    return _settle(world, "c2", Window(3, 500), 3, ack=["r0", "r1"], done=[("r2", None, b"7")])


@situation
def settle_of_several_with_results_that_last(world: World) -> Any:
    _worked(world, jobs=3)
    _put(world, "r0", "r1", "r2", "r3", "r4")
    world.pull("c2", 3)
    world.run(commands.await_result(KEYS, "r0", wait=True))
    world.run(commands.await_result(KEYS, "r1", wait=True))
    done = [("r0", 7_000_000, b"7"), ("r1", None, b"7"), ("r2", 0, b"")]
    return _settle(world, "c2", Window(3), 3, done=done)


@situation
def settle_of_several_out_of_order(world: World) -> Any:
    _worked(world, jobs=4)
    _put(world, "r0", "r1", "r2", "r3", "r4", "r5")
    world.pull("c2", 4)
    return _settle(world, "c2", Window(4), 3, ack=["r2", "ghost", "r1"])


@situation
def settle_when_records_turn_over(world: World) -> Any:
    _worked(world)
    _put(world, "r0", "r1", "r2")
    world.move(601_000)
    _done(world, "c2", "r0", Window(1))
    world.move(601_000)
    return _settle(world, "c2", Window(1), ack=["r1"])


@situation
def settle_when_history_is_full(world: World) -> Any:
    world.run(commands.configure(KEYS, {"history_rows_max": 2}))
    _worked(world)
    _put(world, "r0", "r1", "r2", "r3")
    _done(world, "c2", "r0", Window(1))
    return _settle(world, "c2", Window(1), ack=["r1"])


@situation
def settle_of_outcomes_of_all_kinds(world: World) -> Any:
    world.run(commands.configure(KEYS, {"max_deliveries": 9}))
    _worked(world, jobs=9)
    world.put("r0", "r1", "r2", "r3", "r4", "r5", "r6")
    world.put("r7", max_deliveries=1)
    world.put("r8", "r9")
    world.pull("c2", 9)
    return _settle(
        world,
        "c2",
        Window(9),
        8,
        ack=["r0"],
        retry=[
            Retried("r1", 0, "old", True, ERROR),
            Retried("r2", 0, "tail", True, ERROR),
            Retried("r3", 1000, "head", True, ERROR),
            Retried("r4", 1000, "park", False, b'{"reason":"unknown"}'),
            Retried("r7", 0, "old", True, ERROR),
        ],
        reject=[("r5", ERROR)],
        release=["r6"],
    )


@situation
def settle_of_a_retry(world: World) -> Any:
    _worked(world)
    _put(world, "r0", "r1")
    return _settle(world, "c2", Window(1), retry=[Retried("r0", 0, "old", True, ERROR)])


@situation
def settle_of_a_retry_later_while_others_wait(world: World) -> Any:
    _worked(world)
    _worked(world, "c3")
    world.put("r0")
    return _settle(world, "c2", Window(1), retry=[Retried("r0", 9000, "head", True, ERROR)])


@situation
def settle_of_a_retry_now_while_others_wait(world: World) -> Any:
    _worked(world)
    _worked(world, "c3")
    world.join("b1", 5, mode="browse")
    world.put("r0")
    return _settle(world, "c2", None, retry=[Retried("r0", 0, "tail", True, ERROR)])


@situation
def settle_of_a_reject_that_is_awaited(world: World) -> Any:
    _worked(world)
    world.put("r0")
    world.run(commands.await_result(KEYS, "r0", wait=True))
    return _settle(world, "c2", Window(1), reject=[("r0", ERROR)])


@situation
def settle_of_a_release_where_others_failed(world: World) -> Any:
    _failed(world)
    world.join("c2", 1)
    world.pull("c2", 1)
    world.put("r0", priority=9)
    return _settle(world, "c2", None, 0, release=["e0"])


@situation
def settle_of_what_cannot_be_read(world: World) -> Any:
    _worked(world)
    _put(world, "r0", "r1")
    world.client.hset(KEYS.jobs, "r0", "garbage")
    return _settle(world, "c2", Window(1), retry=[Retried("r0", 0, "old", False, ERROR)])


@situation
def settle_with_what_is_due(world: World) -> Any:
    _worked(world)
    world.put("s0", "s1", delay_ms=1000)
    _put(world, "r0", "r1")
    world.move(2000)
    return _settle(world, "c2", Window(1), ack=["r0"])
