"""Of the jobs of one key only the latest waits, whatever happens to it and to older ones."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConfigError, InvalidName, JobDisplaced, NoConsumer
from rqueue.inspector.jobs import jobs_page
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.spark.jobs.pages import pages, plan
from rqueue.spark.patience import Reader
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, every_place, ids


@pytest.fixture
def lv(q: QueueFixture) -> QueueFixture:
    """A queue of the kind."""
    q.queue.configure(kind="last_value")
    return q


def put(q: QueueFixture, *names: str, **options: int) -> None:
    """Jobs named "<key><number>"; those of the key "-" have none."""
    for name in names:
        q.put(name, key=name[0] if name[0] != "-" else None, **options)


def state(q: QueueFixture, name: str) -> str:
    return execute(q.queue.redis, commands.show(q.queue.keys, name)).state


def ended(q: QueueFixture, name: str) -> JobState:
    return q.queue.job(name).state()


def outcomes(q: QueueFixture) -> list[tuple[str, str]]:
    return [(row["id"], row["outcome"]) for row in q.look().history]


def empty(q: QueueFixture) -> None:
    """Nothing is kept of any key."""
    assert not {"latest", "heads", "jobs"} & q.look().keys.keys()


@every_place
def test_a_displaced_job_ends_with_record_row_and_answer(lv: QueueFixture) -> None:
    first = lv.put("a1", key="a")
    put(lv, "a2")
    with pytest.raises(JobDisplaced, match="a1"):
        first.result(PATIENCE)
    assert first.state() is JobState.DISPLACED
    assert outcomes(lv) == [("a1", "displaced")]
    counts = lv.queue.counts()
    assert (counts.ready, counts.meta["displaced"], counts.meta.get("marked")) == (1, "1", None)
    found = jobs_page(lv.queue.redis, lv.queue.keys, "displaced").jobs
    assert [(job.id, job.state) for job in found] == [("a1", JobState.DISPLACED)]


def test_a_queue_takes_the_policy_on_with_the_first_key(q: QueueFixture) -> None:
    put(q, "-1", "a1", "a2")
    assert q.look().meta["v"] == "1 last_value levels"
    assert ids(q.join().pull()) == ["-1", "a2"]


@every_place
def test_it_goes_with_neither_groups_nor_times_to_live(lv: QueueFixture) -> None:
    with pytest.raises(ConfigError, match="not both"):
        lv.put("1", group="g")
    with pytest.raises(ConfigError, match="not both"):
        lv.put("1", ttl=5.0)


@every_place
def test_a_queue_that_was_made_anew_is_asked_again(lv: QueueFixture) -> None:
    """What a process remembers of its kind does not refuse what another kind excludes."""
    lv.put("a1", key="a")
    keys = [*lv.queue.redis.scan_iter(lv.queue.keys.base + "*")]
    lv.queue.redis.delete(*keys)
    lv.put("1", group="g")
    assert lv.look().meta["v"] == "1 groups levels"


def test_the_new_one_stands_at_the_tail(lv: QueueFixture) -> None:
    put(lv, "a1", "-1", "b1", "a2", "-2")
    assert ids(lv.join(2).pull()) == ["-1", "b1"]
    assert ids(lv.join().pull()) == ["a2", "-2"]


def test_levels_go_first_and_do_not_keep_an_older_one(lv: QueueFixture) -> None:
    lv.put("a1", key="a", priority=9)
    put(lv, "-1")
    lv.put("a2", key="a", priority=0)
    assert ids(lv.join().pull()) == ["-1", "a2"]


@pytest.mark.parametrize("outcome", ["release", "retry", "delayed", "park", "tail", "leave"])
def test_an_older_one_ends_when_it_comes_back(lv: QueueFixture, outcome: str) -> None:
    put(lv, "a1")
    consumer = lv.join(1)
    (job,) = consumer.pull()
    put(lv, "a2")
    match outcome:
        case "release":
            consumer.settle(release=[job])
        case "leave":
            consumer.close()
        case "delayed":
            consumer.retry(job, delay=5.0)
        case _:
            consumer.retry(job, place="tail" if outcome == "tail" else "old")
    assert ended(lv, "a1") is JobState.DISPLACED
    assert ids(lv.join().pull()) == ["a2"]
    assert lv.look().scheduled == []


def test_an_older_one_ends_also_when_the_newer_one_has_ended(lv: QueueFixture) -> None:
    """X-17: an old value is not resurrected."""
    put(lv, "a1")
    one = lv.join(1)
    (old,) = one.pull()
    put(lv, "a2")
    other = lv.join(1)
    other.ack(*other.pull())
    one.settle(release=[old])
    assert ended(lv, "a1") is JobState.DISPLACED
    assert ids(lv.join().pull()) == []
    empty(lv)


@pytest.mark.parametrize("newer_ended", [False, True])
def test_an_older_one_that_is_done_is_done(lv: QueueFixture, newer_ended: bool) -> None:
    put(lv, "a1")
    one, other = lv.join(1), lv.join(1)
    one.pull()
    put(lv, "a2")
    if newer_ended:
        other.ack(*other.pull())
    one.ack("a1")
    assert ended(lv, "a1") is JobState.DONE
    put(lv, "a3")
    assert ids(lv.join().pull()) == ["a3"]


def test_the_latest_comes_back_to_its_place(lv: QueueFixture) -> None:
    put(lv, "a1", "-1", "b1")
    consumer = lv.join(1)
    for _ in range(2):
        (job,) = consumer.pull()
        assert job.id == "a1"
        consumer.settle(release=[job])
    consumer.retry(*consumer.pull(), place="tail")
    assert ids(lv.join().pull()) == ["-1", "b1", "a1"]


def test_a_retry_that_waits_its_delay_is_displaced_at_once(lv: QueueFixture) -> None:
    put(lv, "a1")
    consumer = lv.join()
    consumer.retry(*consumer.pull(), delay=5.0)
    assert state(lv, "a1") == "scheduled"
    put(lv, "a2")
    assert ended(lv, "a1") is JobState.DISPLACED
    assert lv.look().scheduled == []
    assert ids(consumer.pull()) == ["a2"]


def test_a_retry_that_waits_its_delay_is_still_the_latest_when_due(lv: QueueFixture) -> None:
    put(lv, "a1")
    consumer = lv.join()
    consumer.retry(*consumer.pull(), delay=5.0)
    put(lv, "b1")
    move_time(lv.queue, 5001)
    assert ids(consumer.pull()) == ["a1", "b1"]


def test_a_delayed_value_takes_part_when_it_is_due(lv: QueueFixture) -> None:
    """A-31: also where it was enqueued before the one that it displaces."""
    put(lv, "a1", delay_ms=1000)
    put(lv, "a2")
    assert state(lv, "a2") == "ready"
    move_time(lv.queue, 1001)
    assert ids(lv.join().pull()) == ["a1"]
    assert ended(lv, "a2") is JobState.DISPLACED


@every_place
def test_a_retry_and_a_delayed_value_become_due_in_one_step(lv: QueueFixture) -> None:
    """As in two: the value that is due first displaces the retry, which waits still."""
    put(lv, "a1")
    consumer = lv.join(3)
    consumer.retry(*consumer.pull(), delay=5.0)
    put(lv, "a2", delay_ms=1000)
    move_time(lv.queue, 5001)
    assert ids(consumer.pull()) == ["a2"]
    assert ended(lv, "a1") is JobState.DISPLACED
    consumer.ack("a2")
    empty(lv)


def test_in_one_batch_the_last_of_a_key_wins(lv: QueueFixture) -> None:
    puts = [Put(name, b"[]", key=name[0]) for name in ("a1", "b1", "a2", "a3")]
    reply = execute(lv.queue.redis, commands.enqueue(lv.queue.keys, puts))
    assert (reply.accepted, reply.known) == (4, ())
    assert outcomes(lv) == [("a1", "displaced"), ("a2", "displaced")]
    again = execute(lv.queue.redis, commands.enqueue(lv.queue.keys, puts))
    assert (again.accepted, again.known) == (0, (0, 1, 2, 3))
    assert lv.queue.counts().ready == 2


def test_an_id_that_is_known_displaces_nothing(lv: QueueFixture) -> None:
    put(lv, "a1", "a2", "a1")
    assert ids(lv.join().pull()) == ["a2"]


def test_a_job_that_is_delivered_directly_is_the_latest(lv: QueueFixture) -> None:
    consumer = lv.join(1)
    consumer.pull()
    put(lv, "a1")
    assert lv.look().held == {consumer.name: ["a1"]}
    put(lv, "a2")
    move_time(lv.queue, 60_000)
    lv.renew()
    assert ended(lv, "a1") is JobState.DISPLACED
    assert ids(lv.join().pull()) == ["a2"]


def test_an_immediate_job_that_is_refused_displaces_nothing(lv: QueueFixture) -> None:
    put(lv, "a1")
    with pytest.raises(NoConsumer):
        lv.put("a2", key="a", immediate=True)
    assert ids(lv.join().pull()) == ["a1"]


@pytest.mark.parametrize("how", ["cancel", "purge", "reject"])
def test_of_what_is_gone_nothing_is_kept(lv: QueueFixture, how: str) -> None:
    put(lv, "a1")
    if how == "cancel":
        assert lv.queue.cancel("a1")
    elif how == "purge":
        assert lv.purge() == 1
    else:
        consumer = lv.join()
        consumer.pull()
        consumer.reject("a1", "no")
    assert "latest" not in lv.look().keys
    assert "heads" not in lv.look().keys


def test_a_dead_letter_that_lives_again_is_the_latest(lv: QueueFixture) -> None:
    put(lv, "a1")
    consumer = lv.join(1)
    consumer.pull()
    consumer.reject("a1", "no")
    consumer.close()
    put(lv, "a2")
    assert lv.requeue("a1") == 1
    assert ended(lv, "a2") is JobState.DISPLACED
    assert ids(lv.join().pull()) == ["a1"]


def test_a_dead_letter_goes_to_the_alternate_queue(lv: QueueFixture) -> None:
    """And its key is forgotten here."""
    with Queue(f"{lv.queue.name}-dead", redis=lv.queue.redis) as dead:
        dead.configure(max_deliveries=3)
        lv.queue.configure(dead_to=dead.name)
        put(lv, "a1")
        consumer = lv.join(1)
        consumer.pull()
        consumer.reject("a1", "no")
        lv.queue.forward()
        assert dead.counts().ready == 1
        assert "latest" not in lv.look().keys
        put(lv, "a2", "a3")
        assert ids(lv.join().pull() + consumer.pull()) == ["a3"]


@every_place
def test_a_million_times_the_same_key_leaves_no_marks(lv: QueueFixture) -> None:
    """Here a few thousand times: what Redis keeps of the queue does not grow with it."""
    batches = [[Put(f"{n}.{i}", b"[]", key="a") for i in range(500)] for n in range(8)]
    for batch in batches:
        execute(lv.queue.redis, commands.enqueue(lv.queue.keys, batch))
    look = lv.look()
    assert [*look.jobs] == ["7.499"]
    assert "marked" not in look.meta
    assert not look.lists


def test_who_waits_for_the_bytes_of_a_displaced_job_looks_again(lv: QueueFixture) -> None:
    consumer = lv.join(2, bytes=200)
    lv.put("-1", padding=100)
    assert ids(consumer.pull()) == ["-1"]
    lv.put("a1", key="a", padding=150)
    consumer.pull()
    assert lv.state(consumer) == "not_interested"
    lv.put("a2", key="a")
    assert lv.state(consumer) == "notified"
    assert ids(consumer.pull()) == ["a2"]


@every_place
def test_listings_show_keys(lv: QueueFixture) -> None:
    put(lv, "-1", "a1")
    found = jobs_page(lv.queue.redis, lv.queue.keys, "ready").jobs
    assert [(job.id, job.key) for job in found] == [("-1", ""), ("a1", "a")]
    reader = Reader(lv.queue.redis)
    parts = plan(reader, lv.queue.keys, {"ready"}, None, 10)
    read = [pages(reader, lv.queue.keys, part, {"ready"}, 10) for part in parts]
    assert {one.job.id for part in read for page in part for one in page} == {"-1", "a1"}


@every_place
def test_a_queue_with_keys_is_plain_again_when_it_is_empty(lv: QueueFixture) -> None:
    put(lv, "a1")
    with pytest.raises(ConfigError, match="has jobs"):
        lv.queue.configure(kind="plain")
    lv.purge()
    lv.queue.configure(kind="plain")
    assert lv.look().meta["v"] == "1"


@every_place
def test_every_key_that_people_think_of(lv: QueueFixture) -> None:
    for key in ("ü", "a b", "x|y", "~", "%7E", "n,;", "k" * 128):
        lv.put(f"1{key[:2]}", key=key)
        lv.put(f"2{key[:2]}", key=key)
    found = jobs_page(lv.queue.redis, lv.queue.keys, "ready").jobs
    assert [job.key for job in found] == ["ü", "a b", "x|y", "~", "%7E", "n,;", "k" * 128]
    with pytest.raises(InvalidName):
        lv.put("3", key=5)  # type: ignore[arg-type]
