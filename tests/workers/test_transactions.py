"""What a job enqueues by the step that acks it, in real pools: both, or neither."""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psutil
import pytest
import redis

from rqueue.client._sync.queue import Call, Queue
from rqueue.errors import JobFailed
from rqueue.model.job import JobState
from rqueue.tasks.options import Options
from rqueue_workers.exit_codes import Exit
from tests.support.snapshot import take_snapshot
from tests.workers.pools import Pool, eventually, pop

MakePool = Callable[..., Pool]
APP = "tests.workers.transactions_app"
CHAINS, LINKS = 6, 8


def ended(queue: Queue) -> bool:
    counts = queue.counts()
    return not (counts.ready or counts.held or counts.scheduled or counts.blocked)


def acked(queue: Queue) -> int:
    return int(queue.counts().meta.get("acked", "0"))


def accepted(queue: Queue) -> int:
    return int(queue.counts().meta["seq"]) - int(queue.counts().meta.get("tailed", "0"))


def start(queue: Queue, task: str, key: str, *fates: str) -> None:
    queue.configure(max_crashes=0, max_deliveries=0)
    queue.enqueue_many(
        Call(task, [key, chain, LINKS - 1, fates[chain] if chain < len(fates) else ""])
        for chain in range(CHAINS)
    )


@pytest.mark.parametrize(
    ("task", "options"),
    [("link", {"processes": 2}), ("link", {"threads": 3}), ("alink", {"async_slots": 3})],
)
def test_each_link_of_a_chain_is_enqueued_once(
    queue: Queue,
    client: redis.Redis,
    make_pool: MakePool,
    queue_name: str,
    task: str,
    options: dict[str, int],
) -> None:
    """Q-73: also where the worker dies, or the job fails, after the block has ended."""
    key = f"{queue_name}-links"
    start(queue, task, key, "killed", "retried", "retried")
    pool = make_pool(app=[APP], **options)
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    assert pool.drained() == Exit.OK
    assert accepted(queue) == acked(queue) == CHAINS * LINKS
    seen = Counter(client.lrange(key, 0, -1))
    assert len(seen) == CHAINS * LINKS
    assert seen.total() > CHAINS * LINKS


def kill_some(client: redis.Redis, pool: Pool, key: str, over: Callable[[], bool]) -> None:
    """Kill workers while they tell in a list what they do."""
    chance = random.Random(7)
    for _ in range(5):
        for _ in range(chance.randint(1, 4)):
            pop(client, key)
        workers = psutil.Process(pool.pid).children()
        if workers and not over():
            with suppress(psutil.NoSuchProcess):
                chance.choice(workers).kill()


@pytest.mark.timeout(120)
def test_followers_in_another_queue_are_enqueued_once(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """Q-73: through the outbox, whatever dies when."""
    key, other = f"{queue_name}-hops", queue.at(f"{queue_name}-other")
    both = queue, other
    for one in both:
        one.configure(max_crashes=0, max_deliveries=0)
    for _ in range(CHAINS):
        queue.send("hop", [key, queue.name, other.name, LINKS - 1])
    pool = make_pool(app=[APP], processes=2, queues=[queue.name, other.name], lease="3s")

    def over() -> bool:
        # one look at each queue would miss a job that goes from the second one to the first
        return sum(map(acked, both)) >= CHAINS * LINKS

    kill_some(client, pool, key, over)
    eventually(over, lambda: f"{queue.counts()}\n{other.counts()}\n{pool.log}")
    assert pool.drained() == Exit.OK
    assert [accepted(one) for one in both] == [CHAINS * LINKS // 2] * 2
    assert list(map(acked, both)) == [CHAINS * LINKS // 2] * 2
    assert all(ended(one) for one in both)


@pytest.mark.timeout(120)
def test_workers_killed_at_any_moment_enqueue_both_or_neither(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    """Q-73."""
    key = f"{queue_name}-links"
    start(queue, "link", key)
    pool = make_pool(app=[APP], processes=2)
    kill_some(client, pool, key, lambda: ended(queue))
    eventually(lambda: ended(queue), lambda: f"{queue.counts()}\n{pool.log}")
    assert accepted(queue) == acked(queue) == CHAINS * LINKS


def test_what_a_job_says_of_those_that_follow(
    queue: Queue, client: redis.Redis, make_pool: MakePool, queue_name: str
) -> None:
    key = f"{queue_name}-links"
    queue.send("quiet", [key], None, Options(id="quiet"))
    failing = queue.send("fails", [key], None, Options(id="fails", max_deliveries=2))
    make_pool(app=[APP])
    said = [pop(client, f"{key}:said"), pop(client, f"{key}:said")]
    assert sorted([pop(client, key), pop(client, key)]) == ["0 0", "2 0"]
    assert [queue.job(id).result(20) for id in said] == [0, 0]
    with pytest.raises(JobFailed):
        failing.result(20)
    eventually(lambda: ended(queue))
    assert accepted(queue) == 4
    rows = take_snapshot(queue.redis, queue.keys).history
    assert [row["outcome"] for row in rows if row["id"] == "quiet"] == ["ack"]


def test_a_job_whose_followers_are_refused_has_failed(queue: Queue, make_pool: MakePool) -> None:
    queue.configure(kind="groups")
    job = queue.send("refused")
    pool = make_pool(app=[APP])
    with pytest.raises(JobFailed, match="last_value"):
        job.result(20)
    assert job.state() is JobState.DEAD
    pool.said("what follows it is refused")
