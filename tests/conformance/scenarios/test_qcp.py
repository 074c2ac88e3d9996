"""Qpid's priorities of consumers."""

from tests.support.queue_fixture import QueueFixture, every_kind, ids


@every_kind
def test_QCP_01_a_consumer_of_low_priority_gets_jobs_where_it_is_alone(
    q: QueueFixture, kind: str
) -> None:
    """Q-45."""
    low = q.join(1, priority=-5)
    assert q.put("A").handed_to == low.name
    assert ids(low.pull()) == ["A"]


@every_kind
def test_QCP_02_a_lower_one_gets_nothing_while_a_higher_one_has_credit(
    q: QueueFixture, kind: str
) -> None:
    """Q-45: whichever came first, and whichever pulls first."""
    low, high = q.join(10, priority=-5), q.join(2)
    assert q.put("A").handed_to == high.name
    q.put("B", "C", "D")
    assert ids(low.pull()) == []
    assert ids(high.pull()) == ["A", "B"]
    assert ids(low.pull()) == ["C", "D"]


def test_QCP_04_a_lower_one_gets_what_the_higher_one_does_not_select(q: QueueFixture) -> None:
    """Q-45, Q-22."""
    q.queue.configure(kind="selectors")
    low, high = q.join(10, priority=-5), q.join(10, select="msg <> 2")
    assert q.put("1", labels={"msg": 1}).handed_to == high.name
    assert q.put("2", labels={"msg": 2}).handed_to == low.name
    assert ids(low.pull()) == ["2"]
    assert ids(high.pull()) == ["1"]


@every_kind
def test_QCP_06_a_lower_one_gets_what_the_higher_one_has_too_few_bytes_for(
    q: QueueFixture, kind: str
) -> None:
    """Q-45, Q-52: credit for some job is no credit for this one."""
    low, high = q.join(10, bytes=1000), q.join(10, bytes=250, priority=3)
    assert q.put("small", padding=50).handed_to == high.name
    assert ids(high.pull()) == ["small"]
    q.put("big", padding=200)
    assert high.pull() == []
    assert ids(low.pull()) == ["big"]
