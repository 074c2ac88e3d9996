"""After Redis's clock has gone back, nothing stands further in the future than it can."""

from rqueue import Unique
from rqueue.inspector.doctor.service_checks import check_service
from rqueue.model.job_limit import JobLimit
from rqueue.protocol.commands.clock import stop_clock
from rqueue.testing import move_time
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture, every_place, ids

NOW, BACK = 1_800_000_000_000, 60_000


def still(q: QueueFixture) -> None:
    execute(q.queue.redis, stop_clock(q.queue.keys, NOW))


def notes(q: QueueFixture) -> list[str]:
    found = check_service(q.queue.redis, q.queue.keys)
    return [one.says for one in found if one.kind == "clock"]


@every_place
def test_a_rate_goes_on(q: QueueFixture) -> None:
    still(q)
    q.put(*"abcd", limit=JobLimit("api", 5, "", 1000, 1))
    consumer = q.own(9)
    assert ids(consumer.pull()) == ["a"]
    move_time(q.queue, -BACK)
    q.renew()
    move_time(q.queue, 200)
    assert ids(consumer.pull()) == ["b"]
    assert notes(q)


@every_place
def test_an_interval_goes_on(q: QueueFixture) -> None:
    still(q)
    q.queue.schedules.set("beat", "t", every=1)
    consumer = q.own(9)
    move_time(q.queue, 1000)
    assert len(consumer.pull()) == 1
    move_time(q.queue, -BACK)
    q.renew()
    move_time(q.queue, 1000)
    assert len(consumer.pull()) == 1
    assert notes(q)


@every_place
def test_a_throttle_lasts_no_longer_than_its_period(q: QueueFixture) -> None:
    still(q)
    once = Unique(key="k", until="10s")
    assert q.put("a", unique=once).id == "a"
    consumer = q.own(9)
    consumer.ack(consumer.pull()[0])
    move_time(q.queue, -BACK)
    assert q.put("b", unique=once).id == "a"
    move_time(q.queue, 10_001)
    assert q.put("c", unique=once).id == "c"
    assert notes(q)


@every_place
def test_all_is_well_says_nothing(q: QueueFixture) -> None:
    still(q)
    q.put(*"abcd", limit=JobLimit("api", 5, "", 1000, 1))
    consumer = q.own(9)
    for _ in range(3):
        consumer.pull()
        move_time(q.queue, 150)
        q.renew()
    assert notes(q) == []
