"""Qpid's windows of consumers that gather what they do in a transaction."""

import pytest

from tests.support.queue_fixture import QueueFixture, ids, one_kind


@one_kind
def test_QFL_21_a_consumer_holds_more_than_it_has_settled(q: QueueFixture) -> None:
    """Q-53, Q-73: its window grows by one each time; a rollback settles nothing."""
    q.put(*"01234")
    first, other = q.join(1), q.join(1)
    held = []
    for window in (1, 2, 3):
        first.interest(window)
        held += first.pull()
    assert ids(held) == list("012")
    assert ids(other.pull()) == ["3"]
    with pytest.raises(LookupError), q.queue.transaction(first) as transaction:
        for job in held:
            transaction.ack(job)
        raise LookupError
    assert q.look().held[first.name] == list("012")
    first.close()
    assert ids(other.settle(ack=["3"], pull=True)) == ["0"]
