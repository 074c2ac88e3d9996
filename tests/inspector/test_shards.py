"""A queue that is spread over two servers, as the inspector and the doctor see it: all of it, or
that a part is missing."""

from collections.abc import Iterator
from itertools import islice

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.client._sync.sharded_queue import ShardedQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConnectionLost, QueueSharded, UnknownJob, UnknownQueue
from rqueue.inspector import DeadFilter, Inspector
from rqueue.model.job import JobState
from rqueue.tasks.options import Options

JOBS = 12


@pytest.fixture
def spread(
    server: EmbeddedRedis, private_server: EmbeddedRedis, queue_name: str
) -> Iterator[ShardedQueue]:
    """Of three shards the last one is on another server; all have some of the jobs."""
    with ShardedQueue(queue_name, server.url, shards=2) as queue:
        queue.table()
        queue.open(place=private_server.url)
        for number in range(JOBS):
            queue.send("t", [number], options=Options(id=f"job-{number}"))
        assert all(its.counts().ready for its in queue.queues())
        yield queue
    with Queue(queue_name, server.url) as here:
        for its in here.redis.scan_iter(match=f"rqueue:{{{queue_name}*", count=1000):
            here.redis.delete(its)


@pytest.fixture
def look(server: EmbeddedRedis) -> Iterator[Inspector]:
    with Inspector(server.url) as inspector:
        yield inspector


def waiting(queue: Queue) -> str:
    """A job that waits in a shard."""
    return next(job.id for job in Inspector(redis=queue.redis).all_jobs(queue.name))


def test_numbers_are_those_of_all_shards(spread: ShardedQueue, look: Inspector) -> None:
    info = look.queue(spread.name)
    assert (info.ready, info.shards, info.accepted) == (JOBS, 3, JOBS)
    survey = look.survey(spread.name)
    assert sum(its.ready for its in survey.each.values()) == JOBS and not survey.missing
    assert look.queue(f"{spread.name}~2").ready == survey.each[f"{spread.name}~2"].ready > 0
    assert [info.name for info in look.queues() if spread.name in info.name] == [spread.name]
    with pytest.raises(UnknownQueue):
        look.queue(f"{spread.name}~9")


def test_jobs_of_all_shards_are_found(spread: ShardedQueue, look: Inspector) -> None:
    name = spread.name
    found = [job.id for job in look.all_jobs(name)]
    assert sorted(found) == sorted(f"job-{number}" for number in range(JOBS))
    paged, after = [], ""
    while True:
        page = look.jobs(name, after=after, limit=5)
        paged += [job.id for job in page.jobs]
        after = page.next
        if not after:
            break
    assert paged == found
    for id_ in found:
        where = spread.job(id_).queue
        assert look.job(id_).job.queue == look.job(id_, name).job.queue == where
    with pytest.raises(UnknownJob):
        look.job("nobody", name)


def test_history_and_dead_letters_are_those_of_all_shards(
    spread: ShardedQueue, look: Inspector
) -> None:
    name = spread.name
    for its in spread.queues():
        with its.consumer(jobs=100, renew=False) as consumer:
            for number, job in enumerate(consumer.pull()):
                consumer.settle(
                    **({"reject": [(job, {"type": "X"})]} if number else {"ack": [job]})
                )
    rows = list(look.history(name))
    assert len(rows) == JOBS and {row["queue"] for row in rows} == {i.name for i in spread.queues()}
    entries = [tuple(map(int, row["entry"].split("-"))) for row in rows]
    assert entries == sorted(entries)
    last, after = look.last_rows(name, 5)
    assert [row["id"] for row in last] == [row["id"] for row in rows[-5:]]
    assert set(after) == {its.name for its in spread.queues()}
    assert next(iter(look.follow_history(name, dict.fromkeys(after, "0-0"))))
    dead = [job.id for job in look.dead(name)]
    assert len(dead) == look.queue(name).dead == JOBS - 3
    assert look.purge_dead(name, DeadFilter(ids=(dead[0],))) == 1
    assert look.requeue_dead(name) == JOBS - 4
    assert look.purge(name) == JOBS - 4
    stats = look.stats(name, 0, first=look.survey(name))
    assert stats.info.counters["acked"] == 3


def test_rows_are_followed_as_they_come(spread: ShardedQueue, look: Inspector) -> None:
    followed = look.follow_history(spread.name, look.last_rows(spread.name, 0)[1])
    for its in spread.queues():
        first = waiting(its)
        its.cancel(first)
        rows = next(rows for rows in followed if rows)
        assert [row["id"] for row in rows] == [first]
    followed.close()  # type: ignore[attr-defined]


def test_a_part_is_never_shown_as_if_it_were_all(
    spread: ShardedQueue, look: Inspector, private_server: EmbeddedRedis
) -> None:
    name, far = spread.name, spread.queues()[2]
    id_ = waiting(far)
    private_server.stop()
    survey = look.survey(name)
    assert list(survey.missing) == [f"{name}~2"] and 0 < survey.whole.ready < JOBS
    for ask in (
        lambda: look.queue(name),
        lambda: look.stats(name, 0),
        lambda: list(look.history(name)),
        lambda: look.last_rows(name, 3),
        lambda: list(islice(look.follow_history(name), 3)),
        lambda: list(look.all_jobs(name)),
        lambda: look.job(id_),
        lambda: look.job(id_, name),
        lambda: list(look.dead(name)),
        lambda: look.consumers(name),
        lambda: look.alerts(name),
        lambda: look.purge(name),
    ):
        with pytest.raises(ConnectionLost, match=f"shard '{name}~2' cannot be asked"):
            ask()
    with pytest.raises(QueueSharded):
        look.group_owners(name)


def test_the_doctor_looks_at_all_shards(
    spread: ShardedQueue, look: Inspector, private_server: EmbeddedRedis
) -> None:
    name = spread.name
    doctor = look.doctor(wait=lambda _seconds: None)
    spread.cancel_all()
    spread.advance()
    places = doctor.with_shards({name: ""})
    assert [*places] == [name, f"{name}~0", f"{name}~1", f"{name}~2"]
    found = [one for its, node in places.items() for one in doctor.check_queue_at(its, node)]
    assert [one for one in found if one.severity == "problem"] == []
    assert any(private_server.url in one.says for one in doctor.check_places([name]))
    private_server.stop()
    found = [one for its, node in places.items() for one in doctor.check_queue_at(its, node)]
    assert {one.kind for one in found if one.severity == "problem"} == {"not-checked"}
    assert {one.kind for one in doctor.check_places([name])} == {"shards-away"}


def test_a_shard_that_is_gone_comes_back(
    spread: ShardedQueue, look: Inspector, client: redis.Redis
) -> None:
    """It was deleted behind our back: its jobs are lost, and nothing else."""
    name = spread.name
    doctor = look.doctor(wait=lambda _seconds: None)
    client.delete(*client.keys(f"rqueue:{{{name}~0}}:*"))
    assert {one.kind for one in doctor.check_queue(name)} == {"shard-gone"}
    assert doctor.heal(name) == []
    for number in range(JOBS):
        spread.send("t", options=Options(id=f"again-{number}"))
    assert look.queue(f"{name}~0").ready > 0
    assert look.job("again-3").job.state is JobState.READY


TABLES = {
    "no version": {"version": ""},
    "no open shard": {str(number): "draining 1 " for number in range(3)},
    "half a shard": {"1": "open"},
    "a weight that is none": {"1": "open x "},
    "a change of no shard": {"moving": "open 77"},
    "a change that does not fit": {"moving": "drain 1"},
    "a past that cannot be read": {"past": "yesterday"},
}


@pytest.mark.parametrize("fields", TABLES.values(), ids=TABLES.keys())
def test_a_damaged_table_is_refused_with_a_sentence(
    fields: dict[str, str], spread: ShardedQueue, look: Inspector, client: redis.Redis
) -> None:
    spread.advance()
    client.hset(f"rqueue:{{{spread.name}}}:shards", mapping=fields)
    doctor = look.doctor(wait=lambda _seconds: None)
    (found,) = doctor.check_queue(spread.name)
    assert (found.kind, found.remedy) == ("table", "put back version 2, which its shards keep")
    with pytest.raises(Exception, match="is damaged"):
        spread.table()
    assert doctor.heal(spread.name) == []
    assert spread.table().version == 4


def test_an_earlier_table_is_not_gone_by(
    spread: ShardedQueue, look: Inspector, client: redis.Redis
) -> None:
    """A backup was put back: a job must not go where its key was then."""
    key = f"rqueue:{{{spread.name}}}:shards"
    client.hset(key, mapping={"version": "1", "moving": ""})
    client.hdel(key, "2", "past")
    with pytest.raises(Exception, match="knows a later one"):
        spread.advance()
    found = look.doctor(wait=lambda _seconds: None).check_queue(spread.name)
    assert {one.kind for one in found} == {"table-behind"}
    doctor = look.doctor(wait=lambda _seconds: None)
    assert doctor.heal(spread.name) == []
    assert spread.table().version == 4 and len(spread.table().open) == 3


@pytest.mark.parametrize("all_of_it", [False, True])
def test_a_lost_table_is_put_back_from_its_shards(
    all_of_it: bool, spread: ShardedQueue, look: Inspector, client: redis.Redis
) -> None:
    before = spread.advance()
    client.delete(spread._queue.keys.shards, *([spread._queue.keys.meta] if all_of_it else []))
    doctor = look.doctor(wait=lambda _seconds: None)
    name = f"{spread.name}~0" if all_of_it else spread.name
    (found,) = doctor.check_queue(name)
    assert (found.kind, found.remedy) == ("table", "put back version 2, which its shards keep")
    assert doctor.heal(name) == []
    table = spread.table()
    assert (table.version, table.layout, table.moving) == (4, before.layout, before.moving)
    assert look.queue(spread.name).ready == JOBS
    spread.send("t", options=Options(id="after"))
    assert spread.counts().ready == JOBS + 1


def test_a_table_is_not_put_back_while_a_shard_is_away(
    spread: ShardedQueue, look: Inspector, client: redis.Redis, private_server: EmbeddedRedis
) -> None:
    """It may keep a later one."""
    client.delete(spread._queue.keys.shards)
    private_server.stop()
    (found,) = look.doctor(wait=lambda _seconds: None).check_queue(spread.name)
    assert "cannot be asked" in found.says and not found.remedy


def test_a_table_is_not_put_back_over_jobs_of_the_name(
    spread: ShardedQueue, look: Inspector, client: redis.Redis
) -> None:
    client.delete(spread._queue.keys.shards, spread._queue.keys.meta)
    with Queue(spread.name, redis=client) as plain:
        plain.send("t")
    found = look.doctor(wait=lambda _seconds: None).check_queue(f"{spread.name}~0")
    assert any("jobs or consumers of its own" in one.says and not one.remedy for one in found)


def test_a_fence_that_nothing_asks_for_is_lifted(
    spread: ShardedQueue, look: Inspector, client: redis.Redis
) -> None:
    spread.cancel_all()
    assert not spread.advance().moving
    its = spread.queues()[0]
    client.hset(its.keys.meta, mapping={"paused": "1", "fences": "1 2"})
    doctor = look.doctor(wait=lambda _seconds: None)
    assert {one.kind for one in doctor.check_queue(spread.name)} == {"stray-fence"}
    assert doctor.heal(spread.name) == []
    assert not client.hmget(its.keys.meta, "fences")[0] and not its.counts().meta.get("paused")


def test_a_table_whose_queue_lost_its_meta(
    spread: ShardedQueue, look: Inspector, client: redis.Redis
) -> None:
    key = f"rqueue:{{{spread.name}}}:meta"
    client.delete(key)
    client.set(key, "x")
    doctor = look.doctor(wait=lambda _seconds: None)
    doctor.heal(spread.name)
    assert look.queue(spread.name).ready == JOBS
    with Queue(spread.name, redis=client) as plain:
        assert plain.send("t").queue != spread.name
