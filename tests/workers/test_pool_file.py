"""Options of a pool: from the file, from the environment, from the command line."""

import tomllib
from pathlib import Path

import pytest

from rqueue.errors import ConfigError
from rqueue_workers.exit_codes import Exit
from rqueue_workers.pool_file import CLIENT_OPTIONS, OPTIONS, load_pool_file
from tests.workers.pools import ROOT

EVERYTHING = """
app = ["shop.tasks", "mail.tasks"]
queues = ["urgent", "default"]
processes = 4
threads = 8
async_slots = 50
strict = true
priority = 5
prefetch = 10
max_jobs = 10000
max_memory = "512MB"
drain = "1m"
grace = 5
time_limit = "10m"
soft_time_limit = "9m 30s"
name = "shop"
pidfile = "/run/shop.pid"
quiet = true
log_level = "debug"
log_format = "json"
patience = "30s"

url = "redis://localhost:6379/0"
namespace = "shop"
lease = 60
connect_timeout = "2s"
command_timeout = 10
max_body = "1MB"

[signing_keys]
k2 = "the new secret of ours"
k1 = "the old secret of ours"
"""


def write(directory: Path, text: str) -> Path:
    path = directory / "pool.toml"
    path.write_text(text)
    return path


def test_a_file_may_say_everything(tmp_path: Path) -> None:
    pool = load_pool_file(write(tmp_path, EVERYTHING), {}, {})
    worker, settings = pool.worker, pool.worker.settings
    assert (pool.processes, pool.pidfile, pool.quiet) == (4, "/run/shop.pid", True)
    assert (pool.log_level, pool.log_format) == ("debug", "json")
    assert (pool.patience, pool.grace) == (30, 5)
    assert worker.app == ("shop.tasks", "mail.tasks")
    assert worker.queues == ("urgent", "default")
    assert (worker.threads, worker.async_slots, worker.prefetch) == (8, 50, 10)
    assert (worker.strict, worker.priority, worker.name) == (True, 5, "shop")
    assert (worker.max_jobs, worker.max_rss) == (10_000, 512 * 1024**2)
    assert (worker.drain, worker.time_limit, worker.soft_time_limit) == (60, 600, 570)
    assert (settings.url, settings.namespace) == ("redis://localhost:6379/0", "shop")
    assert (settings.connect_timeout, settings.command_timeout) == (2, 10)
    assert (settings.lease_ms, settings.max_body) == (60_000, 1024**2)
    assert list(settings.signing_keys) == ["k2", "k1"]


def test_the_command_line_wins_over_the_environment_and_this_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, 'app = "a"\nurl = "redis://file"\nlease = "10s"\nnamespace = "file"\n')
    environ = {"RQUEUE_URL": "redis://env", "RQUEUE_LEASE": "20s"}
    settings = load_pool_file(path, {"url": "redis://line", "lease": None}, environ).worker.settings
    assert (settings.url, settings.lease_ms, settings.namespace) == ("redis://line", 20_000, "file")


def test_weights_of_the_command_line() -> None:
    given = {"app": "a", "url": "redis://x", "queues": ("a=b", "c"), "weights": ("a=b=5", "c=2")}
    assert load_pool_file(None, given, {}).worker.weights == {"a=b": 5, "c": 2}
    for wrong in ("c", "c=", "c=x", "=3"):
        with pytest.raises(ConfigError, match="weights"):
            load_pool_file(None, given | {"weights": (wrong,)}, {})


def test_without_a_file() -> None:
    pool = load_pool_file(None, {"app": ("a",), "url": "redis://x", "processes": None}, {})
    assert (pool.worker.app, pool.worker.queues, pool.processes) == (("a",), (), 2)


@pytest.mark.parametrize(
    ("text", "setting", "problem"),
    [
        ('qqq = 3\napp = "a"', "qqq", "url, namespace, signing_keys, lease, connect_timeout"),
        ('[[pool]]\napp = "a"', "pool", "one pool per file: write its options at the top"),
        (
            'app = "a"\nurl = "redis://x"\ntime_limit = 1\nsoft_time_limit = 2',
            "soft_time_limit",
            "be shorter",
        ),
        ('limit = "10m"', "limit", "did you mean 'time_limit'?"),
        ('soft_limit = "10m"', "soft_limit", "did you mean 'soft_time_limit'?"),
        ('log_level = "loud"', "log_level", "not one of debug, info, warning, error"),
        ('proceses = 3\napp = "a"', "proceses", "did you mean 'processes'?"),
        ('processes = 0\napp = "a"', "processes", "a whole number from 1 to 1000, not 0"),
        ('processes = true\napp = "a"', "processes", "a whole number"),
        ('drain = "soon"\napp = "a"', "drain", "is no duration"),
        ('max_memory = "much"\napp = "a"', "max_memory", "is no size"),
        ("app = 3", "app", "a name or a list of names"),
        ('app = "a"\nqueues = ["q", "q"]', "queues", "twice"),
        ('app = "a"\nqueues = [""]', "queues", "is empty"),
        ('app = "a"\nname = "two words"', "name", "no blanks"),
        ('app = "a"\nstrict = "yes"', "strict", "true or false"),
        ('app = "a"\nweights = {q = 0}', "weights of 'q'", "a whole number from 1 to 1000"),
        (
            'app = "a"\nqueues = ["d"]\nweights = {q = 2}',
            "weights",
            "does not serve 'q'; it serves d",
        ),
        ('app = "a"\nqueues = ["d"]\nstrict = true\nweights = {d = 2}', "weights", "with strict"),
        ('app = "a"\nstrict = true', "strict", "name the queues"),
        ('app = "a"\nqueues = []', "queues", "names no queue"),
        ('app = "a"\npidfile = 3', "pidfile", "text"),
        ('[redis]\nurl = "redis://y"', "redis", "at the top, without \\[redis\\]: url = "),
        ('[redis]\nhost = "y"', "redis", 'url = "redis://host:6379/0"'),
        ('[pool]\napp = "a"\nprocesses = 2', "pool", "app = ..., processes = ..."),
    ],
)
def test_what_is_wrong_is_named_with_its_file(
    text: str, setting: str, problem: str, tmp_path: Path
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=problem.replace("?", "[?]")) as refused:
        load_pool_file(path, {}, {"RQUEUE_URL": "redis://x"})
    assert refused.value.setting == f"{path}: {setting}"


@pytest.mark.parametrize(
    ("options", "setting"),
    [
        ({"app": ["a"]}, "url"),
        ({"url": "redis://x"}, "app"),
        (
            {"app": ["a"], "url": "redis://x", "time_limit": 5, "soft_time_limit": 5},
            "soft_time_limit",
        ),
        ({"app": ["a"], "url": "http://x"}, "url"),
        ({"app": ["a"], "url": "redis://x", "lease": "10ms"}, "lease"),
    ],
)
def test_what_is_missing_or_does_not_fit_is_named(options: dict[str, object], setting: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_pool_file(None, options, {})
    assert refused.value.setting == setting


def test_a_file_that_is_not_there_or_is_no_toml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_pool_file(tmp_path / "none.toml", {}, {})
    with pytest.raises(ConfigError, match="is not TOML"):
        load_pool_file(write(tmp_path, "app = "), {}, {})


def test_the_documentation_shows_every_option_and_exit_code(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "workers.md").read_text()
    shown = text.split("```toml\n")[1].split("```")[0]
    load_pool_file(write(tmp_path, shown), {}, {})
    assert set(tomllib.loads(shown)) == set(OPTIONS) | set(CLIENT_OPTIONS)
    assert all(f"\n| {code.value} | " in text for code in Exit)
