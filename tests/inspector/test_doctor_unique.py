"""Keys of unique jobs that are of no job are found and freed; those of a period are not touched."""

import redis

from rqueue.client._sync.queue import Queue
from rqueue.inspector import Doctor
from rqueue.tasks.options import Options
from rqueue.tasks.unique import Unique
from rqueue.testing import move_time
from tests.inspector.healing import Make, heals, kinds


def put(queue: Queue, id: str, key: str, **said: object) -> str:
    unique = Unique(key=key, **said)  # type: ignore[arg-type]
    return queue.send("t", options=Options(id=id, unique=unique)).id


def test_keys_without_a_job_are_found_and_freed(
    client: redis.Redis, queue: Queue, consumer: Make
) -> None:
    doctor = Doctor(client, "rqueue", wait=lambda _seconds: None)
    put(queue, "a", "a")
    put(queue, "b", "b", until="1h")
    put(queue, "c", "c")
    holder = consumer(jobs=3)
    jobs = holder.pull()
    holder.ack(jobs[1])
    holder.reject(jobs[2], "never")
    assert doctor.check_queue(queue.name) == []
    index = queue.keys.unique
    keys = {"of-nobody": "nobody", "of-another": "a", "of-a-dead-one": "c"}
    client.hset(index, mapping=keys)  # type: ignore[arg-type]
    found = doctor.check_queue(queue.name)
    assert sorted(finding.subject for finding in found) == sorted(keys)
    assert kinds(found).keys() == {"unique"}
    assert sorted(heals(doctor, queue)) == ["unique"] * 3
    assert sorted(client.hvals(index)) == [b"a", b"b"]
    assert put(queue, "d", "b", until="1h") == "b"
    move_time(queue, 3_601_000)
    assert put(queue, "e", "b", until="1h") == "e"
