"""Selectors: consumers take the jobs whose labels they select, in order, notified of those."""

import pytest

from rqueue.errors import ConfigError, InvalidSelector, NoConsumer
from rqueue.inspector.jobs import jobs_page
from rqueue.protocol import commands
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, every_place, ids


@pytest.fixture
def s(q: QueueFixture) -> QueueFixture:
    """A queue of the kind."""
    q.queue.configure(kind="selectors")
    return q


def put(s: QueueFixture, *names: str, **options: int) -> None:
    """Jobs named "<x><number>", with the label x; those of "-" have no label."""
    for name in names:
        labels = {} if name[0] == "-" else {"x": name[0]}
        s.put(name, labels=labels, **options)


def test_each_takes_what_it_selects_in_order(s: QueueFixture) -> None:
    """Q-22: the oldest of all classes that match; a consumer without a selector takes all."""
    put(s, "a1", "b1", "a2", "c1", "-1", "b2")
    both = s.join(select="x in ('a', 'b')")
    assert ids(both.pull()) == ["a1", "b1", "a2", "b2"]
    assert ids(s.join(select="x = 'd'").pull()) == []
    assert ids(s.join(select="x is null").pull()) == ["-1"]
    assert ids(s.join().pull()) == ["c1"]


def test_windows_of_one_take_turns_over_classes(s: QueueFixture) -> None:
    put(s, "a1", "b1", "a2", "b2", "-1")
    put(s, "b3", priority=9)
    c = s.join(1)
    order = ids(c.pull())
    while got := ids(c.settle(ack=order[-1:], pull=True)):
        order += got
    assert order == ["b3", "a1", "b1", "a2", "b2", "-1"]


def test_unknown_is_no_match(s: QueueFixture) -> None:
    """Three values: a label that is not there, and one of another type, make nothing true."""
    s.put("none")
    s.put("text", labels={"version": "42"})
    s.put("flag", labels={"version": True})
    s.put("number", labels={"version": 42})
    assert ids(s.join(select="version >= 42").pull()) == ["number"]
    assert ids(s.join(select="not (version >= 42)").pull()) == []
    assert ids(s.join(select="version").pull()) == ["flag"]
    assert ids(s.join(select="version is null or version = '42'").pull()) == ["none", "text"]


def test_one_arrival_wakes_one_consumer_that_takes_it(s: QueueFixture) -> None:
    """Q-37: the one that waits longest among those that select it, and no other."""
    put(s, "z0")  # it waits: a consumer that takes all would be notified, the others are not
    b, a, other = (s.join(1, select=f"x = '{x}'") for x in ("b", "a", "a"))
    put(s, "a1", "a2", "b1")
    woken = [len(s.unread(c)) for c in (b, a, other)]
    assert woken == [1, 1, 1]
    put(s, "a3", "b2", "-1")
    assert [len(s.unread(c)) for c in (b, a, other)] == woken
    assert [ids(c.pull()) for c in (other, a, b)] == [["a2"], ["a1"], ["b1"]]


def test_a_job_goes_straight_to_who_selects_it(s: QueueFixture) -> None:
    """Also where it is the first one of its class, and others have a backlog."""
    put(s, "z1", "z2")
    b, a = s.join(select="x = 'b'"), s.join(select="x = 'a'")
    put(s, "a1")
    assert [word[:1] for word in s.unread(a)] == [b"J"]
    assert s.state(b) == "interested"
    with pytest.raises(NoConsumer):
        s.put("c1", labels={"x": "c"}, immediate=True)
    s.put("b1", labels={"x": "b"}, immediate=True)
    assert [word[:1] for word in s.unread(b)] == [b"J"]


def test_a_backlog_of_others_is_not_in_the_way(s: QueueFixture) -> None:
    """QPR-11: nothing is scanned, and nobody is woken for what it does not select."""
    put(s, *(f"a{n}" for n in range(30)))
    c = s.join(select="x = 'b'")
    assert (s.state(c), ids(c.pull())) == ("interested", [])
    put(s, "b1", priority=9)
    assert s.state(c) != "interested"


def test_work_is_passed_on_to_those_who_take_it(s: QueueFixture) -> None:
    """Q-39, Q-42: a notified consumer leaves; another one that selects the same is notified."""
    one, b, two = (s.join(1, select=f"x = '{x}'") for x in "aba")
    put(s, "a1", "a2")
    held = s.look().held
    assert held == {one.name: ["a1"], two.name: ["a2"]}
    put(s, "a3")
    one.close()
    assert s.state(b) == "interested"
    three = s.join(1, select="x = 'a'")
    assert s.state(three) == "notified"
    assert ids(three.pull()) == ["a1"]


def test_who_leaves_passes_each_of_its_classes_on(s: QueueFixture) -> None:
    both = s.join(select="x in ('a', 'b')")
    put(s, "a1", "b1")
    both.pull()
    a, b, c = (s.join(select=f"x = '{x}'") for x in "abc")
    assert [s.state(one) for one in (a, b, c)] == ["interested"] * 3
    both.close()
    assert [s.state(one) for one in (a, b, c)] == ["notified", "notified", "interested"]


def test_what_is_due_goes_to_who_selects_it(s: QueueFixture) -> None:
    """The one that watches the schedule makes it ready, and tells who selects it."""
    put(s, "b1", "b2", delay_ms=1000)
    watcher = s.join(select="x = 'a'")
    b = s.join(select="x = 'b'")
    assert ids(watcher.pull()) == []
    assert watcher.timer_ms >= 0
    assert ids(b.pull()) == []
    assert b.timer_ms == -1
    move_time(s.queue, 2000)
    assert ids(watcher.pull()) == []
    assert s.state(b) == "notified"
    assert ids(b.pull()) == ["b1", "b2"]


def test_released_and_retried_jobs_come_back_to_their_class(s: QueueFixture) -> None:
    put(s, "a1", "b1", "a2")
    c = s.join(select="x = 'a'")
    assert ids(c.pull()) == ["a1", "a2"]
    c.release("a1")
    c.retry("a2")
    assert ids(c.pull()) == ["a1", "a2"]
    assert ids(s.join().pull()) == ["b1"]


@every_place
def test_cancel_purge_browse_show_and_counts_know_classes(s: QueueFixture) -> None:
    put(s, "a1", "b1", "a2", "-1", "b2")
    show = execute(s.queue.redis, commands.show(s.queue.keys, "a2"))
    assert (show.state, show.place) == ("ready", 1)
    assert s.queue.job("b1").cancel()
    assert [row.id for row in jobs_page(s.queue.redis, s.queue.keys, "ready").jobs] == [
        "a1",
        "a2",
        "-1",
        "b2",
    ]
    assert s.queue.counts().ready == 4
    assert s.purge() == 4
    assert not [key for key in s.look().keys if key.startswith("class:")]


@every_place
def test_a_bad_selector_registers_nothing(q: QueueFixture) -> None:
    """Q-22: an error at once, that says where it is wrong."""
    with pytest.raises(InvalidSelector, match="column 12: a label or a value is expected") as error:
        q.queue.consumer(select="version >= and gpu")
    assert (error.value.column, error.value.text) == (12, "version >= and gpu")
    assert q.look().keys == {}


def test_a_queue_takes_selectors_on_with_the_first_one(q: QueueFixture) -> None:
    """What was enqueued before has labels that are not known: only who selects nothing takes it."""
    waits = q.join()
    q.put("old", labels={"gpu": True})
    q.put("older", labels={"gpu": True})
    waits.pull()
    gpu = q.join(select="gpu")
    other = q.join(select="not gpu")
    waits.release("old")
    assert [ids(c.pull()) for c in (gpu, other, waits)] == [[], [], ["old"]]
    q.put("new", labels={"gpu": True})
    assert ids(gpu.pull()) == ["new"] or gpu.held or q.look().held[waits.name][-1] == "new"


def test_too_many_sets_of_labels_are_refused(s: QueueFixture) -> None:
    for n in range(64):
        s.put(f"j{n}", labels={"user": n})
    with pytest.raises(ConfigError, match=r"64 different sets of labels .* labels are for"):
        s.put("more", labels={"user": 64})
    s.put("known", labels={"user": 3})
    c = s.join(select="user = 7")
    assert ids(c.pull()) == ["j7"]
    s.put("more", labels={"user": 64})  # nothing of class 7 waits: its place is free
    assert ids(s.join(select="user = 64").pull()) == ["more"]
    c.release("j7")  # and there is none for it: who selects nothing takes it
    assert "j7" in ids(s.join().pull())


def test_too_many_selectors_are_refused(s: QueueFixture) -> None:
    consumers = [s.queue.consumer(select=f"a = {n}", renew=False).register() for n in range(64)]
    with pytest.raises(ConfigError, match="64 different selectors"):
        s.join(select="a = 64")
    consumers[0].close()
    consumers[0] = s.join(select="a = 64")
    s.put("j", labels={"a": 64})
    assert ids(consumers[0].pull()) == ["j"] or consumers[0].held == 1
    for c in consumers:
        c.close()


@every_place
def test_a_label_too_large_to_compare_is_refused(s: QueueFixture) -> None:
    with pytest.raises(ConfigError, match=r"up to 2\^53"):
        s.put("j", labels={"n": 2**53 + 1})
    with pytest.raises(ConfigError, match="at most 384"):
        s.put("j", labels={"n": "x" * 400})


@every_place
def test_other_policies_are_refused(s: QueueFixture) -> None:
    with pytest.raises(ConfigError, match="not both"):
        s.put("j", group="g")


def test_a_queue_is_plain_again(s: QueueFixture) -> None:
    """Once it has no jobs; and what it knew of classes is gone."""
    c = s.join(select="x = 'a'")
    put(s, "a1")
    with pytest.raises(ConfigError, match="has jobs"):
        s.queue.configure(kind="plain")
    c.pull()
    assert c.ack("a1")
    s.queue.configure(kind="plain")
    kept = s.look().keys
    assert kept["meta"][b"v"] == b"1"
    assert not {"classes", "audiences", "hears", "interested:1"} & kept.keys()


def test_a_queue_that_was_made_anew_is_what_its_first_job_makes_it(s: QueueFixture) -> None:
    """What this process knew of the queue before is no reason to be of that kind, or to refuse."""
    put(s, "a1")
    s.queue.redis.flushdb()
    put(s, "a1")
    assert s.look().meta["v"] == "1"
    s.queue.redis.flushdb()
    s.join(select="x = 'a'").close()
    s.queue.redis.flushdb()
    s.put("g1", group="g")
    assert s.look().meta["v"] == "1 groups levels"


def test_a_browser_that_begins_at_the_tail_is_shown_what_comes(s: QueueFixture) -> None:
    """Q-27: of all classes."""
    put(s, "a1", "b1", "a2", "-1", "b2")
    put(s, "c1", priority=0)
    tail = s.join(10, mode="browse", start="tail")
    assert tail.pull() == []
    put(s, "a3", "b3", priority=0)
    assert ids(tail.pull()) == ["a3", "b3"]
