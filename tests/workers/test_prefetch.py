"""PrefetchWindow: about 50 ms of work is held, however long a job takes."""

import pytest

from rqueue_workers.worker.prefetch import ENOUGH, ENOUGH_S, FIRST, MOST, PrefetchWindow


def settled(seconds: float, slots: int = 1, rounds: int = 60) -> PrefetchWindow:
    credit = PrefetchWindow(slots)
    for _ in range(rounds):
        credit.sample(credit.window, credit.window * seconds)
    return credit


@pytest.mark.parametrize(
    ("seconds", "slots", "window"),
    [(0.000_001, 1, MOST), (0.001, 1, 50), (0.01, 1, 5), (0.2, 1, 1), (30, 1, 1), (0.1, 100, 50)],
)
def test_the_window_is_about_fifty_milliseconds(seconds: float, slots: int, window: int) -> None:
    assert abs(settled(seconds, slots).window - window) <= 1


def test_it_grows_fast_but_not_at_once() -> None:
    credit = PrefetchWindow()
    windows = [credit.window]
    for _ in range(3):
        credit.sample(credit.window, credit.window * 1e-6)
        windows.append(credit.window)
    assert windows == [FIRST, 4 * FIRST, 16 * FIRST, MOST]


def test_what_was_added_teaches_once_and_all_together() -> None:
    one, other = settled(0.001), settled(0.001)
    for _ in range(ENOUGH):
        one.jobs += 1
        one.seconds += ENOUGH_S
    one.learn()
    other.sample(ENOUGH, ENOUGH * ENOUGH_S)
    assert one.mean == pytest.approx(other.mean) and one.window == other.window
    mean = one.mean
    one.learn()
    assert (one.mean, one.jobs, one.seconds) == (mean, 0, 0.0)


def test_a_rare_long_job_does_not_undo_it() -> None:
    credit = settled(0.001)
    credit.sample(1, 30)
    assert credit.window >= 10
    for _ in range(5):
        credit.sample(credit.window, credit.window * 0.001)
    assert credit.window >= 25


def test_jobs_that_have_become_long_are_noticed() -> None:
    credit = settled(0.0001)
    for _ in range(8):
        credit.sample(1, 1.0)
    assert credit.window == 1


def test_a_fixed_window_stays() -> None:
    credit = PrefetchWindow(1, 7)
    credit.sample(7, 100)
    assert credit.window == 7
    credit.sample(0, 0)
    assert credit.patience <= 5.0
