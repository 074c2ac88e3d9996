"""What a task enqueues, however often it comes, on a real Redis and without Spark."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

import orjson
import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, LifecycleError, RedisUnavailable
from rqueue.inspector.jobs import all_jobs
from rqueue.model.ids import new_id
from rqueue.model.signing import Signer
from rqueue.model.terms import NORMAL_TERMS
from rqueue.protocol import commands
from rqueue.protocol.commands.write_log import write_progress
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.write.rows import Job
from rqueue.spark.write.sink import Counts, Sink, Task
from rqueue.transport.redis_client import execute
from tests.support.profiles import examples
from tests.support.snapshot import take_snapshot

TASK = Task("run", 3, 0, batch_size=10, rows_per_second=0, patience=5, remember=3600)


@pytest.fixture
def keys(queue_name: str) -> QueueKeys:
    return QueueKeys(queue_name)


def jobs(queue: str, texts: Iterable[object], **more: object) -> list[Job]:
    return [
        Job(row, queue, None, orjson.dumps(["t", [text]]), NORMAL_TERMS)._replace(**more)
        for row, text in enumerate(texts)
    ]


def write(
    client: redis.Redis, rows: Iterable[Job], task: Task = TASK, signer: Signer | None = None
) -> Counts:
    sink = Sink(client, QueueKeys, task, signer)
    try:
        for row in rows:
            sink.add(row)
        sink.flush()
    finally:
        sink.close()
    return sink.counts


def said(client: redis.Redis, keys: QueueKeys, state: str = "ready") -> Counter[str]:
    return Counter(info.args[0] for info in all_jobs(client, keys, state))


def forget(client: redis.Redis, keys: QueueKeys) -> None:
    """All jobs have ended, so long ago that the queue has forgotten their ids."""
    client.delete(keys.jobs, keys.ready(4), keys.ended, keys.ended_old)


def test_each_row_is_a_job_also_where_rows_say_the_same(
    client: redis.Redis, keys: QueueKeys
) -> None:
    rows = jobs(keys.queue, ["a", "b", "a", "a", *map(str, range(30))])
    assert write(client, rows) == Counts(jobs=34)
    assert said(client, keys) == Counter({"a": 3, "b": 1, **dict.fromkeys(map(str, range(30)), 1)})
    assert execute(client, write_progress(keys, "run")) == (34, 34)


def test_they_keep_their_order(client: redis.Redis, keys: QueueKeys) -> None:
    texts = [str(number) for number in range(57)]
    write(client, jobs(keys.queue, texts))
    assert [info.args[0] for info in all_jobs(client, keys, "ready")] == texts


@pytest.mark.each_server
@pytest.mark.parametrize("ended", [False, True], ids=["live", "forgotten"])
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "shuffled"])
def test_an_attempt_that_comes_again_enqueues_what_is_missing(
    client: redis.Redis, keys: QueueKeys, ended: bool, shuffled: bool
) -> None:
    texts = [str(number % 40) for number in range(100)]  # most of them twice or more
    write(client, jobs(keys.queue, texts[:55]))
    before = said(client, keys)
    if ended:
        forget(client, keys)
    if shuffled:
        random.Random(1).shuffle(texts)
    counts = write(client, jobs(keys.queue, texts))
    assert (counts.repeated, counts.jobs) == (55, 45)
    after = said(client, keys)
    assert (before + after if ended else after) == Counter(texts)
    assert write(client, jobs(keys.queue, texts)) == Counts(repeated=100)


def test_attempts_side_by_side_enqueue_each_row_once(
    server: EmbeddedRedis, keys: QueueKeys
) -> None:
    """As speculation does; the jobs end at once, so that no id is remembered."""
    texts = [str(number) for number in range(600)]
    start = threading.Barrier(3)
    found: list[Counts] = []

    def attempt(seed: int) -> None:
        mine = list(texts)
        random.Random(seed).shuffle(mine)
        with redis.Redis.from_url(server.url) as client:
            start.wait()
            found.append(write(client, jobs(keys.queue, mine), replace(TASK, batch_size=7)))

    threads = [threading.Thread(target=attempt, args=(seed,)) for seed in (1, 2)]
    taken: Counter[str] = Counter()
    with redis.Redis.from_url(server.url) as client:
        for thread in threads:
            thread.start()
        start.wait()
        take = client.register_script(
            "local ids = redis.call('LRANGE', KEYS[1], 0, -1)\n"
            "local found = #ids > 0 and redis.call('HMGET', KEYS[2], unpack(ids)) or {}\n"
            "redis.call('DEL', KEYS[1], KEYS[2])\n"
            "return found"
        )

        def drain() -> None:
            for value in take(keys=[keys.ready(4), keys.jobs]):
                taken[orjson.loads(value.partition(b";")[2])[1][0]] += 1

        while any(thread.is_alive() for thread in threads):
            drain()
        drain()
    assert taken == Counter(texts)
    assert sum(counts.jobs for counts in found) == 600
    assert sum(counts.repeated for counts in found) == 600


def test_an_attempt_that_slept_finds_what_was_done(client: redis.Redis, keys: QueueKeys) -> None:
    rows = jobs(keys.queue, map(str, range(35)))
    sleeper = Sink(client, QueueKeys, TASK)
    for row in rows[:15]:
        sleeper.add(row)
    write(client, rows)
    forget(client, keys)
    for row in rows[15:]:
        sleeper.add(row)
    sleeper.flush()
    sleeper.close()
    assert said(client, keys) == Counter()
    assert sleeper.counts.jobs <= 10


def test_an_epoch_that_is_over_is_refused(client: redis.Redis, keys: QueueKeys) -> None:
    rows = jobs(keys.queue, map(str, range(5)))
    write(client, rows)
    execute(client, commands.commit_write(keys, "run", 4, 1000))
    with pytest.raises(LifecycleError, match=r"has committed epoch 4 .* this is epoch 3.*runId"):
        write(client, rows)
    assert sum(said(client, keys).values()) == 5


def test_other_epochs_partitions_and_runs_are_other_rows(
    client: redis.Redis, keys: QueueKeys
) -> None:
    rows = jobs(keys.queue, ["a"])
    others = [{"epoch": 4}, {"partition": 1}, {"run": "other"}]
    for change in ({}, *others):
        assert write(client, rows, replace(TASK, **change)).jobs == 1
    ids = [info.id for info in all_jobs(client, keys, "ready")]
    assert len(set(ids)) == 4


def executed(
    client: redis.Redis, rows: list[Job], cuts: list[int], execution: str, dies_at: int = 10**6
) -> None:
    """One execution of a run: the rows, cut into partitions, until it dies behind so many rows."""
    done = 0
    for partition, (start, end) in enumerate(pairwise([0, *cuts, len(rows)])):
        part = rows[start : min(end, start + max(0, dies_at - done))]
        done += end - start
        write(client, part, replace(TASK, partition=partition, execution=execution, batch_size=3))


@settings(
    max_examples=examples(25, 200),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    count=st.integers(1, 30),
    divisions=st.lists(st.lists(st.integers(0, 30), max_size=4), min_size=2, max_size=3),
    dies_at=st.integers(0, 30),
)
def test_a_run_that_is_divided_otherwise_enqueues_nothing_twice(
    client: redis.Redis, count: int, divisions: list[list[int]], dies_at: int
) -> None:
    name = new_id()
    rows = jobs(name, map(str, range(count)))
    first, *later = (sorted(min(cut, count) for cut in cuts) for cuts in divisions)
    executed(client, rows, first, "e0", dies_at)
    written = {tuple(first)} if dies_at else set()
    for number, cuts in enumerate([*later, first], 1):
        try:
            executed(client, rows, cuts, f"e{number}")
            assert said(client, QueueKeys(name)) == Counter(map(str, range(count)))
        except ConfigError as error:
            assert written - {tuple(cuts)} and "repartition" in error.problem
            assert set(said(client, QueueKeys(name)).values()) <= {1}
        written.add(tuple(cuts))


def test_ids_begin_with_what_they_have_in_common(client: redis.Redis, keys: QueueKeys) -> None:
    write(client, jobs(keys.queue, map(str, range(20))))
    ids = [info.id for info in all_jobs(client, keys, "ready")]
    assert len({id_[:9] for id_ in ids}) == 1
    assert len({id_[9:] for id_ in ids}) == 20
    assert all(len(id_) == 22 and id_.isalnum() and id_[0].isalpha() for id_ in ids)


def test_rows_with_ids_of_their_own(client: redis.Redis, keys: QueueKeys) -> None:
    rows = [job._replace(id=f"id-{job.row // 2}") for job in jobs(keys.queue, "abcd")]
    assert write(client, rows) == Counts(jobs=2, known=2)
    forget(client, keys)
    assert write(client, rows, replace(TASK, partition=0)) == Counts(repeated=4)


def test_levels_delays_and_queues_in_one_partition(client: redis.Redis, keys: QueueKeys) -> None:
    other = QueueKeys(f"{keys.queue}-b")
    rows = jobs(keys.queue, map(str, range(30)))
    rows[3] = rows[3]._replace(terms="9,,0,")
    rows[4] = rows[4]._replace(terms="4,+60000,2,")
    rows += jobs(other.queue, map(str, range(25)))
    assert write(client, rows).jobs == 55
    ready = list(all_jobs(client, keys, "ready"))
    assert (ready[0].args, ready[0].level, len(ready)) == (["3"], 9, 29)
    (later,) = all_jobs(client, keys, "scheduled")
    assert (later.args, later.max_deliveries) == (["4"], 2)
    assert sum(said(client, other).values()) == 25
    assert write(client, rows) == Counts(repeated=55)


def test_more_queues_than_steps_under_way(client: redis.Redis, keys: QueueKeys) -> None:
    rows = [
        job._replace(queue=f"{keys.queue}-{job.row % 20}")
        for job in jobs(keys.queue, map(str, range(500)))
    ]
    assert write(client, rows).jobs == 500
    for number in range(20):
        assert sum(said(client, QueueKeys(f"{keys.queue}-{number}")).values()) == 25


def test_signed_envelopes(client: redis.Redis, keys: QueueKeys) -> None:
    signer = Signer({"k1": "0123456789abcdef"})
    write(client, jobs(keys.queue, ["a"]), signer=signer)
    (job,) = execute(client, commands.browse(keys)).jobs
    assert orjson.loads(signer.verify(keys.queue, job.id, job.body).json) == ["t", ["a"]]
    # another key signs the same row: it is the same job
    other = Signer({"k2": "fedcba9876543210"})
    assert write(client, jobs(keys.queue, ["a"]), signer=other) == Counts(repeated=1)


def test_a_pace_is_kept(client: redis.Redis, keys: QueueKeys) -> None:
    begin = time.monotonic()
    write(client, jobs(keys.queue, map(str, range(30))), replace(TASK, rows_per_second=100))
    assert 0.25 < time.monotonic() - begin < 60


def test_it_waits_while_redis_is_full(
    make_server: Callable[..., EmbeddedRedis], keys: QueueKeys
) -> None:
    server = make_server()
    with redis.Redis.from_url(server.url) as client:
        sink = Sink(client, QueueKeys, TASK)
        rows = jobs(keys.queue, map(str, range(25)))
        sink.add(rows[0])
        client.config_set("maxmemory", "1")
        room = threading.Timer(0.5, lambda: client.config_set("maxmemory", "0"))
        room.start()
        for row in rows[1:]:
            sink.add(row)
        sink.flush()
        sink.close()
        room.join()
        assert said(client, keys) == Counter(map(str, range(25)))
        assert execute(client, write_progress(keys, "run")) == (25, 25)


def test_it_gives_up_after_its_patience(
    make_server: Callable[..., EmbeddedRedis], keys: QueueKeys
) -> None:
    server = make_server()
    with redis.Redis.from_url(server.url) as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(RedisUnavailable, match="maxmemory"):
            write(client, jobs(keys.queue, ["a"]), replace(TASK, patience=0.2))
        client.config_set("maxmemory", "0")
        assert not take_snapshot(client, keys).keys
