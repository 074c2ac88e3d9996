"""Jobs that wait are shown in the order in which they will be delivered, wherever they stand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rqueue.inspector.jobs import jobs_page
from rqueue.protocol.credit import GrantCredit
from rqueue.testing import move_time
from tests.support.queue_fixture import QueueFixture, ids, one_kind

HOUR = 3_600_000


def held(q: QueueFixture) -> None:
    q.put("a")
    q.put("held", "held2", hold=True, delay_ms=HOUR)
    q.put("b", "c")
    q.put("soon", hold=True, delay_ms=HOUR + 1)
    q.put("low", priority=1)
    q.put("later", delay_ms=HOUR)
    q.put("d")
    move_time(q.queue, HOUR + 2)
    c = q.join(1)
    c.release(c.pull()[0])
    c.close()


def grouped(q: QueueFixture) -> None:
    for number in range(4):
        q.put(f"plain{number}")
        q.put(f"group{number}", group=f"g{number}")
    q.put("first", group="x", priority=9)
    q.put("last", priority=1)


def selected(q: QueueFixture) -> None:
    q.queue.configure(kind="selectors")
    for number in range(6):
        q.put(f"j{number}", labels={"gpu": True} if number % 2 else {"region": number % 3})
    q.put("none")
    q.put("high", priority=9, labels={"gpu": True})


def refused(q: QueueFixture) -> None:
    q.put(*(f"j{number}" for number in range(7)), "k", "l")
    c = q.join(9)
    jobs = c.pull()
    for job in jobs[1::3]:
        c.refuse(job)
    c.close()


def sorted_(q: QueueFixture) -> None:
    q.put("x", "y")
    for key in (3, 1, 2, 1):
        q.put(f"k{key}{q.queue.counts().ready}", sort_key=key)
    q.put("high", priority=9)
    q.put("high2", priority=9, sort_key=0)


@one_kind
@pytest.mark.parametrize("limit", [1, 2, 3, 500])
@pytest.mark.parametrize("fill", [held, grouped, selected, refused, sorted_])
def test_pages_of_ready_jobs_are_in_the_order_of_delivery(
    q: QueueFixture, fill: Callable[[QueueFixture], None], limit: int
) -> None:
    fill(q)
    shown: list[str] = []
    after = ""
    while True:
        page = jobs_page(q.queue.redis, q.queue.keys, "ready", after, limit)
        assert len(page.jobs) <= limit
        shown += [job.id for job in page.jobs]
        after = page.next
        if not after:
            break
    assert q.listed() == shown
    c = q.join(1)
    delivered: list[str] = []
    while jobs := c.pull():
        delivered += ids(jobs)
        c.ack(jobs[0])
    assert shown == delivered


@pytest.mark.parametrize("how", ["receive", "pull", "iterate"])
def test_a_browser_closes_at_the_tail_though_its_grant_is_used_up(
    q: QueueFixture, how: str
) -> None:
    """Q-29: a lack of credit is no tail, and the tail is one all the same."""
    q.put(*"abc")
    for grant, closes in ((3, True), (2, False)):
        credit = GrantCredit(grant)
        browser = q.queue.consumer(mode="browse", credit=credit, auto_close=True, renew=False)
        browser.register()
        seen = [job.id for job in browser] if how == "iterate" else []
        while how == "receive" and (job := browser.receive(0)):
            seen.append(job.id)
        while how == "pull" and (page := browser.pull()):
            seen += ids(page)
        assert seen == [*"abc"][:grant]
        assert (browser.name not in q.look().consumers) == closes
        if not closes:
            browser.close()
