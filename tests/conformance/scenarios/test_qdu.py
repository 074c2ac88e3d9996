"""What outlives a server that is killed and started again."""

from collections.abc import Callable

from rqueue.embedded.server import EmbeddedRedis
from rqueue.model.envelope import unpack
from rqueue.tasks.options import Options
from tests.support.queue_fixture import QueueFixture, ids

MakeQueue = Callable[[EmbeddedRedis], QueueFixture]


def test_QDU_03_contents_outlive_the_server(
    private_server: EmbeddedRedis, make_q: MakeQueue
) -> None:
    """Q-70: also of jobs that were delivered once and released."""
    bodies = ["", "é" * 1000, "\0\x01", "y" * 100_000]
    q = make_q(private_server)
    for number, body in enumerate(bodies):
        q.queue.send("t", [body], None, Options(id=str(number)))
    consumer = q.join(2)
    consumer.settle(release=consumer.pull())
    consumer.close()
    private_server.kill()
    private_server.start()
    jobs = q.join().pull()
    assert [unpack(job.body)[1] for job in jobs] == [[body] for body in bodies]
    assert [job.redelivered for job in jobs] == [True, True, False, False]
    q.close()


def test_QDU_04_what_was_there_before_comes_before_what_comes_after(
    private_server: EmbeddedRedis, make_q: MakeQueue
) -> None:
    """Q-71: no position is used twice, and nothing is doubled."""
    q = make_q(private_server)
    q.put(*"0123")
    holder = q.join(2)
    assert ids(holder.pull()) == ["0", "1"]
    private_server.kill()
    private_server.start()
    q.put(*"456")
    holder.close()
    q.put("7")
    assert not q.put("3").created
    jobs = q.join().pull()
    assert ids(jobs) == list("01234567")
    assert len({job.position for job in jobs}) == 8
    q.close()
