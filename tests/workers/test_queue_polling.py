"""Several queues in one worker: in turn, by their weights, or strictly in order (Q-31, Q-46)."""

from typing import Any

import pytest

from rqueue.errors import QueueDamaged
from rqueue.protocol.job_packer import Call
from rqueue_workers.worker.damage import Damage
from rqueue_workers.worker.queue_polling import QueuePolling
from rqueue_workers.worker.task_plans import ASYNC, THREAD
from tests.support.patience import PATIENCE
from tests.workers.children import WorkerFixture, eventually

EXECUTORS = [
    pytest.param({}, id="main thread"),
    pytest.param({"threads": 2}, id="threads"),
    pytest.param({"task": "c.apush", "async_slots": 4}, id="event loop"),
]


@pytest.mark.parametrize("strict", [False, True])
def test_all_queues_are_served(workers: WorkerFixture, strict: bool) -> None:
    names = [f"{workers.name}-{i}" for i in range(3)]
    workers.child(queues=tuple(names), strict=strict)
    queues = [workers.queue.at(name) for name in names]
    for queue in (*queues, *reversed(queues)):
        assert queue.send("c.echo", (queue.name,)).result(PATIENCE) == queue.name
    assert {row["queue"] for row in workers.history(names[1])} == {names[1]}


def _backlog(workers: WorkerFixture, task: str = "c.push", **options: Any) -> str:
    """Which queue, 0 or 1, each of the 200 jobs of either was of, in the order in which they began.
    Each takes two milliseconds."""
    names = [f"{workers.name}-{i}" for i in range(2)]
    key = f"{workers.name}:order"
    for name in names:
        queue = workers.queue.at(name)
        queue.enqueue_many(Call(task, (key, name[-1], 0.002)) for _ in range(200))
    workers.child(queues=tuple(names), **{"async_slots": 0, **options})
    eventually(lambda: workers.redis.llen(key) == 400, "all jobs")
    return b"".join(workers.redis.lrange(key, 0, -1)).decode()


@pytest.mark.parametrize("executor", EXECUTORS)
def test_in_turn_no_queue_waits_for_the_end_of_another(
    workers: WorkerFixture, executor: dict[str, Any]
) -> None:
    order = _backlog(workers, **executor)
    assert order.index("1") < 100
    assert order.rindex("0") > 270


def test_strictly_the_first_queue_goes_first(workers: WorkerFixture) -> None:
    order = _backlog(workers, strict=True)
    # what was acquired before the first queue's jobs were seen may run among them
    assert order[:150].count("0") >= 140
    assert order[-100:] == 100 * "1"


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_queue_of_more_weight_has_more(workers: WorkerFixture, executor: dict[str, Any]) -> None:
    order = _backlog(workers, weights={f"{workers.name}-1": 4}, **executor)
    # four of five, but for what was acquired before both were seen
    assert order[:200].count("1") > 125
    assert order[:200].count("0") > 10


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
    def __init__(self, todo: str, state: str = "not_interested", index: int = 0) -> None:
        self.todo = todo
        self.state = state
        self.index = index
        self.queue = "abc"[index]
        self.damage = Damage()
        self.diverted = 0

    @property
    def away(self) -> bool:
        return bool(self.damage.since)

    def runs_in(self, kind: int) -> bool:
        return kind == ASYNC or self.queue != "c"


def _three(**weights: int) -> tuple[_Subscription, _Subscription, _Subscription, QueuePolling]:
    a, b, c = (_Subscription("x", index=index) for index in range(3))
    return a, b, c, QueuePolling([a, b, c], strict=False, weights=weights)  # type: ignore[list-item]


def _turns(polling: QueuePolling, seconds: dict[str, float], count: int) -> str:
    """The queues of so many turns, of which one of each queue takes so many seconds."""
    chosen = []
    for _ in range(count):
        if subscription := polling.next():
            polling.ran(subscription, seconds.get(subscription.queue, 1.0))
            chosen.append(subscription.queue)
    return "".join(chosen)


def test_turns_go_round() -> None:
    a, b, c, polling = _three()
    b.todo = ""
    assert _turns(polling, {}, 4) == "acac"
    a.damage.note(QueueDamaged("a", problem="?"))
    assert _turns(polling, {}, 2) == "cc"
    a.todo = c.todo = ""
    assert polling.next() is None


def test_short_turns_are_made_up_for() -> None:
    _, _, c, polling = _three()
    c.todo = ""
    assert _turns(polling, {"a": 1.0, "b": 0.25}, 10) == "abbbbabbbb"


def test_turns_go_by_weight() -> None:
    _, _, _, polling = _three(a=4, b=2)
    turns = _turns(polling, {}, 70)
    assert [turns.count(queue) for queue in "abc"] == [40, 20, 10]
    assert "c" in turns[:7]


def test_a_queue_that_was_empty_has_saved_up_nothing() -> None:
    _, b, c, polling = _three()
    b.todo, b.state, c.todo = "", "interested", ""
    assert _turns(polling, {}, 100) == 100 * "a"
    b.todo = "x"
    assert _turns(polling, {}, 6) == "bababa"


def test_places_are_shared_by_those_that_may_have_work() -> None:
    a, b, c, polling = _three(a=3)
    share = [polling.share(one, ASYNC, 10) for one in (a, b, c)]  # type: ignore[arg-type]
    assert share == [6, 2, 2]
    assert polling.share(a, THREAD, 10) == 8, "none of c's jobs is for threads"  # type: ignore[arg-type]
    c.state = "interested"
    b.damage.note(QueueDamaged("b", problem="?"))
    assert polling.share(a, ASYNC, 10) == 10  # type: ignore[arg-type]


def test_what_is_free_goes_to_who_had_the_least() -> None:
    a, b, c, polling = _three(a=4)
    a.diverted, b.diverted = 8, 1
    c.state = "interested"
    assert [one.queue for one in polling.in_turn()] == ["b", "c", "a"]
    c.state, b.diverted = "notified", 9
    assert [one.queue for one in polling.in_turn()] == ["c", "a", "b"], "c has saved up nothing"
    c.diverted = 2
    assert [one.queue for one in polling.in_turn()] == ["a", "c", "b"]


def test_strict_turns_begin_at_the_front() -> None:
    a, b = _Subscription("x", "interested"), _Subscription("x", index=1)
    turns = QueuePolling([a, b], strict=True, weights={})  # type: ignore[list-item]
    assert [turns.next() for _ in range(2)] == [a, a]
    assert not turns.pulls(b)  # type: ignore[arg-type]
    a.damage.note(QueueDamaged("a", problem="?"))  # it keeps no other one from its turn
    assert turns.pulls(b)  # type: ignore[arg-type]
    assert turns.next() is b
    a.damage.over("a")
    a.todo = ""
    assert turns.next() is b
    assert turns.pulls(b)  # type: ignore[arg-type]
