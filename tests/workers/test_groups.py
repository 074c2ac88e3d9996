"""Groups in real pools: one of each in flight, in order, through kills and retries."""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.tasks.options import Options
from rqueue_workers.exit_codes import Exit
from tests.workers.pools import Pool, eventually

MakePool = Callable[..., Pool]
APP = "tests.workers.groups_app"
GROUPS, EACH = 8, 15


def ended(queue: Queue) -> bool:
    counts = queue.counts()
    return not (counts.ready or counts.held or counts.scheduled or counts.blocked)


def check(events: list[str]) -> None:
    """Of each group one is running at a time, and none before the one before it has ended."""
    running: dict[str, int] = {}
    done: dict[str, int] = {}
    for event in events:
        word, group, text = event.split()
        number = int(text)
        if word == "begin":
            # again after its worker was killed, or it was retried
            assert running.get(group, number) == number, f"{event} beside {running[group]}"
            assert number in (done.get(group, -1), done.get(group, -1) + 1), event
            running[group] = number
        else:
            assert running.pop(group) == number, event
            done[group] = number
    assert running == {}
    assert done == {f"g{group}": EACH - 1 for group in range(GROUPS)}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("options", [{"processes": 2}, {"processes": 2, "threads": 4}])
def test_one_of_each_group_runs_at_a_time_and_in_order(
    queue: Queue,
    client: redis.Redis,
    make_pool: MakePool,
    queue_name: str,
    options: dict[str, int],
) -> None:
    """Q-65, X-14, X-23."""
    special = {(1, 4): "killed", (2, 7): "killed", (3, 3): "retried", (4, 0): "retried"}
    events = f"{queue_name}-events"
    queue.enqueue_many(
        Call(
            "in_turn",
            [events, f"g{group}", number, special.get((group, number), "")],
            options=Options(group=f"g{group}"),
        )
        for number in range(EACH)
        for group in range(GROUPS)
    )
    pool = make_pool(app=[APP], **options)
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    said: Any = client.lrange(events, 0, -1)
    check([event.decode() for event in said])
    assert pool.drained() == Exit.OK
    assert not client.exists(queue.keys.groups, queue.keys.heads, queue.keys.blocked)


def processes(events: list[str]) -> dict[str, list[int]]:
    """The processes that ran each group, in the order of their first jobs of it."""
    found: dict[str, list[int]] = {}
    for event in events:
        word, group, _, pid = event.split()
        its = found.setdefault(group, [])
        if word == "begin" and its[-1:] != [int(pid)]:
            its.append(int(pid))
    return found


@pytest.mark.timeout(240)
def test_a_sticky_group_is_run_by_one_process_until_that_is_killed(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """Q-64, A-26: then another one takes it over, in order; the groups of others stay with them."""
    queue.configure(sticky=1024)
    pool = make_pool(app=[APP], processes=2)
    # both processes wait for work, and share out what comes
    eventually(lambda: client.zcard(queue.keys.interested) == 2, lambda: pool.log)
    events = f"{queue_name}-events"
    queue.enqueue_many(
        Call(
            "in_place",
            [events, f"g{group}", number, (group, number) == (1, 4)],
            options=Options(group=f"g{group}"),
        )
        for number in range(EACH)
        for group in range(GROUPS)
    )
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    said: Any = client.lrange(events, 0, -1)
    lines = [event.decode() for event in said]
    check([line.rpartition(" ")[0] for line in lines])
    groups = processes(lines)
    killed, *_ = groups["g1"]
    assert len(groups["g1"]) == 2
    for group, pids in groups.items():
        assert len(pids) == 1 or (len(pids) == 2 and pids[0] == killed), f"{group}: {pids}"
    assert pool.drained() == Exit.OK
    assert not client.exists(queue.keys.groups, queue.keys.heads, queue.keys.blocked)
