from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from rqueue.errors import ConfigError
from rqueue.model.times import parse_duration, parse_size, parse_when
from rqueue.settings import Settings, parse_signing_keys, redact
from rqueue.transport.redis_client import open_client, url_of

SECRET = "a secret of enough bytes"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1.5s", 1.5),
        ("10m", 600),
        ("250ms", 0.25),
        ("2h 30m", 9000),
        ("1d12h", 129600),
        ("1w", 604800),
        (" 3 ", 3),
        (".5s", 0.5),
        ("7S", 7),
        (3, 3),
        (0, 0),
        (0.5, 0.5),
        (timedelta(minutes=2), 120),
    ],
)
def test_durations(value: Any, seconds: float) -> None:
    assert parse_duration(value) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "value", ["", " ", "s", "10 parsecs", "1m x", "-1s", "1e3", "nan", -1, float("inf"), 1e12, True]
)
def test_what_is_no_duration(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"^limit: "):
        parse_duration(value, "limit")


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("64MB", 64 * 1024**2),
        ("1.5GiB", 3 * 1024**3 // 2),
        ("512k", 512 * 1024),
        ("10", 10),
        ("10b", 10),
        ("2 tb", 2 * 1024**4),
        (7, 7),
    ],
)
def test_sizes(value: Any, size: int) -> None:
    assert parse_size(value) == size


@pytest.mark.parametrize("value", ["", "MB", "-1", "1 XB", -1, True, 1.5, None])
def test_what_is_no_size(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"^max_body: "):
        parse_size(value, "max_body")


def test_when() -> None:
    moment = datetime(2030, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    ms = 1893553445678
    assert parse_when(moment) == (ms, None)
    assert parse_when(moment.astimezone(timezone(timedelta(hours=5)))) == (ms, None)
    assert parse_when(ms / 1000) == (ms, None)
    assert parse_when(1893553445) == (1893553445000, None)
    assert parse_when("2030-01-02T03:04:05.678+00:00") == (ms, None)
    assert parse_when(timedelta(seconds=1.5)) == (None, 1500)
    assert parse_when("10m") == (None, 600_000)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (datetime(2030, 1, 1), "no time zone"),
        ("2030-01-01T08:00", "write 2030-01-01T08:00:00Z for UTC, or 2030-01-01T08:00:00[+]02:00"),
        ("2030-01-01", "no time zone"),
        (60, "for a delay pass a timedelta"),
        (float("nan"), "no Unix time"),
        (timedelta(seconds=-1), "is past"),
        ("soon", "neither a duration"),
        (None, "a datetime, timedelta or Unix time"),
        (True, "a datetime, timedelta or Unix time"),
    ],
)
def test_what_is_no_moment(value: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse_when(value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://:pw@h:1/2", "redis://***@h:1/2"),
        ("rediss://user:p@ss/w@h", "rediss://***@h"),
        ("unix:///run/r.sock?db=1&password=pw", "unix:///run/r.sock?db=***&password=***"),
        ("user:pw@host", "***"),
        ("nonsense", "nonsense"),
    ],
)
def test_credentials_are_hidden(url: str, shown: str) -> None:
    assert redact(url) == shown


def test_signing_keys() -> None:
    assert parse_signing_keys("a:x:y, b:z") == {"a": "x:y", "b": "z"}
    assert list(parse_signing_keys("b:1,a:2")) == ["b", "a"]
    for text in ("", "a", "a:", ":s", "a:1,,b:2", "a:1,a:2"):
        with pytest.raises(ConfigError) as caught:
            parse_signing_keys(text)
        assert "secret" not in str(caught.value).replace("id:secret", "")


def test_defaults() -> None:
    settings = Settings.load({})
    assert settings == Settings()
    assert settings.url is None
    assert settings.namespace == "rqueue"
    assert settings.lease_ms == 30_000
    assert settings.signer is None


def test_the_environment_and_what_goes_before_it() -> None:
    environ = {
        "RQUEUE_URL": "redis://:pw@h:6379/1",
        "RQUEUE_NAMESPACE": "shop",
        "RQUEUE_SIGNING_KEYS": f"k1:{SECRET}",
        "RQUEUE_LEASE": "1m",
        "RQUEUE_CONNECT_TIMEOUT": "250ms",
        "RQUEUE_COMMAND_TIMEOUT": "",
        "RQUEUE_MAX_BODY": "1MB",
        "OTHER": "x",
    }
    settings = Settings.load(environ, namespace="mine", lease_ms=5000, max_body=None)
    assert settings.url == "redis://:pw@h:6379/1"
    assert settings.namespace == "mine"
    assert settings.lease_ms == 5000
    assert settings.connect_timeout == 0.25
    assert settings.command_timeout == 15.0
    assert settings.max_body == 1024**2
    assert settings.signer is not None
    assert settings.signer.key_ids == ("k1",)
    assert "pw" not in repr(settings)
    assert SECRET not in repr(settings)


@pytest.mark.parametrize("url", ["redis://", "redis:///1", "redis://:6379", "redis://:pw@/0"])
def test_a_url_without_a_host_is_of_this_one(url: str) -> None:
    assert Settings(url=url).url == url
    assert url_of(open_client(url)).startswith("redis://localhost:6379/")


@pytest.mark.parametrize(
    ("environ", "setting", "problem"),
    [
        ({"RQUEUE_URL": "http://h"}, "RQUEUE_URL", "must begin with redis://"),
        ({"RQUEUE_URL": "redis://h/99x"}, "RQUEUE_URL", "no database by its number"),
        ({"RQUEUE_URL": "redis://h/production"}, "RQUEUE_URL", "no database by its number"),
        ({"RQUEUE_URL": "redis://h//prod"}, "RQUEUE_URL", "no database by its number"),
        ({"REDIS_URL": "rediss://h/1/2"}, "REDIS_URL", "no database by its number"),
        ({"RQUEUE_URL": "redis://h:x"}, "RQUEUE_URL", "is no URL"),
        ({"RQUEUE_URL": "unix://"}, "RQUEUE_URL", "no path"),
        ({"RQUEUE_NAMESPACE": "a{b"}, "RQUEUE_NAMESPACE", "must be 1 to 64"),
        ({"RQUEUE_SIGNING_KEYS": "k1:short"}, "RQUEUE_SIGNING_KEYS", "shorter than 16"),
        ({"RQUEUE_SIGNING_KEYS": "x"}, "RQUEUE_SIGNING_KEYS", "id:secret"),
        ({"RQUEUE_LEASE": "10ms"}, "RQUEUE_LEASE", "not from 1 s"),
        ({"RQUEUE_LEASE": "long"}, "RQUEUE_LEASE", "is no duration"),
        ({"RQUEUE_CONNECT_TIMEOUT": "0"}, "RQUEUE_CONNECT_TIMEOUT", "not from 1 ms"),
        ({"RQUEUE_MAX_BODY": "1"}, "RQUEUE_MAX_BODY", "not from 1 KB"),
    ],
)
def test_a_wrong_variable_is_named(environ: dict[str, str], setting: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as caught:
        Settings.load(environ)
    assert caught.value.setting == setting


def test_a_wrong_password_is_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        Settings.load({"RQUEUE_URL": "http://u:hidden@h"})
    assert "hidden" not in str(caught.value)


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="no such setting"):
        Settings.load({}, lease="30s")


def test_a_variable_that_is_misspelt_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    environ = {"RQUEUE_COMAND_TIMEOUT": "3", "RQUEUE_DEPLOY_COLOR": "red", "RQUEUE_LEASE": "9s"}
    for _ in range(2):
        Settings.load(environ)
    (record,) = caplog.records
    said = "RQUEUE_COMAND_TIMEOUT is no setting of rqueue and says nothing: RQUEUE_COMMAND_TIMEOUT?"
    assert record.getMessage() == said


BERLIN = ZoneInfo("Europe/Berlin")


def test_a_time_that_does_not_exist_is_said(caplog: pytest.LogCaptureFixture) -> None:
    """As Python takes it: an error in one night of a year would be worse, and cron has none."""
    gap = datetime(2026, 3, 29, 2, 30, tzinfo=BERLIN)
    assert parse_when(gap).at_ms == gap.timestamp() * 1000
    assert "2026-03-29 02:30:00 does not exist in Europe/Berlin" in caplog.text
    assert "it is taken for 2026-03-29 03:30:00+02:00" in caplog.text


@pytest.mark.parametrize(
    "time",
    [
        datetime(2026, 3, 29, 3, 0, tzinfo=BERLIN),
        datetime(2026, 3, 29, 1, 59, 59, 999_999, tzinfo=BERLIN),
        datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN),
        datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
        datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
        "2026-03-29T02:30:00+01:00",
    ],
)
def test_one_that_exists_is_nothing_to_speak_of(
    caplog: pytest.LogCaptureFixture, time: datetime | str
) -> None:
    parse_when(time)
    assert not caplog.records
