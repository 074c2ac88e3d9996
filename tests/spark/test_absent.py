"""A queue that is read by its name and is not there is said, on the driver."""

import logging

import pytest

from rqueue import Call, Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.keys import QueueKeys
from rqueue.spark.history.source import HistoryReader
from rqueue.spark.jobs.source import JobsReader
from rqueue.spark.options import HistoryRead, JobsRead, read_options
from rqueue.spark.schemas import HISTORY, JOBS
from tests.support.history import write


@pytest.mark.parametrize("source", ["history", "jobs"])
def test_a_queue_that_is_not_there_is_named(
    server: EmbeddedRedis, queue_name: str, caplog: pytest.LogCaptureFixture, source: str
) -> None:
    def plan(queues: str) -> list[str]:
        given = {"url": server.url, "queues": queues}
        caplog.clear()
        with caplog.at_level(logging.WARNING, "rqueue.spark"):
            if source == "history":
                HistoryReader(read_options(HistoryRead, given), HISTORY).partitions()
            else:
                JobsReader(read_options(JobsRead, given), JOBS).partitions()
        return [one.getMessage() for one in caplog.records]

    with Queue(queue_name, server.url) as queue:
        queue.enqueue_many([Call("t")])
        write(queue.redis, QueueKeys(queue_name), 1, 1)
    assert plan(queue_name) == plan("*") == []
    [said] = plan(f"{queue_name},mial")
    assert "'mial'" in said and server.url in said and "no row" in said
