import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from rqueue.errors import ConfigError
from rqueue.spark.options import (
    EVERY,
    OPTIONS,
    HistoryRead,
    HistoryStream,
    JobsRead,
    JobsWrite,
    Place,
    markdown,
    read_options,
)

MODES: tuple[type[Place], ...] = (HistoryRead, HistoryStream, JobsRead, JobsWrite)


@pytest.mark.parametrize("mode", MODES)
def test_the_table_holds_what_a_mode_has_and_nothing_else(mode: type[Place]) -> None:
    listed = [option.field for option in OPTIONS if mode in option.modes]
    assert sorted(listed) == sorted(field.name for field in fields(mode))


@pytest.mark.parametrize("mode", MODES)
def test_every_default_is_allowed(mode: type[Place]) -> None:
    assert read_options(mode, {}) == read_options(
        mode, {option.name: option.default for option in OPTIONS if mode in option.modes}
    )


def test_defaults() -> None:
    found = read_options(HistoryStream, {})
    assert found.queues == EVERY
    assert found.fail_on_data_loss is True
    assert (found.connect_timeout, found.command_timeout) == (5.0, 30.0)
    assert read_options(HistoryRead, {}).since == "-"


def test_the_case_of_a_name_does_not_count() -> None:
    assert read_options(HistoryRead, {"PARTITIONROWS": "7"}).partition_rows == 7
    assert read_options(HistoryStream, {"failondataloss": "FALSE"}).fail_on_data_loss is False


def test_names_of_queues() -> None:
    def queues(text: str) -> tuple[str, ...]:
        return read_options(HistoryRead, {"queues": text}).queues

    assert queues("a, b,a") == ("a", "b")
    assert queues(r"with\,comma,c") == ("with,comma", "c")
    assert queues("*") == EVERY
    with pytest.raises(ConfigError, match="queues: names no queue"):
        queues(" , ")
    with pytest.raises(ConfigError, match=r"queues: .*201 characters"):
        queues("x" * 201)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("-", "-"),
        ("earliest", "-"),
        ("latest", "+"),
        ("1700000000000", "1700000000000"),
        ("1700000000000-7", "1700000000000-7"),
        ("2023-11-14T22:13:20Z", "1700000000000"),
        ("2023-11-14T23:13:20.250+01:00", "1700000000250"),
    ],
)
def test_moments(text: str, moment: str) -> None:
    assert read_options(HistoryRead, {"since": text}).since == moment


@pytest.mark.parametrize(
    ("mode", "name", "text", "said"),
    [
        (HistoryRead, "since", "1-2-3", "since: '1-2-3' is neither a time"),
        (HistoryRead, "partitionRows", "0", "partitionRows: 0 is below 1"),
        (HistoryRead, "connectTimeout", "soon", "connectTimeout: 'soon' is no duration"),
        (HistoryRead, "namespace", "a b", "namespace: namespace 'a b' must be"),
        (HistoryStream, "until", "+", "until: no option of 'history stream'"),
        (JobsRead, "states", "ready,gone", "states: 'gone' is no state; there are ready"),
        (JobsWrite, "badRows", "hide", "badRows: 'hide' is not one of"),
        (JobsWrite, "zzz", "1", "zzz: there is no such option; there are url"),
        (JobsWrite, "batchsizes", "1", "did you mean batchSize"),
    ],
)
def test_what_is_wrong_is_named(mode: type[Place], name: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_options(mode, {name: text})
    assert said in str(error.value)


def test_options_of_spark_s_own_are_let_pass() -> None:
    assert read_options(JobsWrite, {"checkpointLocation": "/x"}) == read_options(JobsWrite, {})


def test_the_module_prints_the_table_of_the_docs() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "rqueue.spark.options"], capture_output=True, text=True, check=True
    ).stdout
    assert said == markdown()
    for option in OPTIONS:
        assert f"| `{option.name}` |" in said
    page = Path(__file__).resolve().parents[2] / "docs/spark.md"
    assert said in page.read_text(), "python -m rqueue.spark.options prints what docs/spark.md has"
