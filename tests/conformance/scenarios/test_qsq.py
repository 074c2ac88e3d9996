"""Qpid's standard queue."""

from tests.support.patience import PATIENCE
from tests.support.queue_fixture import QueueFixture, every_kind, ids


@every_kind
def test_QSQ_02_what_ended_at_once_is_passed_over(q: QueueFixture, kind: str) -> None:
    """Q-09: by a consumer that was there before."""
    consumer = q.join()
    q.queue.pause()
    for id in "0123":
        q.put(id)
        if int(id) % 2 == 0:
            q.queue.cancel(id)
    q.queue.resume()
    assert ids(consumer.pull()) == ["1", "3"]


@every_kind
def test_QSQ_03_what_ended_in_the_backlog_is_passed_over(q: QueueFixture, kind: str) -> None:
    """Q-09."""
    q.put(*"1234")
    q.queue.cancel("2")
    assert ids(q.join().pull()) == list("134")


def test_QSQ_05_disjoint_selectors_all_make_progress(q: QueueFixture) -> None:
    """Q-22, Q-30."""
    q.queue.configure(kind="selectors")
    for n in range(1, 6):
        q.put(str(n), labels={"n": n})
    consumers = [q.join(select=select) for select in ("n <= 3", "n = 4", "n = 5")]
    assert [ids(consumer.pull()) for consumer in consumers] == [["1", "2", "3"], ["4"], ["5"]]
    assert q.queue.counts().ready == 0


@every_kind
def test_QSQ_06_turns_go_on_where_a_consumer_leaves(q: QueueFixture, kind: str) -> None:
    """Q-36, Q-44."""
    first, second, third = (q.join(1) for _ in range(3))
    assert q.put("A").handed_to == first.name
    first.wait(PATIENCE)
    first.ack("A")
    assert first.pull() == []
    second.close()
    assert q.queue.counts().interested == 2
    assert q.put("B").handed_to == third.name
    assert q.put("C").handed_to == first.name
    first.close()
    third.close()
    assert q.queue.counts().interested == 0
    assert q.put("D").handed_to == ""
