"""What Artemis's administration does."""

import pytest

from rqueue.errors import ConfigError
from rqueue.model.job_filter import JobFilter
from tests.support.queue_fixture import QueueFixture, ids
from tests.workers.pools import eventually


def test_AMI_01_a_priority_is_changed_and_an_invalid_one_changes_nothing(q: QueueFixture) -> None:
    """A-38."""
    q.put("low", "other")
    for wrong in (23, -1, True, "9"):
        with pytest.raises(ConfigError, match="from 0 to 9"):
            q.queue.set_priority("low", wrong)  # type: ignore[arg-type]
    assert q.listed() == ["low", "other"]
    assert q.queue.set_priority("other", 9) == 1
    (first, second) = q.join().pull()
    assert (first.id, first.level, second.id, second.level) == ("other", 9, "low", 4)
    assert [row["id"] for row in q.look().history if row["outcome"] == "changed"] == ["other"]


@pytest.mark.parametrize("delete_if", ["always", "never"])
def test_AMI_04_what_is_left_goes_with_the_last_consumer(q: QueueFixture, delete_if: str) -> None:
    """Q-60: where the queue is configured so; until then jobs wait, also where nobody consumes."""
    q.queue.configure(delete_if=delete_if)
    q.put("A")
    consumer = q.join(1)
    assert ids(consumer.pull()) == ["A"]
    consumer.ack("A")
    consumer.interest(0)
    q.put("B")
    assert q.queue.counts().ready == 1
    consumer.close()
    if delete_if == "always":
        eventually(lambda: not q.queue.redis.exists(q.queue.keys.meta))
    assert q.queue.counts().ready == (0 if delete_if == "always" else 1)


def test_AMI_03_jobs_are_removed_by_filter_with_a_limit_and_all(q: QueueFixture) -> None:
    """A-38."""
    for n in range(10):
        q.put(f"j{n}", labels={"odd": n % 2, "few": int(n in (1, 3, 5, 7))})
    assert q.queue.cancel_all(JobFilter(labels={"few": "1"})) == 4
    assert q.queue.cancel_all(limit=2) == 2
    assert q.listed() == ["j4", "j6", "j8", "j9"]
    assert q.queue.cancel_all() == 4
    counts = q.queue.counts()
    assert (counts.ready, counts.meta["cancelled"], q.join().pull()) == (0, "10", [])
