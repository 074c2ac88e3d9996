"""Groups: one job in flight for each group, in the order of positions, whatever happens to it."""

import json

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.errors import ConfigError, NoConsumer
from rqueue.inspector.jobs import jobs_page
from rqueue.protocol import commands
from rqueue.spark.jobs.pages import pages, plan
from rqueue.spark.patience import Reader
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, ids


@pytest.fixture
def g(q: QueueFixture) -> QueueFixture:
    """A queue of the kind."""
    q.queue.configure(kind="groups")
    return q


def put(g: QueueFixture, *names: str, **options: int) -> None:
    """Jobs named "<group><number>"; those of the group "-" have none."""
    for name in names:
        group = name[0] if name[0] != "-" else None
        g.put(name, group=group, **options)


def settle(c: Consumer, *acks: str) -> list[str]:
    return ids(c.settle(ack=acks, pull=True))


def state(g: QueueFixture, name: str) -> str:
    return execute(g.queue.redis, commands.show(g.queue.keys, name)).state


def empty(g: QueueFixture) -> None:
    """Nothing is left of any group."""
    keys = g.look().keys
    assert not {"groups", "heads", "blocked"} & keys.keys()
    assert [key for key in keys if key.startswith("group:")] == []
    assert keys["meta"].get(b"blocked", b"0") == b"0"


def test_one_of_each_group_is_delivered(g: QueueFixture) -> None:
    """Q-65, X-14, X-15: the next ones wait for it; other groups, and jobs without one, go on."""
    put(g, "a1", "a2", "b1", "-1", "a3", "-2", "b2")
    c = g.join()
    assert ids(c.pull()) == ["a1", "b1", "-1", "-2"]
    assert ids(c.pull()) == []
    assert settle(c, "b1") == ["b2"]
    assert settle(c, "-1", "-2") == []
    assert settle(c, "a1") == ["a2"]
    assert settle(c, "a2", "b2") == ["a3"]
    assert settle(c, "a3") == []
    empty(g)


def test_strict_order_over_lists_and_groups(g: QueueFixture) -> None:
    """Q-01: what is taken is the oldest that may be taken."""
    put(g, "a1", "-1", "a2", "-2", "b1", "-3", "a3", "-4")
    c = g.join(2)
    assert ids(c.pull()) == ["a1", "-1"]
    assert settle(c, "a1", "-1") == ["a2", "-2"]
    assert settle(c, "a2", "-2") == ["b1", "-3"]
    assert settle(c, "b1", "-3") == ["a3", "-4"]
    assert settle(c, "a3", "-4") == []
    empty(g)


def test_levels_go_before_positions_and_positions_within_a_group(g: QueueFixture) -> None:
    """Q-10: a group's next job stands at its own level; one of a higher level does not pass it."""
    put(g, "a1", "-1")
    put(g, "a2", "b1", "-2", priority=9)
    c = g.join(1)
    assert ids(c.pull()) == ["b1"]
    assert settle(c, "b1") == ["-2"]
    assert settle(c, "-2") == ["a1"]
    assert settle(c, "a1") == ["a2"]
    assert settle(c, "a2") == ["-1"]
    assert settle(c, "-1") == []
    empty(g)


@pytest.mark.parametrize("outcome", ["release", "retry"])
def test_a_job_that_comes_back_keeps_its_turn(g: QueueFixture, outcome: str) -> None:
    """Q-03, X-05."""
    put(g, "a1", "a2", "-1")
    c = g.join(1)
    (job,) = c.pull()
    if outcome == "release":
        c.settle(release=[job])
    else:
        c.retry(job)
    assert ids(c.pull()) == ["a1"]
    assert settle(c, "a1") == ["a2"]


def test_a_group_waits_with_its_delayed_job(g: QueueFixture) -> None:
    """X-23: a retry with delay holds the group up, and nobody else."""
    put(g, "a1", "a2", "b1")
    c = g.join()
    assert ids(c.pull()) == ["a1", "b1"]
    c.retry("a1", delay=5.0)
    assert (state(g, "a1"), state(g, "a2")) == ("scheduled", "blocked")
    assert ids(c.pull()) == []
    move_time(g.queue, 5001)
    assert ids(c.pull()) == ["a1"]
    assert settle(c, "a1") == ["a2"]


def test_a_job_at_the_tail_lets_its_group_pass(g: QueueFixture) -> None:
    put(g, "a1", "a2", "a3")
    c = g.join(1)
    assert ids(c.pull()) == ["a1"]
    c.retry("a1", place="tail")
    assert ids(c.pull()) == ["a2"]
    assert settle(c, "a2") == ["a3"]
    assert settle(c, "a3") == ["a1"]
    assert settle(c, "a1") == []
    empty(g)


def test_a_dead_letter_gives_its_turn_away_and_comes_back_last(g: QueueFixture) -> None:
    put(g, "a1", "a2", "a3")
    c = g.join(1)
    c.pull()
    c.reject("a1", "no")
    assert ids(c.pull()) == ["a2"]
    assert g.requeue("a1") == 1
    assert state(g, "a1") == "blocked"
    assert settle(c, "a2") == ["a3"]
    assert settle(c, "a3") == ["a1"]


def test_a_delayed_job_joins_its_group_when_it_is_due(g: QueueFixture) -> None:
    """By its position: before what was enqueued after it, behind what is in flight, and although
    nobody looked at the schedule meanwhile."""
    put(g, "a0", delay_ms=1000)
    put(g, "a1", "a2")
    c = g.join(1)
    assert ids(c.pull()) == ["a1"]
    move_time(g.queue, 1001)
    assert settle(c, "a1") == ["a0"]
    put(g, "a3")
    assert settle(c, "a0") == ["a2"]
    assert settle(c, "a2") == ["a3"]


@pytest.mark.parametrize("how", ["unregister", "reclaim", "lease"])
def test_what_a_consumer_leaves_keeps_its_turn(g: QueueFixture, how: str) -> None:
    """X-23, Q-58."""
    put(g, "a1", "a2", "b1")
    c = g.join(lease=10)
    assert ids(c.pull()) == ["a1", "b1"]
    if how == "unregister":
        c.close()
    elif how == "reclaim":
        call = commands.reclaim(
            g.queue.keys, c.name, json.dumps({"kind": "crash"}).encode(), [commands.Ran("a1")]
        )
        execute(g.queue.redis, call)
    else:
        move_time(g.queue, 10_001)
        g.renew()
    other = g.join()
    assert ids(other.pull()) == ["a1", "b1"]
    assert settle(other, "a1") == ["a2"]


def test_who_waits_is_notified_of_the_next_of_a_group(g: QueueFixture) -> None:
    """Q-37: and no consumer of what must wait."""
    put(g, "a1")
    first, second = g.join(1), g.join(1)
    assert ids(first.pull()) == ["a1"]
    assert second.pull() == []
    put(g, "a2")
    assert g.unread(second) == []
    first.ack("a1")
    assert g.unread(second) == [b"w"] or g.unread(first) == [b"w"]
    assert ids(second.pull() or first.pull()) == ["a2"]


def test_a_job_of_a_free_group_is_delivered_directly(g: QueueFixture) -> None:
    """X-01."""
    c = g.join()
    assert c.pull() == []
    assert g.put("a1", group="a").handed_to == c.name
    assert g.put("a2", group="a").handed_to == ""
    with pytest.raises(NoConsumer):
        g.put("a3", group="a", immediate=True)
    assert state(g, "a2") == "blocked"
    assert ids(c.pull()) == ["a1"]
    assert settle(c, "a1") == ["a2"]


@pytest.mark.parametrize("where", ["ready", "blocked", "scheduled", "held"])
def test_a_cancelled_job_frees_its_group(g: QueueFixture, where: str) -> None:
    put(g, "a1", "a2", "a3")
    c = g.join(1)
    victim = "a2" if where == "blocked" else "a1"
    if where in ("scheduled", "held"):
        c.pull()
    if where == "scheduled":
        c.retry("a1", delay=60.0)
    was = execute(g.queue.redis, commands.cancel(g.queue.keys, victim))
    assert was == where
    if where == "blocked":
        assert ids(c.pull()) == ["a1"]
        assert settle(c, "a1") == ["a3"]
    else:
        other = g.join(1)
        assert ids(other.pull()) == ["a2"]
        assert settle(other, "a2") == ["a3"]


def test_a_purge_ends_all_of_a_group(g: QueueFixture) -> None:
    put(g, "a1", "a2", "a3", "b1", "-1", "c1", "c2")
    put(g, "d1", "d2", delay_ms=1000)
    c = g.join(1)
    c.pull()
    assert g.purge() == 8
    assert state(g, "a1") == "held"
    assert settle(c, "a1") == []
    empty(g)


def test_jobs_that_someone_holds_are_purged_and_their_groups_go_on(g: QueueFixture) -> None:
    put(g, "a1", "a2", "b1")
    c = g.join()
    c.pull()
    assert g.purge_held(c, "a1", "b1") == (2, [])
    other = g.join()
    assert ids(other.pull()) == ["a2"]


def test_bytes_that_do_not_suffice_leave_a_head_where_it_is(g: QueueFixture) -> None:
    g.put("a1", group="a", padding=50)
    g.put("b1", group="b", padding=400)
    c = g.join(10, bytes=300)
    assert ids(c.pull()) == ["a1"]
    assert settle(c, "a1") == ["b1"]


def test_counts_and_pages(g: QueueFixture) -> None:
    put(g, "a1", "a2", "a3", "-1", "b1", "b2")
    put(g, "c1", priority=9)
    counts = execute(g.queue.redis, commands.counts(g.queue.keys))
    assert (counts.ready, counts.blocked) == (4, 3)
    assert counts.levels == {9: 1, 4: 3}
    for limit in (1, 2, 3, 100):
        cursor, seen, blocked = "", [], 0
        for _ in range(20):
            page = execute(g.queue.redis, commands.browse(g.queue.keys, cursor, limit))
            seen += ids(page.jobs)
            blocked += page.blocked
            cursor = page.cursor
        assert sorted(seen) == ["-1", "a1", "a2", "a3", "b1", "b2", "c1"], limit
        assert blocked == 3
    behind = jobs_page(g.queue.redis, g.queue.keys, "blocked", "", 2)
    assert [(job.id, job.group) for job in behind.jobs] == [("a2", "a"), ("a3", "a")]
    rest = jobs_page(g.queue.redis, g.queue.keys, "blocked", behind.next, 2)
    assert ([job.id for job in rest.jobs], rest.next) == (["b2"], "")
    ready = jobs_page(g.queue.redis, g.queue.keys, "ready", "", 3)
    more = jobs_page(g.queue.redis, g.queue.keys, "ready", ready.next, 3)
    assert sorted(job.id for job in ready.jobs + more.jobs) == ["-1", "a1", "b1", "c1"]
    reader = Reader(g.queue.redis)
    parts = plan(reader, g.queue.keys, {"ready", "blocked"}, None, 100)
    found = [
        (one.state, one.job.id)
        for part in parts
        for page in pages(reader, g.queue.keys, part, {"ready", "blocked"}, 2)
        for one in page
    ]
    waiting = [("blocked", id) for id in ("a2", "a3", "b2")]
    assert sorted(found) == [*waiting, *[("ready", id) for id in ("-1", "a1", "b1", "c1")]]
    g.join(10).pull()
    assert state(g, "a2") == "blocked"


def test_names_of_groups_may_be_anything_that_is_printable(g: QueueFixture) -> None:
    names = ["", "ä,ö;|:%{}.~", "x" * 128, "日本"]
    for number, name in enumerate(names[1:]):
        for turn in range(2):
            g.put(f"{number}-{turn}", group=name)
    c = g.join()
    jobs = c.pull()
    assert ids(jobs) == ["0-0", "1-0", "2-0"]
    assert [job.group for job in jobs] == names[1:]
    with pytest.raises(ValueError, match="group"):
        g.put("z", group="x" * 129)
    with pytest.raises(ValueError, match="group"):
        g.put("z", group="")


def test_a_queue_takes_groups_on_with_the_first_job_that_has_one(q: QueueFixture) -> None:
    q.put("1")
    c = q.join()
    assert ids(c.pull()) == ["1"]
    q.put("a1", "a2", group="a")
    assert q.look().meta["v"] == "1 groups levels"
    c.settle(ack=["1"])
    assert ids(c.pull()) == ["a1"]
    assert settle(c, "a1") == ["a2"]


@pytest.mark.parametrize("first", ["ttl", "groups"])
def test_a_queue_takes_on_groups_and_a_time_to_live(q: QueueFixture, first: str) -> None:
    timed = [commands.Put("t", b'["t"]', ttl_ms=60_000)]
    if first == "ttl":
        q.queue.enqueue_puts(timed)
    q.put("a1", "a2", group="a")
    if first == "groups":
        q.queue.enqueue_puts(timed)
    c = q.join()
    assert sorted(ids(c.pull())) == ["a1", "t"]
    assert settle(c, "a1", "t") == ["a2"]


def test_a_queue_becomes_one_of_the_kind_while_it_is_in_use(q: QueueFixture) -> None:
    q.put("1", "2")
    c = q.join(1)
    assert ids(c.pull()) == ["1"]
    q.queue.configure(kind="groups")
    q.put("a1", "a2", group="a")
    assert settle(c, "1") == ["2"]
    assert settle(c, "2") == ["a1"]
    with pytest.raises(ConfigError, match="has jobs"):
        q.queue.configure(kind="plain")
    assert settle(c, "a1") == ["a2"]
    assert settle(c, "a2") == []
    q.queue.configure(kind="plain")
    q.put("3")
    assert ids(c.pull()) == ["3"]


def test_history_knows_the_group(g: QueueFixture) -> None:
    put(g, "a1", "a2", "-1")
    c = g.join(1)
    c.pull()
    settle(c, "a1")
    execute(g.queue.redis, commands.cancel(g.queue.keys, "-1"))
    g.purge_held(c, "a2")
    rows = [(row["id"], row["group"], row["outcome"]) for row in g.look().history]
    assert rows == [("a1", "a", "ack"), ("-1", "", "cancelled"), ("a2", "a", "purged")]


def test_many_of_many_groups_come_in_order(g: QueueFixture) -> None:
    """Each group's jobs in the order of their enqueue, one at a time, by several consumers."""
    for number in range(120):
        put(g, f"{'abcdefg'[number * number % 7]}{number:03}")
    consumers = [g.join(3), g.join(2), g.join(5)]
    held: dict[str, list[str]] = {c.name: ids(c.pull()) for c in consumers}
    done: list[str] = []
    while any(held.values()):
        flying = [id[0] for some in held.values() for id in some]
        assert len(flying) == len(set(flying))
        for c in consumers:
            acks, held[c.name] = held[c.name][:1], held[c.name][1:]
            held[c.name] += ids(c.settle(ack=acks, pull=True)) if acks else []
            held[c.name] += ids(c.pull())
            done += acks
    assert len(done) == 120
    for group in "abcdefg":
        mine = [id for id in done if id[0] == group]
        assert mine == sorted(mine)
    empty(g)


@pytest.mark.parametrize("expired", ["end", "dead"])
def test_a_job_that_expires_gives_the_turn_to_the_next_one(g: QueueFixture, expired: str) -> None:
    """Q-62, Q-65: whether a consumer meets it or it is swept; behind others, in its place."""
    g.queue.configure(expired=expired)
    put(g, "a1", "b1", ttl=1)
    put(g, "a2")
    put(g, "a3", ttl=1)
    put(g, "a4", "b2")
    move_time(g.queue, 2_000)
    c = g.join()
    assert ids(c.pull()) == ["a2", "b2"]
    assert settle(c, "a2", "b2") == ["a4"]
    is_now = "dead" if expired == "dead" else "ended"
    assert [state(g, name) for name in ("a1", "a3", "b1")] == [is_now] * 3
    assert settle(c, "a4") == []
    empty(g)
