"""Qpid's consumers whose selectors cannot be evaluated."""

import pytest

from rqueue.errors import InvalidSelector
from tests.support.queue_fixture import QueueFixture, ids


def test_QAK_19_what_cannot_be_compared_is_no_match(q: QueueFixture) -> None:
    """Q-22: the consumer stays, and another one gets the job; wrong syntax is an error at once."""
    q.queue.configure(kind="selectors")
    with pytest.raises(InvalidSelector):
        q.queue.consumer(select="size > > 3").register()
    choosy, other = q.join(1, select="size > 3"), q.join(1)
    assert q.put("text", labels={"size": "large"}).handed_to == other.name
    assert choosy.pull() == []
    assert q.put("number", labels={"size": 4}).handed_to == choosy.name
    assert ids(choosy.pull()) == ["number"]
