"""Whatever is printed or logged says something and does nothing else."""

import io
import json
import logging
import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rqueue.errors import JobFailed, UnknownJob
from rqueue.logs import logger
from rqueue.text.escape import escaped, escaped_json, escaped_lines, shown, steering
from tests.support.hostile import HOSTILE, STORABLE, false_lines, steers

TEXT = st.text() | st.text(STORABLE)


@given(TEXT)
def test_escaped_text_is_one_line_that_steers_nothing(text: str) -> None:
    for safe in (escaped(text), shown(text)):
        assert steering(safe) == ""
        assert steers(safe) == []
        assert "\n" not in safe
    assert escaped_lines(text).count("\n") == text.count("\n")
    assert steers(escaped_lines(text)) == []


@pytest.mark.parametrize("text", ["plain", "Grüße", "می‌خواهم", "👩‍💻", "日本語", "a b"])
def test_letters_of_all_languages_stay(text: str) -> None:
    assert escaped(text) == text
    assert steering(text) == ""


@given(st.dictionaries(TEXT, TEXT))
def test_json_keeps_its_values(document: dict[str, str]) -> None:
    text = {"".join(c for c in k if not 0xD800 <= ord(c) < 0xE000): "" for k in document}
    for option in (None, orjson.OPT_INDENT_2):
        safe = escaped_json(orjson.dumps(text, option=option))
        assert json.loads(safe) == text
        assert steers(safe) == []


def test_errors_quote_hostile_ids_harmlessly() -> None:
    said = str(UnknownJob(STORABLE, queue=STORABLE))
    assert steers(said) == []
    assert "\n" not in said
    failed = JobFailed(
        STORABLE,
        type=STORABLE,
        remote_message="x",
        remote_traceback=f"one\n{HOSTILE}\n",
        attempts=2,
    )
    assert steers(str(failed)) == []
    assert not false_lines(str(failed).partition("\n\nin the worker")[0])
    assert failed.id == STORABLE, "the fact is the fact"


def test_loggers_of_rqueue_escape_what_they_are_called_with() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
    log = logger("rqueue.test_escape")
    assert logger("rqueue.test_escape") is log
    assert len(log.filters) == 1
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        log.info("job %s took %.1f s, %d times: %s", HOSTILE, 1.25, 3, ValueError(HOSTILE))
        log.info(HOSTILE)  # a text that is no format
        try:
            raise ValueError(HOSTILE)
        except ValueError:
            log.exception("failed: %s", None)
    finally:
        log.removeHandler(handler)
    said = out.getvalue()
    assert steers(said) == []
    assert "took 1.2 s, 3 times" in said
    assert "Traceback (most recent call last)" in said
    # a traceback has lines, and so has the text of the exception: all of them are indented
    assert false_lines(said) == []
    assert sys.exc_info() == (None, None, None)
