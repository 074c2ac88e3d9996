"""What the plots of a report say where there is nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from math import isnan, nan
from typing import Any

import pytest


@pytest.fixture
def with_gaps() -> Callable[..., Any]:
    """Imported here: matplotlib takes each process that collects this half a second."""
    from rqueue.pipeline.report.plots import with_gaps

    return with_gaps


def test_a_line_does_not_bridge_stretches_without_rows(with_gaps: Callable[..., Any]) -> None:
    times, values = with_gaps([1.0, 2.0, 6.0, 7.0], [10, 20, 60, 70], 1.0, 0.0)
    assert times == [1.0, 2.0, 3.0, 5.0, 6.0, 7.0]
    assert values == [10, 20, 0.0, 0.0, 60, 70]


def test_a_line_ends_where_nothing_is_known(with_gaps: Callable[..., Any]) -> None:
    _, values = with_gaps([1.0, 3.0], [10, 30], 1.0, nan)
    assert (values[0], values[-1]) == (10, 30)
    assert all(isnan(value) for value in values[1:-1])


def test_a_line_without_gaps_is_left_alone(with_gaps: Callable[..., Any]) -> None:
    assert with_gaps([1.0, 2.0, 3.0], [1, 2, 3], 1.0, 0.0) == ([1.0, 2.0, 3.0], [1, 2, 3])
    assert with_gaps([], [], 1.0, 0.0) == ([], [])
