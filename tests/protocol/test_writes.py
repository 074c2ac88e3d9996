"""Steps that may come twice: noted where they are done, refused where another writer was there."""

import pytest
import redis

from rqueue.errors import ScriptError
from rqueue.protocol import commands
from rqueue.protocol.call import Arg
from rqueue.protocol.commands import Note
from rqueue.protocol.keys import QueueKeys
from rqueue.transport.redis_client import execute
from tests.support.snapshot import take_snapshot

pytestmark = pytest.mark.each_server

KEEP = 60_000


@pytest.fixture
def keys(queue_name: str) -> QueueKeys:
    return QueueKeys(queue_name)


def mark(number: int) -> bytes:
    """Marks are any bytes: among them NULs, commas and what is no UTF-8."""
    return b"\0,;\xff" + number.to_bytes(4, "big")


def write(
    client: redis.Redis,
    keys: QueueKeys,
    numbers: range,
    length: int = 0,
    *,
    epoch: int = 1,
    partition: int = 0,
) -> int:
    flat: list[Arg] = []
    for number in numbers:
        flat += (f"id-{number}", b'["t"]')
    marks = b"".join(map(mark, numbers))
    note = Note("run", epoch, partition, length, KEEP, marks)
    return execute(client, commands.enqueue_alike(keys, flat, note=note)).accepted


def commit(client: redis.Redis, keys: QueueKeys, epoch: int | None) -> int:
    return execute(client, commands.commit_write(keys, "run", epoch, KEEP))


def log(client: redis.Redis, keys: QueueKeys, epoch: int = 1, partition: int = 0) -> bytes | None:
    found: bytes | None = client.get(keys.written("run", epoch, partition))
    return found


def facts(client: redis.Redis, keys: QueueKeys) -> dict[bytes, bytes]:
    return dict(client.hgetall(keys.write("run")))


def test_a_step_and_its_note_are_one(client: redis.Redis, keys: QueueKeys) -> None:
    assert write(client, keys, range(3)) == 3
    assert write(client, keys, range(3, 5), 24) == 2
    assert log(client, keys) == b"".join(map(mark, range(5)))
    assert facts(client, keys) == {b"rows": b"5", b"jobs": b"5", b"1:0": b""}
    assert 0 < client.pttl(keys.written("run", 1, 0)) <= KEEP
    assert 0 < client.pttl(keys.write("run")) <= KEEP


def test_a_step_that_comes_twice_changes_nothing(client: redis.Redis, keys: QueueKeys) -> None:
    """Not even when the job has ended, and its record is gone."""
    write(client, keys, range(3))
    client.delete(keys.jobs, keys.ready(4))
    before = take_snapshot(client, keys)
    with pytest.raises(ScriptError) as refused:
        write(client, keys, range(3))
    assert refused.value.reply == "WRITTEN 24"
    assert take_snapshot(client, keys).keys == before.keys


def test_jobs_that_are_known_already_are_noted_too(client: redis.Redis, keys: QueueKeys) -> None:
    write(client, keys, range(3))
    assert write(client, keys, range(2), partition=1) == 0
    assert write(client, keys, range(2, 4), 16, partition=1) == 1
    assert log(client, keys, partition=1) == b"".join(map(mark, range(4)))
    assert facts(client, keys)[b"rows"] == b"7"
    assert facts(client, keys)[b"jobs"] == b"4"


def test_what_a_committed_epoch_needs_no_more_is_forgotten(
    client: redis.Redis, keys: QueueKeys
) -> None:
    for epoch in (8, 9, 10):
        write(client, keys, range(epoch, epoch + 1), epoch=epoch)
    write(client, keys, range(20, 21), epoch=9, partition=1)
    assert commit(client, keys, 10) == 3
    assert log(client, keys, 9) is None
    assert log(client, keys, 9, 1) is None
    assert log(client, keys, 10) == mark(10)
    assert facts(client, keys) == {b"rows": b"4", b"jobs": b"4", b"10:0": b"", b"epoch": b"10"}


def test_a_step_of_an_epoch_that_is_over_is_refused(client: redis.Redis, keys: QueueKeys) -> None:
    write(client, keys, range(1), epoch=9)
    commit(client, keys, 10)
    assert commit(client, keys, 9) == 0  # said late: changes nothing
    before = take_snapshot(client, keys)
    with pytest.raises(ScriptError) as refused:
        write(client, keys, range(1), epoch=9)
    assert refused.value.reply == "PASSED 10"
    assert take_snapshot(client, keys).keys == before.keys
    assert write(client, keys, range(5, 6), epoch=10) == 1


def test_a_run_that_is_over_leaves_nothing(client: redis.Redis, keys: QueueKeys) -> None:
    write(client, keys, range(2))
    write(client, keys, range(2, 3), partition=3)
    assert commit(client, keys, None) == 2
    left = take_snapshot(client, keys).keys
    assert not [name for name in left if name.startswith("writ")]
    assert execute(client, commands.counts(keys)).ready == 3


def test_a_note_that_cannot_be_read_is_refused(client: redis.Redis, keys: QueueKeys) -> None:
    note = Note("a,b", 1, 1, 0, KEEP, b"")
    with pytest.raises(ScriptError, match="BADARGS enqueue: a note that cannot be read"):
        execute(client, commands.enqueue_alike(keys, ["a", b'["t"]'], note=note))
    assert not take_snapshot(client, keys).keys
