"""Unique jobs that people move or copy have their keys where they go, or stay and are named."""

from datetime import timedelta

import pytest

from rqueue.protocol.forwarding import forward
from rqueue.tasks.options import Options
from rqueue.tasks.unique import Unique
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support import invariants
from tests.support.queue_fixture import QueueFixture, ids, one_kind
from tests.support.two_queues import second

BY_NAME = Unique(key="k")

pytestmark = one_kind


def put(q: QueueFixture, id: str, unique: Unique = BY_NAME) -> str:
    """A job of this key; the id that is answered."""
    return q.put(id, unique=unique).id


def sound(*queues: QueueFixture) -> None:
    for q in queues:
        assert invariants.of_state(q.look()) == []


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_a_job_takes_its_key_along(q: QueueFixture, verb: str) -> None:
    put(q, "1")
    with second(q) as other:
        assert getattr(q.queue, f"{verb}_all")(other.queue.name) == 1
        assert put(other, "2") == "1"
        assert put(q, "3") == ("3" if verb == "move" else "1")
        sound(q, other)


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_what_finds_its_key_taken_stays_and_is_named(q: QueueFixture, verb: str) -> None:
    put(q, "1")
    q.put("2")
    q.queue.unique.clear(_key())
    put(q, "3")
    put(q, "4", Unique(key="other"))
    with second(q) as other:
        put(other, "9")
        carried = getattr(q.queue, f"{verb}_all")(other.queue.name)
        assert carried == 2
        assert carried.stayed == dict.fromkeys("13", "its unique key is that of job '9' there")
        assert other.queue.cancel("9")
        carried = getattr(q.queue, verb)(other.queue.name, "1", "3", "none")
        assert carried == 1
        assert carried.stayed == {
            "none": "this queue has no such job",
            "3": "its unique key is that of job '1' there",
        }
        sound(q, other)


def _key() -> str:
    unique = BY_NAME.of_call("t", {})
    return unique.key


def test_what_left_waits_for_its_key_to_be_free(
    q: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one may have come between the look and the arrival."""
    put(q, "1")
    with second(q) as other:
        run = q.queue._run
        late: list[str] = []

        def meanwhile(call):  # type: ignore[no-untyped-def]
            if call.script == "outgoing_take" and not late:
                late.append(put(other, "9"))
            return run(call)

        monkeypatch.setattr(q.queue, "_run", meanwhile)
        assert q.queue.move(other.queue.name, "1") == 1
        assert late == ["9"]
        assert q.queue.counts().outgoing == 1 and other.queue.counts().ready == 1
        other.queue.cancel("9")
        move_time(q.queue, 60_000)
        assert forward(lambda call: execute(q.queue.redis, call), q.queue.keys) == 1
        assert put(other, "2") == "1"
        sound(q, other)


def test_the_rest_of_a_period_goes_on_there(q: QueueFixture) -> None:
    put(q, "1", Unique(key="k", until=timedelta(hours=1)))
    put(q, "2", Unique(key="short", until=5))
    move_time(q.queue, 1_800_000)
    with second(q) as other:
        move_time(other.queue, 1_800_000)
        assert q.queue.move_all(other.queue.name) == 2
        c = other.join()
        assert put(other, "3", Unique(key="short", until=5)) == "2"
        c.settle(ack=c.pull())
        assert put(other, "4", Unique(key="k", until="1h")) == "1"
        assert put(other, "5", Unique(key="short", until=5)) == "5"
        move_time(other.queue, 1_801_000)
        assert put(other, "6", Unique(key="k", until="1h")) == "6"


def test_a_queue_that_takes_no_unique_jobs_gets_none(q: QueueFixture) -> None:
    put(q, "1")
    q.put("2")
    with second(q, ring=5) as other:
        carried = q.queue.move_all(other.queue.name)
        assert carried == 1
        why = "it is unique, which no job is in a queue with ring"
        assert carried.stayed == {"1": why}
        assert put(q, "3") == "1"


def test_a_dead_letter_that_moves_needs_its_key_again(q: QueueFixture) -> None:
    put(q, "1")
    q.queue.reject("1")
    with second(q) as other:
        put(other, "9")
        carried = q.queue.move_all(other.queue.name, dead=True)
        assert (int(carried), list(carried.stayed)) == (0, ["1"])
        other.queue.cancel("9")
        assert q.queue.move_all(other.queue.name, dead=True) == 1
        assert put(other, "2") == "1"


def test_signed_jobs_are_signed_with_their_keys(q: QueueFixture) -> None:
    from rqueue.client._sync.queue import Queue

    keys = {"a": "x" * 16}
    with (
        Queue(q.queue.name, redis=q.queue.redis, signing_keys=keys) as source,
        second(q) as other,
        Queue(other.queue.name, redis=q.queue.redis, signing_keys=keys) as target,
    ):
        source.send("t", options=Options(id="1", unique=BY_NAME))
        assert source.move_all(target.name) == 1
        (job,) = other.join().pull()
        assert ids([job]) == ["1"]
        assert target.envelope(job).task == "t"
