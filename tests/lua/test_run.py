"""Every driver of script calls survives a server that forgot the script, and points at the line of
an error."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
import redis.asyncio
from redis.exceptions import NoScriptError, ResponseError

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisBusy, ScriptError, WrongServer
from rqueue.protocol import exchange
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.exchange import Exchange
from rqueue.protocol.lua_folder import find_lua
from rqueue.protocol.policies import POLICIES, Policy
from rqueue.protocol.scripts import SCRIPTS, Scripts
from rqueue.transport.async_connection import AsyncConnection
from rqueue.transport.connection import Connection
from rqueue.transport.redis_client import execute

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

WHICH = """\
--- Whether the policy is part of the queue's kind.
--- KEYS: meta
--- ARGV: none
--- REPLY: 1 or 0
--- ERRORS: SCHEMA
--- @include "queue/schema"
local meta = KEYS[1]
local fault = schema_fault(redis.call('HGET', meta, 'v'))
if fault then return fault end
local left = 0
--- @each left = left(left)
return left
"""
OTHER = """\
--- Another one.
--- HOOKS: left
--- META: none
--- JOB: none
--- KEYS: none
--- STORE: list
--- ORDER: 90
--- FAST: no
--- STRUCTURE: none
--- EXCLUDES: none
local function other_left(left) return left + 1 end
"""

pytestmark = pytest.mark.each_server

ONE = ScriptCall("count", "{k}:meta", [1], int)
BROKEN = ScriptCall("broken", "{k}:meta", [1], int)
TYPO = ScriptCall("typo", "{k}:meta", [1], int)

Driver = Callable[[ScriptCall[int]], int]


@pytest.fixture(autouse=True)
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scripts:
    (tmp_path / "include").mkdir()
    (tmp_path / "count.lua").write_text(COUNT)
    (tmp_path / "include" / "fail.lua").write_text(
        "\nlocal function fail() error('on purpose') end\n"
    )
    (tmp_path / "broken.lua").write_text(HEADER + '--- @include "fail"\nfail()\n')
    (tmp_path / "typo.lua").write_text(HEADER + "local meta = = 1\n")
    found = Scripts(tmp_path)
    monkeypatch.setattr("rqueue.protocol.scripts.SCRIPTS", found)
    return found


def _client(url: str, call: ScriptCall[int]) -> int:
    with redis.Redis.from_url(url) as client:
        return execute(client, call)


def _connection(url: str, call: ScriptCall[int]) -> int:
    with redis.Redis.from_url(url) as client:
        connection = Connection(client)
        try:
            return connection.run(call)
        finally:
            connection.close()


def _begun(url: str, call: ScriptCall[int]) -> int:
    with redis.Redis.from_url(url) as client:
        connection = Connection(client)
        try:
            connection.begin(call)
            return connection.finish(call)
        finally:
            connection.close()


WAIT = ("BLPOP", "nobody", 0.01)
"""A command that blocks, as it follows a call."""


def _then(url: str, call: ScriptCall[int]) -> int:
    with redis.Redis.from_url(url) as client:
        connection = Connection(client)
        try:
            seen, woken = connection.run_then(call, WAIT)
        finally:
            connection.close()
        assert woken is None
        return seen


def _async(url: str, call: ScriptCall[int]) -> int:
    async def main() -> int:
        async with redis.asyncio.Redis.from_url(url) as client:
            connection = AsyncConnection(client)
            try:
                return await connection.run(call)
            finally:
                await connection.close()

    return asyncio.run(main())


def _async_begun(url: str, call: ScriptCall[int]) -> int:
    async def main() -> int:
        async with redis.asyncio.Redis.from_url(url) as client:
            connection = AsyncConnection(client)
            try:
                await connection.begin(call)
                return await connection.finish(call)
            finally:
                await connection.close()

    return asyncio.run(main())


def _async_then(url: str, call: ScriptCall[int]) -> int:
    async def main() -> int:
        async with redis.asyncio.Redis.from_url(url) as client:
            connection = AsyncConnection(client)
            try:
                seen, woken = await connection.run_then(call, WAIT)
            finally:
                await connection.close()
            assert woken is None
            return seen

    return asyncio.run(main())


DRIVERS = (_client, _connection, _begun, _then, _async, _async_begun, _async_then)
each_driver = pytest.mark.parametrize("run", DRIVERS, ids=lambda run: run.__name__.strip("_"))
Run = Callable[[str, ScriptCall[int]], int]


@each_driver
def test_a_flushed_script_cache_is_refilled(run: Run, private_server: EmbeddedRedis) -> None:
    with redis.Redis.from_url(private_server.url) as client:
        assert [run(private_server.url, ONE) for _ in range(2)] == [1, 2]
        client.script_flush()
        assert [run(private_server.url, ONE) for _ in range(2)] == [3, 4]
        stats = client.info("commandstats")
        loads = stats.get("cmdstat_script|load") or stats["cmdstat_script"]  # Redis 6.2
        assert loads["calls"] == (2 if "cmdstat_script|load" in stats else 3)  # with the flush
        assert "cmdstat_eval" not in stats, "such scripts may be dropped whenever a server likes"


@each_driver
def test_an_error_carries_its_place(run: Run, server: EmbeddedRedis) -> None:
    with pytest.raises(ScriptError, match=r"on purpose.*at lua/include/fail\.lua:2"):
        run(server.url, BROKEN)


@each_driver
def test_a_script_that_does_not_compile_says_where(run: Run, server: EmbeddedRedis) -> None:
    with pytest.raises(ScriptError, match=r"ompiling.*at lua/typo\.lua:6"):
        run(server.url, TYPO)


def test_a_restarted_server_is_taught_again(private_server: EmbeddedRedis) -> None:
    with redis.Redis.from_url(private_server.url) as client:
        execute(client, ONE)
        private_server.kill()
        private_server.start()
        assert execute(client, ONE) == 2


def test_a_server_that_never_learns_is_no_endless_loop() -> None:
    sent = Exchange(ONE)
    assert sent.command[0] == "EVALSHA"
    assert sent.refused(NoScriptError("No matching script."), "redis://here") is None
    assert sent.command[:2] == ("SCRIPT", "LOAD")
    assert sent.goes_on(b"sha")
    assert sent.command[0] == "EVALSHA"
    again = sent.refused(NoScriptError("No matching script."), "redis://here")
    assert isinstance(again, RedisBusy)


@pytest.mark.parametrize("name", SCRIPTS.names())
def test_every_shipped_script_compiles(client: redis.Redis, name: str) -> None:
    try:
        client.script_load(SCRIPTS.script(name).source)
    except ResponseError as error:
        pytest.fail(f"{name}: {error}")


class TestKinds:
    """A queue of another kind says so; its kind is remembered, once for each process and queue."""

    @pytest.fixture
    def other(
        self, monkeypatch: pytest.MonkeyPatch, scripts: Scripts, tmp_path: Path
    ) -> Iterator[ScriptCall[int]]:
        """A script that asks policies, and a release that knows one more of them."""
        lua = Path(str(find_lua()))
        shutil.copytree(lua / "policies", tmp_path / "policies")
        (tmp_path / "policies" / "other.lua").write_text(OTHER)
        (tmp_path / "include" / "queue").mkdir()
        shutil.copy(lua / "include/queue/schema.lua", tmp_path / "include/queue/schema.lua")
        (tmp_path / "which.lua").write_text(WHICH)
        monkeypatch.setitem(POLICIES, "other", Policy("other"))
        monkeypatch.setattr("rqueue.protocol.policies.policy.find_lua", lambda: tmp_path)
        yield (call := ScriptCall("which", "rq:{which}:meta", (), int))
        exchange.KNOWN.pop(call.key, None)

    @each_driver
    def test_it_is_learnt_once(
        self, run: Run, private_server: EmbeddedRedis, other: ScriptCall[int]
    ) -> None:
        with redis.Redis.from_url(private_server.url) as client:

            def asked() -> int:
                stats = client.info("commandstats")
                return int(stats.get("cmdstat_evalsha", {"calls": 0})["calls"])

            assert run(private_server.url, other) == 0  # nothing is there: a plain queue
            client.hset(other.key, "v", "1 levels other")
            assert run(private_server.url, other) == 1
            before = asked()
            assert run(private_server.url, other) == 1
            assert asked() == before + 1
            client.hset(other.key, "v", "1")
            assert run(private_server.url, other) == 0
            assert other.key not in exchange.KNOWN

    @each_driver
    def test_what_this_release_does_not_know_is_an_error(
        self, run: Run, private_server: EmbeddedRedis, other: ScriptCall[int]
    ) -> None:
        with redis.Redis.from_url(private_server.url) as client:
            client.hset(other.key, "v", "1 levels other.2")
            with pytest.raises(WrongServer, match=r"needs policy 'other\.2'.*too old"):
                run(private_server.url, other)
            client.delete(other.key)

    def test_a_queue_that_changes_all_the_time_is_no_endless_loop(
        self, other: ScriptCall[int]
    ) -> None:
        sent = Exchange(other)
        stamps = ["KIND 1 levels other", "KIND 1"] * 2
        ends = [sent.refused(ResponseError(stamp), "redis://here") for stamp in stamps]
        assert ends[:3] == [None] * 3
        assert isinstance(ends[3], ScriptError)
