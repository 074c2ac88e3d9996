"""What every job takes, in all the ways that it goes in a plain queue."""

from __future__ import annotations

from typing import Any

from rqueue.protocol import commands
from rqueue.protocol.commands import Note, Put, Retried, Window
from tests.damage.situation import done, failed, pull, put, settle, situation, worked
from tests.damage.world import BODY, ERROR, KEYS, World


@situation
def enqueue_of_one(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_into_a_new_queue(world: World) -> Any:
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_to_who_waits(world: World) -> Any:
    worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_to_who_waits_for_several(world: World) -> Any:
    worked(world, jobs=5, bytes=500)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_to_who_watches_the_schedule(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.put("s0", delay_ms=5_000_000)
    world.pull("c3", 1)
    world.pull("c2", 1)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_at_once_or_not(world: World) -> Any:
    worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)], immediate=True)


@situation
def enqueue_of_a_level(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, priority=9)])


@situation
def enqueue_of_a_level_to_who_waits(world: World) -> Any:
    worked(world)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, priority=9)])


@situation
def enqueue_of_several_levels(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(
        KEYS, [Put(f"n{n}", BODY, priority=n, max_deliveries=2) for n in (0, 4, 6, 9)]
    )


@situation
def enqueue_for_later(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, delay_ms=5000), Put("n1", BODY)])


@situation
def enqueue_for_later_where_some_wait(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.put("s0", delay_ms=5_000_000)
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, delay_ms=5000)])


@situation
def enqueue_sooner_than_is_watched(world: World) -> Any:
    world.put("s0", delay_ms=5_000_000)
    worked(world)
    worked(world, "c3")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY, delay_ms=5000)])


@situation
def enqueue_of_a_batch(world: World) -> Any:
    put(world, "r0")
    return lambda: commands.enqueue(KEYS, [Put(f"n{n}", BODY) for n in range(9)])


@situation
def enqueue_of_a_batch_to_some_who_wait(world: World) -> Any:
    for name in ("c2", "c3", "c4"):
        worked(world, name, 3)
    return lambda: commands.enqueue(KEYS, [Put(f"n{n}", BODY) for n in range(7)])


@situation
def enqueue_where_consumers_are_ranked(world: World) -> Any:
    worked(world)
    world.join("c3", 2, priority=5)
    world.join("c4", 2, priority=3)
    world.pull("c3", 2)
    world.put("r0", "r1")
    return lambda: commands.enqueue(KEYS, [Put(f"n{n}", BODY) for n in range(7)])


@situation
def enqueue_with_browsers(world: World) -> Any:
    put(world, "r0")
    world.join("b1", 5, mode="browse")
    return lambda: commands.enqueue(KEYS, [Put("n0", BODY)])


@situation
def enqueue_with_a_note(world: World) -> Any:
    put(world, "r0")
    first = Note("run", 1, 0, 0, 600_000, b"12345678")
    world.run(commands.enqueue_alike(KEYS, ["w0", BODY], note=first))
    note = Note("run", 1, 0, 8, 600_000, b"12345678")
    return lambda: commands.enqueue_alike(KEYS, ["n0", BODY], note=note)


@situation
def enqueue_with_a_first_note(world: World) -> Any:
    worked(world)
    note = Note("run", 1, 0, 0, 600_000, b"12345678")
    return lambda: commands.enqueue_alike(KEYS, ["n0", BODY, "n1", BODY], note=note)


@situation
def pull_of_one(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1")
    return pull(world, "c2", Window(1))


@situation
def pull_of_some_with_another_window(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1", "r2")
    world.pull("c2", 1)
    return pull(world, "c2", Window(2, 500))


@situation
def pull_of_all(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1")
    return pull(world, "c2", Window(5))


@situation
def pull_of_nothing(world: World) -> Any:
    worked(world)
    world.put("r0")  # delivered directly
    return pull(world, "c2", Window(5))


@situation
def pull_of_nothing_again(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    return pull(world, "c2", Window(1))


@situation
def pull_after_a_reconnect(world: World) -> Any:
    worked(world, jobs=2)
    world.put("r0")
    world.put("r1")
    return pull(world, "c2", Window(5), 0)


@situation
def pull_with_cancelled_ones(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "m0", "r1", "m1")
    for id in ("m0", "m1"):
        world.run(commands.cancel(KEYS, id))
    return pull(world, "c2", Window(5))


@situation
def pull_of_what_is_too_big(world: World) -> Any:
    world.join("c2", 5, 60)
    put(world, "r0", "r1", "r2", "r3")
    return pull(world, "c2", Window(5, 60))


@situation
def pull_of_what_another_had_no_room_for(world: World) -> Any:
    world.join("c2", 5, 60)
    put(world, "r0", "r1", "r2", "r3")
    world.pull("c2", 5, 60)
    world.join("c3", 1)
    return pull(world, "c3", Window(1))


@situation
def pull_in_a_paused_queue(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1")
    world.run(commands.pause(KEYS))
    return pull(world, "c2", Window(1))


@situation
def pull_of_a_full_consumer(world: World) -> Any:
    world.join("c2", 1)
    put(world, "r0", "r1")
    world.pull("c2", 2)
    return pull(world, "c2", Window(1))


@situation
def pull_of_levels_while_others_wait(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.run(commands.pause(KEYS))
    world.put("r0", "r1", "r2", priority=9)
    world.put("r3", "r4", "r5")
    world.run(commands.resume(KEYS))
    return pull(world, "c2", Window(2))


@situation
def pull_where_consumers_are_ranked(world: World) -> Any:
    worked(world)
    world.join("c3", 2, priority=5)
    world.pull("c3", 2)
    world.join("c4", 2, priority=3)
    world.put("r0", "r1", "r2", "r3", "r4")
    return pull(world, "c2", Window(2))


@situation
def pull_of_what_is_due(world: World) -> Any:
    worked(world)
    world.put("s0", "s1", "s2", delay_ms=1000)
    world.put("s3", delay_ms=1000, priority=9)
    world.move(2000)
    return pull(world, "c2", Window(2))


@situation
def pull_of_what_goes_back_to_its_place(world: World) -> Any:
    worked(world)
    world.join("c3", 4)
    world.join("b1", 5, mode="browse")
    world.put("s0", "s1", "s2", "r0", "r1")
    world.pull("c3", 4)
    world.settle("c3", retry=[Retried("s0", 1000, "park", False, b'{"reason":"unknown"}')])
    world.settle("c3", retry=[Retried("s1", 1000, "tail", True, ERROR)])
    world.settle("c3", retry=[Retried("s2", 1000, "aside", False, b"")])
    world.client.hset(KEYS.jobs, "s2", "garbage")
    world.move(2000)
    return pull(world, "c2", Window(5))


@situation
def pull_that_watches_the_schedule(world: World) -> Any:
    worked(world)
    worked(world, "c3")
    world.put("s0", delay_ms=5_000_000)
    return pull(world, "c3", Window(1))


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
    world.run(commands.await_result(KEYS, "r0", wait=True))
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
    world.run(commands.await_result(KEYS, "r0", wait=True))
    world.run(commands.await_result(KEYS, "r1", wait=True))
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
    world.run(commands.await_result(KEYS, "r0", wait=True))
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


@situation
def pull_of_a_full_consumer_while_others_wait(world: World) -> Any:
    worked(world, jobs=2)
    worked(world, "c3")
    worked(world, "c4")
    world.put("r0")
    return pull(world, "c2", Window(1))


@situation
def pull_of_a_full_consumer_where_consumers_are_ranked(world: World) -> Any:
    worked(world, jobs=2)
    world.put("r0")
    world.join("c3", 3, priority=5)
    world.pull("c3", 3)
    world.join("c4", 1, priority=3)
    world.pull("c4", 1)
    put(world, "r1", "r2")
    return pull(world, "c2", Window(1))
