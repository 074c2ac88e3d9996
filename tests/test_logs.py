"""What the loggers do to their records."""

import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.logs import FIRST_LINES, LAST_LINES, TRACE_MOST, JsonFormatter, logger


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
    assert trace[0].startswith("  Traceback")
    assert trace[-1] == "  RecursionError: deep"
    assert any("lines ...]" in line for line in trace) is folded
    assert len(trace) <= FIRST_LINES + LAST_LINES + 1


def _logged(formatter: logging.Formatter, text: str) -> str:
    """What a handler writes of an error with this text, and of the text as a message."""
    log, stream = logger("rqueue.test_logs"), io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    log.addHandler(handler)
    log.propagate = False
    try:
        raise ValueError(text)
    except ValueError:
        log.error("failed: %s", text, exc_info=True)
    finally:
        log.removeHandler(handler)
        log.propagate = True
    return stream.getvalue()


@given(st.text() | st.text("\n\r\x0b\x0c\x1c\x85\u2028 ab"))
def test_the_text_of_an_error_makes_no_record(text: str) -> None:
    lines = _logged(logging.Formatter("%(levelname)s %(message)s"), text).splitlines()
    assert [line for line in lines if not line.startswith("  ")] == [lines[0]]
    (line,) = _logged(JsonFormatter(), text).splitlines()
    assert json.loads(line)["exception"].startswith("Traceback")


def test_the_text_of_an_error_is_cut() -> None:
    text = "y" * 5_000_000
    for formatter in (logging.Formatter(), JsonFormatter()):
        said = _logged(formatter, text)
        assert len(said) < 2 * TRACE_MOST
        assert "characters ...]" in said and said.rstrip('"}\n').endswith("yyy")
