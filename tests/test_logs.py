"""What the loggers do to their records."""

import logging

import pytest

from rqueue.logs import FIRST_LINES, LAST_LINES, logger


def _there(left: int) -> None:
    _back(left - 1)


def _back(left: int) -> None:
    if left <= 0:
        raise RecursionError("deep")
    _there(left - 1)


@pytest.mark.parametrize(("depth", "folded"), [(2, False), (400, True)])
def test_the_traceback_of_a_recursion_is_folded(
    depth: int, folded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Of functions that call each other: Python folds only a line that repeats itself."""
    log = logger("rqueue.test_logs")
    with caplog.at_level(logging.ERROR, log.name):
        try:
            _there(depth)
        except RecursionError:
            log.exception("failed")
    trace = (caplog.records[-1].exc_text or "").splitlines()
    assert trace[0].startswith("Traceback")
    assert trace[-1] == "RecursionError: deep"
    assert any("lines ...]" in line for line in trace) is folded
    assert len(trace) <= FIRST_LINES + LAST_LINES + 1
