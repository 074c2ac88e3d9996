"""A job that was cancelled while a consumer held it is cancelled once more, with more force."""

import pytest

from rqueue.model.cancellation import Cancellation
from rqueue.protocol import commands
from rqueue.transport.redis_client import execute
from tests.support.queue_fixture import QueueFixture


def stage(q: QueueFixture, id: str) -> str:
    return execute(q.queue.redis, commands.read_stop(q.queue.keys, id)).stage


@pytest.mark.parametrize(
    ("forces", "notices"),
    [
        (["", "", "stop"], [b"XA", b"SA"]),
        (["", "kill"], [b"XA", b"KA"]),
        (["stop", "stop", ""], [b"SA"]),
        (["stop", "kill", "stop"], [b"SA", b"KA"]),
        (["kill", "stop", "kill"], [b"KA"]),
        (["", "stop", "kill", "kill"], [b"XA", b"SA", b"KA"]),
    ],
)
def test_the_consumer_is_notified_of_what_is_more(
    q: QueueFixture, forces: list[str], notices: list[bytes]
) -> None:
    q.put("A")
    consumer = q.join()
    consumer.pull()
    ends = [q.queue.cancel("A", running=how == "stop", kill=how == "kill") for how in forces]
    assert q.unread(consumer) == notices
    assert ends[0] is Cancellation.REQUESTED
    assert stage(q, "A") == "requested"


def test_nobody_is_notified_of_what_runs_no_more(q: QueueFixture) -> None:
    q.put("A", "B", "C")
    consumer = q.join()
    a, *_ = consumer.pull()
    q.queue.cancel("B", running=True)
    execute(q.queue.redis, commands.note_stop(q.queue.keys, consumer.name, "ended", ["B"]))
    q.queue.cancel("C")
    consumer.ack(a)
    before = q.unread(consumer)
    assert q.queue.cancel("A", kill=True) is Cancellation.NONE  # it was not cancelled
    assert q.queue.cancel("B", kill=True) is Cancellation.ENDED
    assert q.unread(consumer) == before
    consumer.close()
    assert q.queue.cancel("C", kill=True) is Cancellation.NONE  # its consumer is gone
    assert stage(q, "C") == ""


def test_who_asks_what_it_holds_still_hears_what_is_to_be_stopped(q: QueueFixture) -> None:
    q.put("A", "B", "C")
    consumer = q.join()
    consumer.pull()
    q.queue.cancel("A", running=True)
    q.queue.cancel("B", kill=True)
    q.queue.cancel("C")
    keys, client = q.queue.keys, q.queue.redis
    term = client.hget(keys.consumer(consumer.name), "term").decode()
    call = commands.pull(keys, consumer.name, term, commands.Window(100), recall=0)
    assert execute(client, call).jobs == []
    assert q.unread(consumer) == [b"SA", b"KB"]
