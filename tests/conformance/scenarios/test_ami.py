"""What Artemis's administration does."""

import pytest

from rqueue.errors import ConfigError
from tests.support.queue_fixture import QueueFixture


def test_AMI_01_a_priority_is_changed_and_an_invalid_one_changes_nothing(q: QueueFixture) -> None:
    """A-38."""
    q.put("low", "other")
    for wrong in (23, -1, True, "9"):
        with pytest.raises(ConfigError, match="from 0 to 9"):
            q.queue.set_priority("low", wrong)  # type: ignore[arg-type]
    assert q.listed() == ["low", "other"]
    assert q.queue.set_priority("other", 9) is True
    (first, second) = q.join().pull()
    assert (first.id, first.level, second.id, second.level) == ("other", 9, "low", 4)
    assert [row["id"] for row in q.look().history if row["outcome"] == "changed"] == ["other"]
