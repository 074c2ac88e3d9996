"""What stays behind where jobs are moved, copied, expired, rejected or cancelled by hand."""

from __future__ import annotations

from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, one_kind
from tests.support.two_queues import second


@one_kind
def test_what_stays_is_named_with_its_reason(q: QueueFixture) -> None:
    q.put("a", "b", "copied", "held", "dead", "ended")
    c = q.join(9)
    c.pull()
    c.ack("ended")
    c.reject("dead", "no")
    c.settle(release=["a", "b", "copied"])
    with second(q) as target:
        target.put("b")
        other = target.queue.name
        for call, goes in ((q.queue.copy, "copied"), (q.queue.move, "a")):
            done = call(other, goes, "b", "held", "dead", "ended", "never")
            assert done == 1
            assert done.stayed == {
                "b": "the other queue knows a job of this id",
                "held": "a consumer has it",
                "dead": "it is a dead letter, which goes only with dead=True (--dead)",
                "ended": "it has ended",
                "never": "this queue has no such job",
            }
        done = q.queue.reject("b", "held", "dead", "ended")
        assert (done, list(done.stayed)) == (1, ["held", "dead", "ended"])
        assert done.stayed["dead"] == "it is a dead letter"
        done = q.queue.expire("held", "b", "ended")
        assert (done, list(done.stayed)) == (0, ["held", "b", "ended"])
        assert q.queue.cancel_all() == 1, "copied"


@one_kind
def test_dead_letters_leave_only_where_they_are_meant(q: QueueFixture) -> None:
    """They would run elsewhere without anybody having said so."""
    q.put("a", "b", "c")
    q.queue.reject("a", "b", "c")
    with second(q) as target:
        assert q.queue.move(target.queue.name, "a") == 0
        assert q.queue.copy(target.queue.name, "a") == 0
        assert q.queue.move_all(target.queue.name) == 0
        assert (q.queue.counts().dead, target.listed()) == (3, [])
        assert q.queue.copy(target.queue.name, "a", dead=True) == 1
        assert q.queue.move(target.queue.name, "b", dead=True) == 1
        assert q.queue.move_all(target.queue.name, dead=True).stayed.keys() == {"a"}
        assert (q.queue.counts().dead, target.listed()) == (1, ["a", "b", "c"])
        for queue in (q, target):
            assert invariants.of_state(queue.look()) == []
