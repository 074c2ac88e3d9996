"""Who served what, how many jobs at once, and the jobs of a window played again."""

from __future__ import annotations

import numpy as np
import pytest

from rqueue.pipeline.plan.pools import Check, pools_of, replayed, slot_of, slots_at_once
from rqueue.pipeline.plan.queueing import Load, mean_wait


def test_a_process_that_took_another_ones_place_is_the_same_worker() -> None:
    assert (
        slot_of("web@host:12:0-a1b2c3") == slot_of("web@host:12:0-ffffff") == ("web@host:12", "0")
    )
    assert slot_of("web@host:12:1-a1b2c3") == ("web@host:12", "1")
    assert slot_of("host:12:a1b2c3d4") == ("host:12:a1b2c3d4", "")


@pytest.mark.parametrize(
    ("served", "pools"),
    [
        ([], []),
        ([("a", None), ("b", None)], [("a",), ("b",)]),
        ([("a", "h:1:0-aaaaaa"), ("b", "h:1:1-bbbbbb")], [("a", "b")]),
        ([("a", "h:1:0-aaaaaa"), ("b", "h:2:0-bbbbbb")], [("a",), ("b",)]),
        # a chain: one pool serves a and b, another one b and c, and nobody d with them
        (
            [
                *((queue, "x:1:0-000000") for queue in "ab"),
                *((queue, "y:1:0-000000") for queue in "bc"),
                ("d", "z"),
                ("d", None),
            ],
            [("a", "b", "c"), ("d",)],
        ),
    ],
)
def test_queues_are_tied_by_those_who_served_them(
    served: list[tuple[str, str | None]], pools: list[tuple[str, ...]]
) -> None:
    assert pools_of(served) == pools


def test_slots_are_what_ran_at_once() -> None:
    one = [(at, at + 10) for at in range(0, 1000, 10)]

    def count(jobs: list[tuple[str | None, int, int]]) -> int | None:
        return slots_at_once(*map(list, zip(*jobs, strict=True)))  # type: ignore[arg-type]

    assert count([("h:1:0-aaaaaa", *job) for job in one]) == 1
    # its place is taken by another process; a second worker; one whose clock moved by 2 ms
    both = [("h:1:0-aaaaaa" if job[0] < 500 else "h:1:0-bbbbbb", *job) for job in one]
    assert count(both) == 1
    assert count([*both, ("h:1:1-cccccc", 5, 5)]) == 2
    assert count([*both, ("h:1:0-cccccc", 998, 1003)]) == 1
    # one that runs three at once, and three that did so for an instant only
    assert count([("h:1:0-aaaaaa", *job) for job in one for _ in range(3)]) == 3
    assert count([(None, 0, 5)]) is None


def test_jobs_are_played_again_in_order() -> None:
    arrived = np.array([0.0, 0.0, 1.0, 10.0])
    runs = np.array([3.0, 4.0, 1.0, 1.0])
    assert replayed(arrived, runs, 1).tolist() == [0, 3, 6, 0]
    assert replayed(arrived, runs, 2).tolist() == [0, 0, 2, 0]
    random = np.random.default_rng(1)
    many = replayed(
        np.cumsum(random.exponential(1 / 3, 200_000)), random.exponential(0.5, 200_000), 2
    )
    assert many.mean() == pytest.approx(mean_wait(Load(3.0, 0.5), 2), rel=0.1)


@pytest.mark.parametrize(
    ("model", "measured", "target", "contradicted"),
    [
        (0.017, 5.0, 1.0, True),  # one pool planned as if it had been three
        (2.0, 5.0, 1.0, False),
        (0.01, 0.1, 1.0, False),  # a wake-up costs that
        (0.01, 0.4, 5.0, False),  # far below the target: no matter
        (5.0, 0.2, 1.0, True),
    ],
)
def test_what_contradicts(model: float, measured: float, target: float, contradicted: bool) -> None:
    assert Check(2, model, measured, target).contradicted is contradicted
