"""Jobs that wait for what is lost are found, and hear of it."""

import pytest
import redis

from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.protocol import commands
from rqueue.protocol.workflow_packing import packed_steps
from rqueue.tasks.options import Options
from rqueue.tasks.workflow import OnFailure, chain, chord
from rqueue.testing import frozen_time, move_time
from rqueue.transport.redis_client import execute
from tests.inspector.healing import Make, drain, heals, kinds
from tests.support.open_streams import OpenStream
from tests.support.workflows import double, total


@pytest.mark.parametrize(
    ("on_failure", "state"), [("stop", "cancelled"), ("continue", "scheduled")]
)
def test_who_waits_for_what_is_lost_hears_of_it(
    client: redis.Redis, queue: Queue, consumer: Make, on_failure: OnFailure, state: str
) -> None:
    doctor = Doctor(client, "rqueue", wait=lambda _seconds: None)
    workflow = chain(
        chord([double.s(1), double.s(2)], total.s(), on_failure=on_failure), double.s()
    )
    queue.enqueue_workflow(workflow, id="w")
    queue.send("t", options=Options(id="then", after=["w"], on_failure=on_failure))
    assert doctor.check_queue(queue.name) == []
    client.hdel(queue.keys.jobs, "w.0.0")
    client.lrem(queue.keys.ready(4), 0, "w.0.0")
    found = kinds(doctor.check_queue(queue.name))
    assert found == {"parents": "w.0"}
    assert heals(doctor, queue) == ["parents"]
    first = drain(queue, consumer)
    assert first[0] == "w.0.1"
    assert queue.job("w.0").state() == ("done" if "w.0" in first else state)
    while drain(queue, consumer):
        pass
    end = "done" if on_failure == "continue" else "cancelled"
    assert [queue.job(id_).state() for id_ in ("w.0", "w", "then")] == [end] * 3


def test_one_whose_end_was_not_heard(client: redis.Redis, queue: Queue, consumer: Make) -> None:
    doctor = Doctor(client, "rqueue", wait=lambda _seconds: None)
    queue.enqueue_workflow(chord([double.s(1), double.s(2)], total.s()), id="w")
    one = consumer(jobs=1)
    (job,) = one.pull()
    one.ack(job, 7)
    client.hdel(queue.keys.gathered("w"), "0")
    assert kinds(doctor.check_queue(queue.name)) == {"parents": "w"}
    heals(doctor, queue)
    assert client.hgetall(queue.keys.gathered("w")) == {b"0": b"[1,7]"}


def test_one_that_wants_no_results_and_did_not_hear(
    client: redis.Redis, queue: Queue, consumer: Make
) -> None:
    doctor = Doctor(client, "rqueue", wait=lambda _seconds: None)
    queue.enqueue_workflow(chord([double.s(1), double.s(2)], double.si(3)), id="w")
    one = consumer(jobs=1)
    one.settle(ack=one.pull())
    client.setbit(queue.keys.heard("w"), 0, 0)
    assert kinds(doctor.check_queue(queue.name)) == {"parents": "w"}
    heals(doctor, queue)
    assert client.getbit(queue.keys.heard("w"), 0) == 1


def test_one_that_wants_no_results(client: redis.Redis, queue: Queue, consumer: Make) -> None:
    """Of each parent that has ended nothing is kept but that."""
    doctor = Doctor(client, "rqueue", wait=lambda _seconds: None)
    queue.enqueue_workflow(chord([double.s(1), double.s(2)], double.si(3)), id="w")
    one = consumer(jobs=1)
    one.settle(ack=one.pull())
    assert doctor.check_queue(queue.name) == []


def test_many_members_may_still_come(client: redis.Redis, queue: Queue) -> None:
    """A creator that has died half way is known only after a while."""
    doctor = Doctor(client, "rqueue", wait=lambda _seconds: None)
    workflow = chord([double.si(n) for n in range(1200)], total.si([1]))
    batches = list(packed_steps(queue._packer, workflow.steps("w")))
    for batch in batches[:-1]:
        execute(client, batch.call(queue.keys), queue=queue.name)
    assert doctor.check_queue(queue.name) == []
    move_time(queue, 61_000)
    assert kinds(doctor.check_queue(queue.name)) == {"parents": "w"}
    heals(doctor, queue)
    assert queue.job("w").state() == "cancelled"


@pytest.mark.parametrize("ended", [False, True])
def test_one_elsewhere_whose_end_was_not_heard(
    client: redis.Redis, queue: Queue, ended: bool
) -> None:
    """A job of another queue is lost, or the word of its end is."""
    doctor = Doctor(client, "rqueue", wait=lambda _seconds: None)
    other = queue.at(f"{queue.name}-pages")
    first = double.options(queue=other.name).s(1)
    last = double.options(queue=queue.name).s()
    queue.enqueue_workflow(chain(first, last), id="w", spread=True)
    assert doctor.check_queue(queue.name) == []
    if ended:
        (job,) = (consumer := other.consumer(renew=False).register()).pull()
        settle = commands.settle(
            *(other.keys, consumer.name, consumer.term, None),
            done=[(job.id, None, b"7")],
            rows=0,
            batch=b"",
        )
        execute(client, settle)
        consumer.close()
        assert doctor.check_queue(queue.name) == []  # the word is on its way
        client.delete(other.keys.outgoing, other.keys.outgoing_jobs)
    else:
        client.delete(other.keys.jobs, other.keys.ready(4), other.keys.edges)
    assert kinds(doctor.check_queue(queue.name)) == {"parents": "w"}
    heals(doctor, queue)
    assert queue.job("w").state() == ("scheduled" if ended else "cancelled")


def test_a_stream_that_goes_on(client: redis.Redis, queue: Queue, consumer: Make) -> None:
    """It is no problem, also where all that came has ended; one whose producer is not waited for
    is, and so is a member that is lost."""
    with frozen_time(queue):  # a producer that is slow is not taken for gone
        doctor = Doctor(client, "rqueue", wait=lambda _seconds: None)
        flow = OpenStream(queue, "w")
        assert doctor.check_queue(queue.name) == []
        flow.step(2)
        drain(queue, consumer)
        assert doctor.check_queue(queue.name) == []
        client.delete(queue.keys.unsealed)
        assert kinds(doctor.check_queue(queue.name)) == {"parents": "w"}
        assert heals(doctor, queue) == ["parents"]
        assert client.zcard(queue.keys.unsealed) == 1
        flow.step(2)
        client.hdel(queue.keys.jobs, "w.3")
        client.lrem(queue.keys.ready(4), 0, "w.3")
        assert kinds(doctor.check_queue(queue.name)) == {"parents": "w"}
        assert heals(doctor, queue) == ["parents"]
        assert queue.job("w").state() == "cancelled"
