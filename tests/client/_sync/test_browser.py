# Generated from tests/client/_async/test_browser.py (`make generate`): do not edit.
"""A browser's credit: it does not hold the jobs it is shown, and they still count."""

import pytest

from rqueue.client._sync.queue import Queue
from rqueue.errors import ConsumerGone
from rqueue.protocol.credit import GrantCredit, WindowCredit
from tests.support.patience import PATIENCE


def fill(queue: Queue, count: int, size: int = 1) -> list[str]:
    return [(queue.send("t", ["x" * size])).id for _ in range(count)]


def ids(jobs: list) -> list[str]:  # type: ignore[type-arg]
    return [job.id for job in jobs]


def test_without_credit_it_is_shown_nothing(queue: Queue) -> None:
    """Q-34, X-22: and that is no end."""
    sent = fill(queue, 3)
    with queue.consumer(jobs=0, mode="browse", renew=False) as browser:
        assert (
            browser.pull(),
            browser.receive(5),
            [jobs for jobs in browser.drain()],
        ) == ([], None, [])
        assert browser.interest(2) == "browsers"
        assert ids(browser.pull()) == sent[:2]


def test_a_window_is_free_again_at_once(queue: Queue) -> None:
    """It holds nothing: the window bounds what one pull shows."""
    sent = fill(queue, 5)
    for options in ({"jobs": 2}, {"credit": WindowCredit(2)}):
        with queue.consumer(mode="browse", renew=False, **options) as browser:  # type: ignore[arg-type]
            assert [ids(browser.pull()) for _ in range(4)] == [
                sent[:2],
                sent[2:4],
                sent[4:],
                [],
            ]
            assert browser.held == 0


def test_a_grant_is_used_up(queue: Queue) -> None:
    """Q-51."""
    sent = fill(queue, 5)
    credit = GrantCredit(3)
    with queue.consumer(mode="browse", credit=credit, renew=False) as browser:
        assert ids(browser.pull()) == sent[:3]
        assert (credit.jobs, browser.state, browser.pull()) == (0, "not_interested", [])
        fill(queue, 1)
        assert queue.redis.llen(queue.keys.wake(browser.name)) == 0  # it was not woken
        assert browser.grant(1) == "browsers"
        assert ids(browser.pull()) == sent[3:4]


def test_bytes_count_too(queue: Queue) -> None:
    """X-11: the first always fits."""
    sent = fill(queue, 5, 1000)
    with queue.consumer(jobs=10, bytes=2500, mode="browse", renew=False) as browser:
        assert [ids(browser.pull()) for _ in range(3)] == [sent[:2], sent[2:4], sent[4:]]
    with queue.consumer(jobs=10, bytes=10, mode="browse", renew=False) as browser:
        assert ids(browser.pull()) == sent[:1]
    credit = GrantCredit(10, 2500)
    with queue.consumer(mode="browse", credit=credit, renew=False) as browser:
        assert ids(browser.pull()) == sent[:2]
        assert 0 < credit.bytes < 500


def test_stop_ends_it_until_there_is_credit_again(queue: Queue) -> None:
    sent = fill(queue, 3)
    with queue.consumer(jobs=1, mode="browse", renew=False) as browser:
        assert ids(browser.pull()) == sent[:1]
        assert browser.stop() == []
        assert (browser.state, browser.pull()) == ("not_interested", [])
        browser.interest(5)
        assert ids(browser.pull()) == sent[1:]


def test_it_receives_what_is_there_and_what_comes(queue: Queue) -> None:
    sent = fill(queue, 3)
    with queue.consumer(jobs=2, mode="browse", renew=False) as browser:
        seen = []
        for job in browser:
            seen.append(job.id)
            if len(seen) == 3:
                assert browser.receive(0) is None
                sent += fill(queue, 2)
            if len(seen) == 5:
                browser.stop()
        assert seen == sent
    assert (queue.counts()).ready == 5


@pytest.mark.parametrize("renew", [False, True])
@pytest.mark.parametrize("waits", [False, True])
def test_it_learns_that_its_queue_was_deleted(queue: Queue, waits: bool, renew: bool) -> None:
    """As a consumer that acquires: one that waits is woken, and its next calls say so."""
    sent = fill(queue, 1)
    with queue.consumer(jobs=5, mode="browse", renew=renew) as browser:
        assert ids(browser.pull()) == sent
        assert browser.pull() == []
        queue.delete(jobs=True, consumers=True)
        with pytest.raises(ConsumerGone):
            if waits:
                assert browser.wait(PATIENCE)
            browser.pull()


@pytest.mark.parametrize("renew", [False, True])
def test_it_begins_anew_in_the_queue_that_comes_then(queue: Queue, renew: bool) -> None:
    """Which `receive` does by itself, for all consumers."""
    with queue.consumer(jobs=5, mode="browse", renew=renew) as browser:
        assert browser.receive(0) is None
        queue.delete(consumers=True)
        assert (browser.receive(0), browser.rejoined) == (None, 1)
        sent = fill(queue, 1)
        job = browser.receive(PATIENCE)
        assert job is not None and job.id == sent[0]
