"""Settle calls, in all the ways that jobs leave a plain queue or come back to it."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Retried, Window
from rqueue.protocol.result_wait import await_result
from tests.damage.situation import done, failed, put, settle, situation, worked
from tests.damage.world import ERROR, KEYS, World


@situation
def settle_of_one(world: World) -> Any:
    worked(world)
    world.put("r0")
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_with_the_next(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1", "r2")
    return settle(world, "c2", Window(1), done=[("r0", None, b"1")])


@situation
def settle_of_one_with_the_next_and_bytes(world: World) -> Any:
    worked(world, bytes=500)
    put(world, "r0", "r1", "r2")
    return settle(world, "c2", Window(1, 500), ack=["r0"])


@situation
def settle_of_one_whose_next_is_cancelled(world: World) -> Any:
    worked(world)
    put(world, "r0", "m0", "r1")
    world.run(commands.cancel(KEYS, "m0"))
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_while_others_wait(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.put("r0")
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_that_is_awaited(world: World) -> Any:
    worked(world)
    world.put("r0")
    world.run(await_result(KEYS, "r0", wait=True))
    return settle(world, "c2", Window(1), done=[("r0", None, b"1")])


@situation
def settle_of_one_that_failed_before(world: World) -> Any:
    worked(world)
    world.put("r0")
    world.settle("c2", retry=[Retried("r0", 0, "old", True, ERROR)])
    world.pull("c2", 1)
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_where_others_failed(world: World) -> Any:
    failed(world)
    world.join("c2", 1)
    world.pull("c2", 1)
    done(world, "c2", "e0", Window(1))
    put(world, "r0", "r1", "r2")
    return settle(world, "c2", Window(1), ack=["r0"])


@situation
def settle_of_one_and_no_pull(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1")
    return settle(world, "c2", None, ack=["r0"])


@situation
def settle_of_one_and_another_window(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1", "r2")
    return settle(world, "c2", Window(3), ack=["r0"])


@situation
def settle_of_one_among_several(world: World) -> Any:
    worked(world, jobs=3)
    put(world, "r0", "r1", "r2", "r3", "r4")
    world.pull("c2", 3)
    return settle(world, "c2", Window(3), ack=["r0"])


@situation
def settle_of_several(world: World) -> Any:
    world.join("c2", 3, 500)
    put(world, "r0", "r1", "r2", "r3", "r4")
    world.pull("c2", 3, 500)
    return settle(world, "c2", Window(3, 500), 3, ack=["r0", "r1"], done=[("r2", None, b"7")])


@situation
def settle_of_several_with_results_that_last(world: World) -> Any:
    worked(world, jobs=3)
    put(world, "r0", "r1", "r2", "r3", "r4")
    world.pull("c2", 3)
    world.run(await_result(KEYS, "r0", wait=True))
    world.run(await_result(KEYS, "r1", wait=True))
    done = [("r0", 7_000_000, b"7"), ("r1", None, b"7"), ("r2", 0, b"")]
    return settle(world, "c2", Window(3), 3, done=done)


@situation
def settle_of_several_out_of_order(world: World) -> Any:
    worked(world, jobs=4)
    put(world, "r0", "r1", "r2", "r3", "r4", "r5")
    world.pull("c2", 4)
    return settle(world, "c2", Window(4), 3, ack=["r2", "ghost", "r1"])


@situation
def settle_when_records_turn_over(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1", "r2")
    world.move(601_000)
    done(world, "c2", "r0", Window(1))
    world.move(601_000)
    return settle(world, "c2", Window(1), ack=["r1"])


@situation
def settle_when_history_is_full(world: World) -> Any:
    world.run(commands.configure(KEYS, {"history_rows_max": 2}))
    worked(world)
    put(world, "r0", "r1", "r2", "r3")
    done(world, "c2", "r0", Window(1))
    return settle(world, "c2", Window(1), ack=["r1"])


@situation
def settle_of_outcomes_of_all_kinds(world: World) -> Any:
    world.run(commands.configure(KEYS, {"max_deliveries": 9}))
    worked(world, jobs=9)
    world.put("r0", "r1", "r2", "r3", "r4", "r5", "r6")
    world.put("r7", max_deliveries=1)
    world.put("r8", "r9")
    world.pull("c2", 9)
    return settle(
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
    worked(world)
    put(world, "r0", "r1")
    return settle(world, "c2", Window(1), retry=[Retried("r0", 0, "old", True, ERROR)])


@situation
def settle_of_a_retry_later_while_others_wait(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.put("r0")
    return settle(world, "c2", Window(1), retry=[Retried("r0", 9000, "head", True, ERROR)])


@situation
def settle_of_a_retry_now_while_others_wait(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.join("b1", 5, mode="browse")
    world.put("r0")
    return settle(world, "c2", None, retry=[Retried("r0", 0, "tail", True, ERROR)])


@situation
def settle_of_a_reject_that_is_awaited(world: World) -> Any:
    worked(world)
    world.put("r0")
    world.run(await_result(KEYS, "r0", wait=True))
    return settle(world, "c2", Window(1), reject=[("r0", ERROR)])


@situation
def settle_of_a_release_where_others_failed(world: World) -> Any:
    failed(world)
    world.join("c2", 1)
    world.pull("c2", 1)
    world.put("r0", priority=9)
    return settle(world, "c2", None, 0, release=["e0"])


@situation
def settle_of_what_cannot_be_read(world: World) -> Any:
    worked(world)
    put(world, "r0", "r1")
    world.client.hset(KEYS.jobs, "r0", "garbage")
    return settle(world, "c2", Window(1), retry=[Retried("r0", 0, "old", False, ERROR)])


@situation
def settle_with_what_is_due(world: World) -> Any:
    worked(world)
    world.put("s0", "s1", delay_ms=1000)
    put(world, "r0", "r1")
    world.move(2000)
    return settle(world, "c2", Window(1), ack=["r0"])
