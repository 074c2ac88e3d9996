"""Shares: those that have ready jobs take turns, by weight, whatever the others have waiting."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rqueue.client._sync.consumer import Consumer
from rqueue.errors import ConfigError
from rqueue.inspector.jobs import all_jobs, jobs_page
from rqueue.model.job_limit import JobLimit
from rqueue.protocol import commands
from rqueue.protocol.commands import Put
from rqueue.protocol.settling import retried
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.history import plain_rows
from tests.support.queue_fixture import QueueFixture, every_place, ids, one_kind


def put(q: QueueFixture, *names: str, **options: Any) -> None:
    """Jobs named "<share><number>"; those of "-" are of no share."""
    for name in names:
        q.put(name, share=None if name[0] == "-" else name[0], **options)


def fill(q: QueueFixture, share: str, count: int) -> None:
    """So many jobs of a share, in few steps."""
    names = [f"{share}{number}" for number in range(count)]
    for at in range(0, count, 1000):
        puts = [Put(name, b'["t"]', share=share) for name in names[at : at + 1000]]
        execute(q.queue.redis, commands.enqueue(q.queue.keys, puts))


def state(q: QueueFixture, name: str) -> tuple[str, int]:
    shown = execute(q.queue.redis, commands.show(q.queue.keys, name))
    return shown.state, shown.place


def taken(c: Consumer, count: int) -> list[str]:
    """So many jobs, each acked before the next pull."""
    found: list[str] = []
    while len(found) < count and (got := ids(c.pull())):
        c.settle(ack=got)
        found += got
    return found


def empty(q: QueueFixture) -> None:
    """Nothing is left of any share."""
    keys = q.look().keys
    assert not {"strands", "lined", "turns", "heads", "blocked"} & keys.keys()
    assert [key for key in keys if key.startswith(("group:", "served:"))] == []
    assert keys["meta"].get(b"blocked", b"0") == b"0"


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_shares_take_turns(q: QueueFixture, batch: int) -> None:
    put(q, "a1", "a2", "a3", "a4", "b1", "b2", "c1")
    c = q.join(jobs=batch)
    assert taken(c, 7) == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]
    empty(q)


@every_place
def test_what_stands_behind_others_of_its_share_is_ready(q: QueueFixture) -> None:
    put(q, "a1", "a2", "a3", "b1")
    found = [state(q, name) for name in ("a1", "a2", "a3", "b1")]
    assert found == [("ready", 0), ("ready", 1), ("ready", 2), ("ready", 0)]
    counts = q.queue.counts()
    assert (counts.ready, counts.blocked) == (4, 0)


def test_jobs_of_no_share_are_one_share_among_the_others(q: QueueFixture) -> None:
    put(q, "-1", "-2", "-3", "a1", "a2", "a3")
    found = taken(q.join(jobs=1), 6)
    assert [sorted(found[at : at + 2]) for at in (0, 2, 4)] == [
        ["-1", "a1"],
        ["-2", "a2"],
        ["-3", "a3"],
    ]
    empty(q)


def test_a_job_keeps_its_place_in_its_share(q: QueueFixture) -> None:
    put(q, "a1", "a2", "a3", "b1", "b2")
    c = q.join(jobs=3)
    assert ids(c.pull()) == ["a1", "b1", "a2"]
    c.settle(ack=["b1"], release=["a2"], retry=[retried("a1", 0, {}, "", True)])
    assert taken(c, 5) == ["a1", "b2", "a2", "a3"]
    empty(q)


def test_a_job_that_waited_for_its_time_goes_first_in_its_share(q: QueueFixture) -> None:
    put(q, "a9", delay_ms=1000)
    put(q, "a1", "a2", "b1")
    move_time(q.queue, 1000)
    assert taken(q.join(jobs=1), 4) == ["a9", "b1", "a1", "a2"]


def test_levels_go_before_turns(q: QueueFixture) -> None:
    put(q, "a1", "b1")
    put(q, "a2", "a3", "b2", priority=9)
    assert taken(q.join(jobs=1), 5) == ["a2", "b2", "a3", "a1", "b1"]
    empty(q)


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_weights_hold_within_one_job(q: QueueFixture, batch: int) -> None:
    """At each moment there is a number of rounds of which every share has had its part, or one job
    more; and after each round the parts are exact."""
    weights = {"a": 1, "b": 2, "c": 3, "d": 7}
    for share, weight in weights.items():
        q.queue.shares.set(share, weight)
        fill(q, share, 150)
    found, total = taken(q.join(jobs=batch), 170), sum(weights.values())
    got: Counter[str] = Counter()
    for count, name in enumerate(found, 1):
        got[name[0]] += 1
        most = max((got[share] - 1) / weight for share, weight in weights.items())
        assert most <= min(got[share] / weight for share, weight in weights.items()), got
        if count % total == 0:
            assert got == {share: count // total * weight for share, weight in weights.items()}


def test_a_weight_counts_from_the_next_delivery_on(q: QueueFixture) -> None:
    fill(q, "a", 50)
    fill(q, "b", 50)
    c = q.join(jobs=1)
    assert Counter(name[0] for name in taken(c, 10)) == {"a": 5, "b": 5}
    assert not q.queue.shares.set("a", 4)
    found = Counter(name[0] for name in taken(c, 25))
    assert abs(found["a"] - 20) <= 1
    assert q.queue.shares.reset("a")
    assert not q.queue.shares.reset("a")
    q.queue.shares.set("*", 4)
    infos = {info.name: info for info in q.queue.shares.list()}
    assert (infos["a"].weight, infos["a"].own, infos["b"].weight) == (4, False, 4)
    assert infos["a"].ready + infos["b"].ready == 65
    with pytest.raises(ConfigError):
        q.queue.shares.set("a", 0)


def test_a_share_that_was_idle_has_saved_nothing_up(q: QueueFixture) -> None:
    fill(q, "a", 100)
    put(q, "b1")
    c = q.join(jobs=1)
    taken(c, 60)
    put(q, *(f"b{number}" for number in range(10, 30)))
    assert Counter(name[0] for name in taken(c, 20)) == {"a": 10, "b": 10}


def test_a_share_that_comes_again_and_again_gets_no_more_than_its_part(q: QueueFixture) -> None:
    """It has never more than one job, so that each one is its last."""
    fill(q, "a", 100)
    put(q, "b0")
    c, found = q.join(jobs=1), Counter[str]()
    for number in range(1, 41):
        (name,) = taken(c, 1)
        found[name[0]] += 1
        if name[0] == "b":
            put(q, f"b{number}")
    assert found == {"a": 20, "b": 20}


def waits(q: QueueFixture, c: Consumer, prefix: str) -> list[int]:
    """Of 99 shares with five jobs each: behind how many pulls each job is delivered."""
    for number in range(5):
        puts = [
            Put(f"{prefix}{share}.{number}", b'["t"]', share=f"s{share}") for share in range(99)
        ]
        execute(q.queue.redis, commands.enqueue(q.queue.keys, puts))
    found, pulls = [], 0
    while len(found) < 495 and (name := taken(c, 1)):
        pulls += 1
        if name[0].startswith(prefix):
            found.append(pulls)
    return found


@one_kind
def test_who_has_much_waiting_does_not_make_others_wait(q: QueueFixture) -> None:
    """In pulls, not in time: 95 of a hundred jobs of small shares wait 1.1 times as long as alone,
    at the most."""
    c = q.join(jobs=1)
    alone = waits(q, c, "x")
    fill(q, "big", 5_000)
    beside = waits(q, c, "y")
    assert len(alone) == len(beside) == 495
    assert beside[470] <= 1.1 * alone[470]
    assert beside[-1] <= 1.1 * alone[-1]


def test_a_job_that_leaves_leaves_its_turn_to_the_next(q: QueueFixture) -> None:
    put(q, "a1", "a2", "a3", "b1")
    put(q, "c1", ttl=1)
    put(q, "c2")
    assert q.queue.cancel("a1")
    assert q.queue.cancel("a3")
    move_time(q.queue, 1500)
    c = q.join(jobs=1)
    assert sorted(taken(c, 9)) == ["a2", "b1", "c2"]
    c.close()
    put(q, "a4", "a5", "b2")
    assert q.purge() == 3
    empty(q)
    put(q, "a6")
    assert q.queue.cancel("a6")
    empty(q)
    put(q, "a7")
    assert taken(q.join(jobs=1), 2) == ["a7"]


def test_a_lone_job_is_delivered_directly(q: QueueFixture) -> None:
    put(q, "a1")
    c = q.join(jobs=1)
    assert taken(c, 1) == ["a1"]
    assert ids(c.pull()) == []
    put(q, "b1")
    assert q.look().held[c.name] == ["b1"]
    empty(q)


def test_limits_keep_jobs_out_of_turns_until_they_have_permits(q: QueueFixture) -> None:
    for name in ("a1", "a2", "a3", "b1", "b2", "-1"):
        share = None if name[0] == "-" else name[0]
        q.put(name, share=share, limit=JobLimit("crm", 1, name[0]))
    c = q.join()
    assert sorted(ids(c.pull())) == ["-1", "a1", "b1"]
    assert state(q, "a2")[0] == "blocked"
    assert ids(c.settle(ack=["a1"], pull=True)) == ["a2"]
    assert sorted(ids(c.settle(ack=["b1", "a2", "-1"], pull=True))) == ["a3", "b2"]
    c.settle(ack=["a3", "b2"])
    empty(q)


@every_place
@pytest.mark.parametrize("option", [{"group": "g"}, {"key": "k"}, {"sort_key": 1}, {"front": True}])
def test_what_orders_jobs_otherwise_is_refused(q: QueueFixture, option: dict[str, Any]) -> None:
    put(q, "a1")
    with pytest.raises(ConfigError):
        q.put("x", **option)


def test_a_browser_sees_all_jobs_once_and_those_of_shares_are_ready(q: QueueFixture) -> None:
    put(q, "-1", "a1", "a2", "a3", "b1", "b2", "-2")
    put(q, *(f"c{number}" for number in range(9)), delay_ms=500)
    move_time(q.queue, 500)
    c = q.join(jobs=1)
    assert len(taken(c, 1)) == 1
    c.close()
    listed = q.listed()
    assert len(listed) == len({*listed}) == 15
    for state_, expected in (("ready", 15), ("blocked", 0)):
        jobs = [*all_jobs(q.queue.redis, q.queue.keys, state_)]
        assert len(jobs) == len({job.id for job in jobs}) == expected
        pages, after = [], ""
        while (page := jobs_page(q.queue.redis, q.queue.keys, state_, after, 4)).jobs:
            pages += [job.id for job in page.jobs]
            after = page.next
            if not after:
                break
        assert len(pages) == len({*pages}) == expected


def test_what_comes_back_unstarted_is_not_paid_for(q: QueueFixture) -> None:
    """A worker that gives prefetched jobs back does not cost their share its turns; one whose job
    failed has had it."""
    put(q, "a1", "a2", "a3", "a4", "b1", "b2", "b3", "b4")
    holder, other = q.join(jobs=4), q.join(jobs=1)
    assert ids(holder.pull()) == ["a1", "b1", "a2", "b2"]
    assert taken(other, 1) == ["a3"]
    holder.settle(release=["a1", "a2"], retry=[retried("b1", 0, {}, "", True)])
    # b has had two turns, one of them for an attempt that failed, and a only that of a3; where both
    # have had as many the older job goes first
    assert taken(other, 4) == ["a1", "a2", "b1", "a4"]


@pytest.mark.parametrize("way", ["cancelled", "done"])
def test_history_names_the_share(q: QueueFixture, way: str) -> None:
    put(q, "a1", "-1")
    if way == "cancelled":
        for name in ("a1", "-1"):
            q.queue.cancel(name)
    else:
        c = q.join(jobs=2)
        c.settle(done=[(job, None) for job in c.pull()])
    rows = plain_rows(q.queue.redis, q.queue.keys)
    assert {row["id"]: row["share"] for row in rows} == {"a1": "a", "-1": ""}


@pytest.mark.parametrize("how", ["expire", "cancel", "cancel_all"])
def test_a_level_is_at_rest_when_people_take_the_last_job(q: QueueFixture, how: str) -> None:
    put(q, "b1", "-1")
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["b1"]
    consumer.settle(ack=["b1"])
    match how:
        case "expire":
            execute(q.queue.redis, commands.expire(q.queue.keys, ["-1"]))
        case "cancel":
            q.queue.cancel("-1")
        case _:
            q.queue.cancel_all()
    empty(q)
