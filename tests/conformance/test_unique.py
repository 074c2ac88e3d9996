"""Unique jobs: of one key one job at a time, whatever happens to it; nothing of it stays behind."""

from datetime import timedelta

import pytest

from rqueue.errors import DuplicateJob, NoConsumer, TransactionRolledBack
from rqueue.model.job import JobState
from rqueue.protocol import commands
from rqueue.protocol.job_packer import Call
from rqueue.tasks.decorator import task
from rqueue.tasks.options import Options
from rqueue.tasks.registry import Registry
from rqueue.tasks.unique import Unique
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, every_place, ids, one_kind

registry = Registry()
BY_NAME = Unique(key="k")


@task(name="sync", registry=registry, unique=True)
def sync(account_id: int, full: bool = False) -> None: ...


@pytest.fixture
def u(q: QueueFixture) -> QueueFixture:
    """A queue of the kind."""
    q.queue.configure(kind="unique")
    return q


def put(u: QueueFixture, *names: str, unique: Unique = BY_NAME, **options: object) -> list[str]:
    """Jobs of one key; returns what was answered: ids."""
    return [u.put(name, unique=unique, **options).id for name in names]


def free(u: QueueFixture) -> bool:
    """Nothing is kept of any key."""
    return not {"unique", "periods"} & u.look().keys.keys()


def test_the_job_that_is_there_is_the_answer(u: QueueFixture) -> None:
    first = u.put("1", unique=BY_NAME)
    again = u.put("2", unique=BY_NAME)
    assert (first.created, first.conflict) == (True, "")
    assert (again.id, again.created, again.conflict) == ("1", False, "ready")
    c = u.join()
    assert ids(c.pull()) == ["1"]
    held = u.put("3", unique=BY_NAME)
    assert (held.id, held.conflict) == ("1", "held")
    c.ack("1")
    assert free(u)
    assert put(u, "4") == ["4"]


def test_a_job_that_waits_to_be_tried_again_has_its_key(u: QueueFixture) -> None:
    put(u, "1")
    c = u.join()
    c.retry(*c.pull(), delay=60.0)
    handle = u.put("2", unique=BY_NAME)
    assert (handle.id, handle.conflict) == ("1", "scheduled")


@every_place
def test_the_same_id_again_is_the_same_job(u: QueueFixture) -> None:
    """What is sent again, because its answer was lost, is its own job and no conflict."""
    u.put("1", unique=BY_NAME)
    again = u.put("1", unique=BY_NAME)
    assert (again.id, again.created, again.conflict) == ("1", False, "")


def test_a_queue_takes_the_policy_on_with_the_first_unique_job(q: QueueFixture) -> None:
    q.put("0")
    put(q, "1", "2")
    assert q.look().meta["v"] == "1 levels unique"
    assert ids(q.join().pull()) == ["0", "1"]


def ack(u: QueueFixture) -> None:
    c = u.join()
    c.ack(*c.pull())


def kill(u: QueueFixture) -> None:
    c = u.join()
    c.reject(*c.pull(), "never")


def run_out(u: QueueFixture) -> None:
    c = u.join()
    for _ in range(2):
        c.retry(*c.pull())


def lapse(u: QueueFixture) -> None:
    """Its worker's lease ends, again and again, until the job has crashed too often."""
    for _ in range(8):
        c = u.join()
        if c.pull():
            execute(u.queue.redis, commands.note_running(u.queue.keys, c.name, [commands.Ran("1")]))
        move_time(u.queue, 1_000_000)
        u.renew()


def expire(u: QueueFixture) -> None:
    move_time(u.queue, 6000)
    u.join().pull()


def cancel_held(u: QueueFixture) -> None:
    u.join().pull()
    assert u.queue.cancel("1")


def purge_held(u: QueueFixture) -> None:
    c = u.join()
    c.pull()
    assert u.purge_held(c, "1")[0] == 1


def early(u: QueueFixture) -> None:
    assert u.queue.get() is not None


WAYS = {
    "ack": ack,
    "reject": kill,
    "attempts": run_out,
    "leases": lapse,
    "expired": expire,
    "cancel": lambda u: u.queue.cancel("1"),
    "cancel held": cancel_held,
    "purge": lambda u: u.purge(),
    "purge held": purge_held,
    "at most once": early,
}


@one_kind
@pytest.mark.parametrize("way", WAYS)
def test_whatever_ends_a_job_frees_its_key(u: QueueFixture, way: str) -> None:
    u.put("1", unique=BY_NAME, ttl=5.0 if way == "expired" else None, max_deliveries=2)
    WAYS[way](u)
    assert free(u)
    assert put(u, "2") == ["2"]


@one_kind
def test_an_expired_job_that_nobody_swept_keeps_nobody_away(u: QueueFixture) -> None:
    u.put("1", unique=BY_NAME, ttl=5.0)
    move_time(u.queue, 6000)
    assert put(u, "2") == ["2"]
    assert ids(u.join().pull()) == ["2"]


@pytest.mark.parametrize("way", ["release", "retry", "leave", "lapse"])
def test_a_job_that_comes_back_keeps_its_key(u: QueueFixture, way: str) -> None:
    put(u, "1")
    c = u.join()
    (job,) = c.pull()
    match way:
        case "release":
            c.settle(release=[job])
        case "retry":
            c.retry(job)
        case "leave":
            c.close()
        case _:
            move_time(u.queue, 1_000_000)
            u.renew()
    assert put(u, "2") == ["1"]


def test_until_its_start_a_job_keeps_others_away(u: QueueFixture) -> None:
    until = Unique(key="k", until="start")
    assert put(u, "1", "2", unique=until) == ["1", "1"]
    c = u.join(1)
    assert ids(c.pull()) == ["1"]
    assert free(u)
    assert put(u, "3", "4", unique=until) == ["3", "3"]
    c.settle(release=["1"])  # both wait: the first one has no key any more
    assert ids(u.join().pull()) == ["1", "3"]
    assert free(u)


def test_a_job_that_comes_back_before_another_one_came_has_its_key_again(u: QueueFixture) -> None:
    until = Unique(key="k", until="start")
    put(u, "1", unique=until)
    c = u.join()
    c.settle(release=c.pull())
    assert put(u, "2", unique=until) == ["1"]


def test_delivered_directly_it_has_started(u: QueueFixture) -> None:
    until = Unique(key="k", until="start")
    c = u.join(1)
    c.pull()
    assert u.put("1", unique=until).handed_to == c.name
    assert put(u, "2", unique=until) == ["2"]


def test_for_a_period(u: QueueFixture) -> None:
    hour = Unique(key="k", until=timedelta(hours=1))
    put(u, "1", unique=hour)
    c = u.join()
    c.ack(*c.pull())
    handle = u.put("2", unique=hour)
    assert (handle.id, handle.created, handle.conflict) == ("1", False, "done")
    move_time(u.queue, 3_599_000)
    assert put(u, "3", unique=hour) == ["1"]
    move_time(u.queue, 1001)
    assert put(u, "4", unique=hour) == ["4"]


def test_a_period_is_no_end_of_a_job_that_lives(u: QueueFixture) -> None:
    put(u, "1", unique=Unique(key="k", until="5s"))
    move_time(u.queue, 6000)
    u.renew()
    assert put(u, "2", unique=Unique(key="k", until="5s")) == ["1"]
    ack(u)
    assert free(u)


@one_kind
@pytest.mark.parametrize("way", ["reject", "cancel", "cancel held", "purge"])
def test_a_period_ends_with_a_job_that_was_not_done(u: QueueFixture, way: str) -> None:
    put(u, "1", unique=Unique(key="k", until="1h"))
    WAYS[way](u)
    assert free(u)


def test_periods_that_are_over_leave_nothing(u: QueueFixture) -> None:
    for number in range(70):
        put(u, f"{number}", unique=Unique(key=f"{number}", until="5s"))
    c = u.join()
    c.settle(ack=c.pull())
    assert len(u.look().keys["unique"]) == 70
    move_time(u.queue, 6000)
    u.renew()
    u.renew()
    assert free(u)


@every_place
def test_who_raises_has_stored_nothing(u: QueueFixture) -> None:
    put(u, "1")
    before = u.look()
    refused = Options(id="2", unique=Unique(key="k", on_conflict="raise"))
    with pytest.raises(DuplicateJob, match="which is ready: '1'") as caught:
        u.queue.send("t", options=refused)
    assert (caught.value.id, caught.value.state, caught.value.index) == ("1", "ready", 0)
    with pytest.raises(DuplicateJob) as caught:
        u.queue.enqueue_many([Call("t"), Call("t", options=refused), Call("t")])
    assert caught.value.index == 1
    assert u.look().keys == before.keys


@one_kind
def test_of_a_batch_the_first_one_is_stored(u: QueueFixture) -> None:
    put(u, "1")
    other = Unique(key="other")
    calls = [
        Call("t", options=Options(id=name, unique=unique))
        for name, unique in (("2", BY_NAME), ("3", None), ("4", other), ("5", other))
    ]
    handles = u.queue.enqueue_many(calls)
    assert [handle.id for handle in handles] == ["1", "3", "4", "4"]
    assert [handle.conflict for handle in handles] == ["ready", "", "", "ready"]
    assert [handle.created for handle in handles] == [False, True, True, False]
    assert ids(u.join().pull()) == ["1", "3", "4"]


@one_kind
def test_no_conflict_is_refused_for_lack_of_room_or_of_a_consumer(u: QueueFixture) -> None:
    put(u, "1")
    u.queue.configure(max_jobs=1)
    assert put(u, "2") == ["1"]
    assert put(u, "3", immediate=True) == ["1"]
    with pytest.raises(NoConsumer):
        u.queue.configure(max_jobs=0)
        u.put("4", unique=Unique(key="other"), immediate=True)


def test_groups_go_together_with_it(u: QueueFixture) -> None:
    for name in ("1", "2"):
        u.put(name, group="g", unique=Unique(key=name))
    assert u.put("3", group="g", unique=Unique(key="2")).conflict == "blocked"
    c = u.join(1)
    assert ids(c.pull()) == ["1"]
    assert ids(c.settle(ack=["1"], pull=True)) == ["2"]
    assert ids(u.put("4", unique=Unique(key="1")) and c.settle(ack=["2"], pull=True)) == ["4"]


@one_kind
def test_in_a_queue_with_groups_a_unique_job_needs_none(u: QueueFixture) -> None:
    u.put("1", group="g")
    put(u, "2")
    u.put("3")
    assert ids(u.join().pull()) == ["1", "2", "3"]


@one_kind
def test_selectors_and_levels_go_together_with_it(u: QueueFixture) -> None:
    u.queue.configure(kind="unique,selectors")
    put(u, "1", labels={"x": 1}, priority=9)
    assert put(u, "2") == ["1"]
    assert ids(u.join(select="x = 1").pull()) == ["1"]
    assert u.put("3", unique=BY_NAME).conflict == "held"


@one_kind
def test_a_transaction_answers_too(u: QueueFixture) -> None:
    put(u, "1")
    with u.queue.transaction() as t:
        first = t.enqueue(sync, 1)
        same = t.enqueue(sync, 1)
        other = t.send("t", options=Options(unique=BY_NAME))
    assert (first.created, same.id, same.conflict) == (True, first.id, "ready")
    assert (other.id, other.created, other.conflict) == ("1", False, "ready")
    with pytest.raises(DuplicateJob), u.queue.transaction() as t:
        t.send("t")
        t.send("t", options=Options(unique=Unique(key="k", on_conflict="raise")))
    assert u.queue.counts().ready == 2


@one_kind
def test_a_job_may_follow_itself(u: QueueFixture) -> None:
    """What a transaction settles for good has no key any more when its jobs are enqueued."""
    put(u, "1")
    c = u.queue.consumer(renew=False).register()
    (job,) = c.pull()
    with u.queue.transaction(c) as t:
        t.ack(job)
        t.send("t", options=Options(id="2", unique=BY_NAME))
    (job,) = c.pull()
    assert job.id == "2"
    with u.queue.transaction(c) as t:
        t.release(job)
        again = t.send("t", options=Options(id="3", unique=BY_NAME))
    assert again.id == "2"
    with pytest.raises(TransactionRolledBack), u.queue.transaction(c) as t:
        t.ack(job)
        t.send("t", options=Options(id="4", unique=Unique(key="other")))
    c.close()
    ack(u)
    assert free(u)


def test_a_dead_letter_that_lives_again_has_its_key(u: QueueFixture) -> None:
    put(u, "1")
    kill(u)
    assert u.requeue("1") == 1
    assert put(u, "2") == ["1"]


def test_a_dead_letter_stays_where_a_newer_one_has_its_key(u: QueueFixture) -> None:
    put(u, "1")
    kill(u)
    put(u, "2")
    assert u.requeue("1") == 0
    assert u.queue.job("1").state() is JobState.DEAD
    u.queue.cancel("2")
    assert u.requeue("1") == 1


def test_a_job_that_keeps_its_place_until_it_is_due_has_its_key(q: QueueFixture) -> None:
    held = q.put("1", unique=BY_NAME, hold=True, delay_ms=60_000)
    again = q.put("2", unique=BY_NAME)
    assert (held.created, again.id, again.conflict) == (True, "1", "scheduled")
    q.put("behind")
    c = q.join(1)
    move_time(q.queue, 61_000)
    assert ids(c.pull()) == ["1"]
    c.settle(ack=["1"])
    assert free(q)
    assert ids(c.pull()) == ["behind"]
