"""Running a script survives a server that has forgotten it, and points at the line of an error."""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoScriptError, ResponseError

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.scripts import SCRIPTS, Scripts, run

HEADER = """\
--- Count a call.
--- KEYS: meta
--- ARGV: step
--- REPLY: the count
--- ERRORS: none
"""
COUNT = (
    HEADER
    + """\
local meta = KEYS[1]
local step = ARGV[1]
return redis.call('INCRBY', meta, step)
"""
)

FAIL = "\nlocal function fail() error('on purpose') end\n"

pytestmark = pytest.mark.each_server


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    (tmp_path / "include").mkdir()
    (tmp_path / "count.lua").write_text(COUNT)
    (tmp_path / "include" / "fail.lua").write_text(
        "\nlocal function fail() error('on purpose') end\n"
    )
    (tmp_path / "broken.lua").write_text(HEADER + '--- @include "fail"\nfail()\n')
    (tmp_path / "typo.lua").write_text(HEADER + "local meta = = 1\n")
    return Scripts(tmp_path)


def calls(client: redis.Redis, command: str) -> int:
    stats = client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})
    return int(stats["calls"])


@pytest.fixture
def alone(private_server: EmbeddedRedis) -> redis.Redis:
    """A client of a server that nobody else flushes or counts on."""
    return redis.Redis.from_url(private_server.url)


def test_the_source_is_sent_once(alone: redis.Redis, scripts: Scripts) -> None:
    with alone as client:
        count = scripts.script("count")
        assert [run(client, count, ["k"], [2]) for _ in range(3)] == [2, 4, 6]
        assert calls(client, "script|load") + calls(client, "script") == 1
        assert calls(client, "eval") == 0


def test_a_flushed_script_cache_is_refilled(alone: redis.Redis, scripts: Scripts) -> None:
    with alone as client:
        count = scripts.script("count")
        run(client, count, ["k"], [1])
        client.script_flush()
        assert run(client, count, ["k"], [1]) == 2


def test_a_restarted_server_is_taught_again(
    private_server: EmbeddedRedis, scripts: Scripts
) -> None:
    with redis.Redis.from_url(private_server.url) as client:
        count = scripts.script("count")
        run(client, count, ["k"], [1])
        private_server.kill()
        private_server.start()
        assert run(client, count, ["k"], [1]) == 2


def test_a_flush_between_teaching_and_asking_does_not_matter(
    alone: redis.Redis, scripts: Scripts
) -> None:
    class Forgetful:
        """A client whose server is flushed by somebody after each SCRIPT LOAD."""

        def execute_command(self, *command: object) -> object:
            reply = alone.execute_command(*command)
            if command[0] == "SCRIPT LOAD":
                alone.script_flush()
            return reply

    with alone:
        assert run(Forgetful(), scripts.script("count"), ["k"], [5]) == 5  # type: ignore[arg-type]


def test_an_error_carries_its_place(client: redis.Redis, scripts: Scripts) -> None:
    with pytest.raises(ResponseError, match="on purpose") as caught:
        run(client, scripts.script("broken"), ["k"])
    assert caught.value.__notes__ == ["in rqueue's script broken, at lua/include/fail.lua:2"]


def test_a_script_that_does_not_compile_says_where(client: redis.Redis, scripts: Scripts) -> None:
    with pytest.raises(ResponseError, match="compiling") as caught:
        run(client, scripts.script("typo"), ["k"])
    assert caught.value.__notes__ == ["in rqueue's script typo, at lua/typo.lua:6"]


@pytest.mark.parametrize("name", SCRIPTS.names())
def test_every_shipped_script_compiles(client: redis.Redis, name: str) -> None:
    client.script_load(SCRIPTS.script(name).source)


def test_loaded_scripts_can_be_called_by_their_sha(
    make_server: Callable[..., EmbeddedRedis],
) -> None:
    script = SCRIPTS.script(SCRIPTS.names()[0])
    with redis.Redis.from_url(make_server().url) as client:
        assert client.script_exists(script.sha) == [False]
        with pytest.raises(NoScriptError):
            client.evalsha(script.sha, 1, "rqueue:{q}:meta")
        client.script_load(script.source)
        assert client.script_exists(script.sha) == [True]
