"""Several queues in one worker: in turn, or strictly in order (Q-31, Q-46)."""

import pytest

from rqueue.errors import QueueDamaged
from rqueue_workers.worker.damage import Damage
from rqueue_workers.worker.queue_polling import QueuePolling
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually


@pytest.mark.parametrize("strict", [False, True])
def test_all_queues_are_served(workers: WorkerFixture, strict: bool) -> None:
    names = [f"{workers.name}-{i}" for i in range(3)]
    workers.child(queues=tuple(names), strict=strict)
    queues = [workers.queue.at(name) for name in names]
    for queue in (*queues, *reversed(queues)):
        assert queue.send("c.echo", (queue.name,)).result(PATIENCE) == queue.name
    assert {row["queue"] for row in workers.history(names[1])} == {names[1]}


def _backlog(workers: WorkerFixture, strict: bool) -> list[str]:
    names = [f"{workers.name}-{i}" for i in range(2)]
    queues = [workers.queue.at(name) for name in names]
    key = f"{workers.name}:order"
    for queue in queues:
        for _ in range(600):
            queue.send("c.push", (key, queue.name[-1]))
    workers.child(queues=tuple(names), strict=strict, async_slots=0)
    eventually(lambda: workers.redis.llen(key) == 1200, "all jobs")
    return [item.decode() for item in workers.redis.lrange(key, 0, -1)]


def test_in_turn_no_queue_waits_for_the_end_of_another(workers: WorkerFixture) -> None:
    order = _backlog(workers, strict=False)
    assert order.index("1") < 400
    assert len(order) - order[::-1].index("0") > 800


def test_strictly_the_first_queue_goes_first(workers: WorkerFixture) -> None:
    order = _backlog(workers, strict=True)
    # what was acquired before the first queue's jobs were seen may run among them
    assert order[:500].count("0") >= 480
    assert order[-300:].count("1") == 300


def test_a_later_queue_does_not_starve_in_a_subscription_whose_turn_does_not_come(
    workers: WorkerFixture,
) -> None:
    names = [f"{workers.name}-{i}" for i in range(2)]
    first, second = (workers.queue.at(name) for name in names)
    key = f"{workers.name}:k"
    workers.child(queues=tuple(names), strict=True, async_slots=0)
    first.send("c.gate", (key,))
    workers.hear(key)
    job = second.send("c.pid")
    other = workers.child(queues=(names[1],))
    assert job.result(PATIENCE) == other.pid
    workers.go(key)


class _Subscription:
    def __init__(self, todo: str, state: str = "interested") -> None:
        self.todo = todo
        self.state = state
        self.damage = Damage()


def test_turns_go_round() -> None:
    a, b, c = _Subscription("x"), _Subscription(""), _Subscription("x")
    turns = QueuePolling([a, b, c], strict=False)  # type: ignore[list-item]
    assert [turns.next() for _ in range(4)] == [a, c, a, c]
    a.damage.note(QueueDamaged("a", problem="?"))
    assert [turns.next() for _ in range(2)] == [c, c]
    a.todo = c.todo = ""
    assert turns.next() is None


def test_strict_turns_begin_at_the_front() -> None:
    a, b = _Subscription("x"), _Subscription("x")
    turns = QueuePolling([a, b], strict=True)  # type: ignore[list-item]
    assert [turns.next() for _ in range(2)] == [a, a]
    assert not turns.pulls(b)  # type: ignore[arg-type]
    a.damage.note(QueueDamaged("a", problem="?"))  # it keeps no other one from its turn
    assert turns.pulls(b)  # type: ignore[arg-type]
    assert turns.next() is b
    a.damage.over("a")
    a.todo = ""
    assert turns.next() is b
    assert turns.pulls(b)  # type: ignore[arg-type]
