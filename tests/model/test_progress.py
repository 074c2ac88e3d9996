"""What a job may report."""

import math
from typing import Any

import pytest

from rqueue.errors import ConfigError
from rqueue.model.progress import Progress, checked, packed, progress_of


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [
        (-1, 10, ""),
        (1, -10, ""),
        (math.nan, 10, ""),
        (1, math.nan, ""),
        (math.inf, None, ""),
        (10**400, None, ""),
        (2**53 + 1, None, ""),
        (True, None, ""),
        ("3", 10, ""),
        (None, 10, ""),
        (3, "10", ""),
        (3, 10, None),
        (3, 10, b"x"),
    ],
)
def test_what_says_nothing_is_refused(done: Any, total: Any, text: Any) -> None:
    with pytest.raises(ConfigError, match="progress"):
        checked(done, total, text)


@pytest.mark.parametrize(
    ("report", "fraction", "shown"),
    [
        ((3, 4, "pages"), 0.75, "3/4 (75%) pages"),
        ((0, 0, ""), 1.0, "0/0 (100%)"),  # there was nothing to do
        ((5, 4, ""), 1.0, "5/4 (100%)"),
        ((2.5, None, "MB"), None, "2.5 MB"),
        ((7, None, "\ud800"), None, "7 ?"),
    ],
)
def test_what_is_reported_is_read(report: Any, fraction: float | None, shown: str) -> None:
    found = progress_of("2", "1000", packed(checked(*report)))
    assert found is not None
    assert (found.fraction, str(found), found.delivery, found.at_ms) == (fraction, shown, 2, 1000)


def test_a_long_text_is_cut() -> None:
    text = checked(1, None, "x" * 1_000_000)[2]
    assert (len(text), text[-1]) == (200, "…")
    assert len(packed(checked(2**53, 2**53, "\U0001f600" * 300))) < 4000
    assert len(packed(checked(1, None, "\0" * 300))) < 4000


@pytest.mark.parametrize("said", [b"", b"{}", b"[1,2]", b"7"])
def test_what_cannot_be_read_is_none(said: bytes) -> None:
    assert progress_of("1", "2", said) is None


def test_progress_is_a_value() -> None:
    assert Progress(1, 2, "", 3, 4) == Progress(1, 2, "", 3, 4)
