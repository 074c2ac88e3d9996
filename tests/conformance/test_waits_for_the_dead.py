"""What a wait says where consumers are registered whose leases have ended: all their pools were
killed, or cannot reach Redis."""

import re

import pytest

from rqueue.errors import ResultNotReady
from rqueue.protocol.waiting import LEASE_GRACE_MS
from rqueue.tasks.options import Options
from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture

LEASE_MS = 30_000


def said(q: QueueFixture, id: str) -> str:
    with pytest.raises(ResultNotReady) as caught:
        q.queue.job(id).result(0)
    return caught.value.reason


def test_consumers_whose_leases_have_ended_serve_nothing(q: QueueFixture) -> None:
    q.queue.send("t", options=Options(id="later", delay_ms=3_600_000))
    q.join(name="first")
    assert said(q, "later").startswith("it is due in ")
    move_time(q.queue, LEASE_MS + LEASE_GRACE_MS - 1000)
    assert "no worker" not in said(q, "later"), "it may still be renewed"
    move_time(q.queue, 2000)
    nobody = f"no worker serves queue '{q.queue.name}' any more: "
    assert said(q, "later").endswith(f"{nobody}the lease of its one consumer has ended")


def test_one_that_only_looks_is_none_that_serves(q: QueueFixture) -> None:
    q.queue.send("t", options=Options(id="later", delay_ms=3_600_000))
    q.join(mode="browse", name="looked")
    for name in ("first", "second"):
        q.join(name=name)
    move_time(q.queue, LEASE_MS + LEASE_GRACE_MS + 1000)
    q.join(mode="browse", name="looks")
    assert said(q, "later").endswith("any more: the leases of its 2 consumers have ended")
    q.join(name="third")
    assert "no worker" not in said(q, "later")


def test_a_job_that_a_dead_consumer_holds(q: QueueFixture) -> None:
    q.put("a")
    c = q.join(1, name="first")
    c.pull()
    assert said(q, "a") == "consumer 'first' has it"
    move_time(q.queue, LEASE_MS + 60_000)
    ended = "whose lease ended 60[.0-9]* s ago, and no pool has taken the job back"
    assert re.fullmatch(f"consumer 'first' has it, {ended}", said(q, "a"))
