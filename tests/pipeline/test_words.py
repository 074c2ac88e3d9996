"""Numbers as people read them."""

from __future__ import annotations

import pytest

from rqueue.pipeline import number_words


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (None, "–"), (0, "0 ms"), (0.4, "0.4 ms"), (7, "7 ms"), (999, "999 ms"), (1000, "1 s"),
        (3240, "3.2 s"), (9960, "10 s"), (59_900, "60 s"), (59_960, "1 min"), (61_000, "1 min 1 s"),
        (3_600_000, "1 h"), (7_500_000, "2 h 5 min"), (86_400_000 + 4 * 3_600_000, "1 d 4 h"),
        (-1500, "-1.5 s"),
    ],
)  # fmt: skip
def test_duration(ms: float | None, said: str) -> None:
    assert number_words.duration(ms) == said


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (None, "–"), (0, "0 %"), (0.0004, "< 0.1 %"), (0.002, "0.2 %"), (0.25, "25 %"),
        (0.989, "98.9 %"), (0.9996, "> 99.9 %"), (1, "100 %"), (1.7, "170 %"),
    ],
)  # fmt: skip
def test_share(part: float | None, said: str) -> None:
    assert number_words.share(part) == said


@pytest.mark.parametrize(
    ("per_second", "said"),
    [
        (None, "–"), (1234.4, "1,234/s"), (2.16, "2.2/s"), (0.5, "30/min"), (0.02, "1.2/min"),
        (0.001, "3.6/h"), (0, "0/s"),
    ],
)  # fmt: skip
def test_rate(per_second: float | None, said: str) -> None:
    assert number_words.rate(per_second) == said


def test_count_and_moment() -> None:
    assert (number_words.count(1234567), number_words.count(None)) == ("1,234,567", "–")
    assert number_words.moment("2026-01-01T00:00:07.250+00:00") == "2026-01-01 00:00:07"
    assert number_words.moment(None) == "–"
