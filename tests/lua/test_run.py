"""Every driver of script calls survives a server that forgot the script, and points at the line of
an error."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
import redis.asyncio
from redis.exceptions import NoScriptError, ResponseError

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import RedisBusy, ScriptError
from rqueue.protocol.call import ScriptCall
from rqueue.protocol.exchange import Exchange
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


def _then(url: str, call: ScriptCall[int]) -> int:
    with redis.Redis.from_url(url) as client:
        connection = Connection(client)
        try:
            seen, pong = connection.run_then(call, ("PING",))
        finally:
            connection.close()
        assert pong == b"PONG"
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
                seen, pong = await connection.run_then(call, ("PING",))
            finally:
                await connection.close()
            assert pong == b"PONG"
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
        assert stats["cmdstat_eval"]["calls"] == 2  # the source is sent where it is not known


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
    exchange = Exchange(ONE)
    assert exchange.command()[0] == "EVALSHA"
    assert exchange.refused(NoScriptError("No matching script."), "redis://here") is None
    assert exchange.command()[0] == "EVAL"
    again = exchange.refused(NoScriptError("No matching script."), "redis://here")
    assert isinstance(again, RedisBusy)


@pytest.mark.parametrize("name", SCRIPTS.names())
def test_every_shipped_script_compiles(client: redis.Redis, name: str) -> None:
    try:
        client.script_load(SCRIPTS.script(name).source)
    except ResponseError as error:
        pytest.fail(f"{name}: {error}")
