"""The embedded server starts, keeps its data, ends with its program, and explains itself."""

import gc
import os
import signal
import socket
import stat
from pathlib import Path

import pytest
import redis

from rqueue.embedded import server as embedded
from rqueue.embedded.binaries import ServerBinary
from rqueue.embedded.server import EmbeddedRedis, running
from rqueue.errors import ConfigError, EmbeddedRedisError
from tests.support.server_end import connect, ended

pytestmark = pytest.mark.each_server


class TestLife:
    def test_it_is_ready_when_start_returns(self, binary: ServerBinary) -> None:
        with EmbeddedRedis(binary=binary) as server, redis.Redis.from_url(server.url) as client:
            assert client.ping()
            assert server.alive
            info = client.info("server")
            assert info["process_id"] == server.pid
        assert not server.alive

    def test_its_settings_are_those_of_a_queue(self, binary: ServerBinary) -> None:
        with EmbeddedRedis(binary=binary) as server, redis.Redis.from_url(server.url) as client:
            settings = client.config_get("*")
        wanted = {
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "save": "",
            "port": "0",
            "bind": "127.0.0.1",
        }
        assert {name: settings[name] for name in wanted} == wanted

    def test_further_settings_win(self, binary: ServerBinary) -> None:
        config = {"maxmemory": 50_000_000, "appendonly": "no"}
        with (
            EmbeddedRedis(binary=binary, config=config) as server,
            redis.Redis.from_url(server.url) as client,
        ):
            assert client.config_get("maxmemory") == {"maxmemory": "50000000"}
            assert client.config_get("appendonly") == {"appendonly": "no"}

    def test_a_loopback_port_is_extra(self, binary: ServerBinary) -> None:
        with (
            EmbeddedRedis(binary=binary, port=0) as server,
            redis.Redis.from_url(server.tcp_url) as over_tcp,
            redis.Redis.from_url(server.url) as over_socket,
        ):
            over_tcp.set("k", "v")
            assert over_socket.get("k") == b"v"

    def test_without_a_port_there_is_no_tcp_url(self, binary: ServerBinary) -> None:
        with (
            EmbeddedRedis(binary=binary) as server,
            pytest.raises(EmbeddedRedisError, match="port=0"),
        ):
            _ = server.tcp_url

    def test_a_temporary_directory_is_private_and_goes(self, binary: ServerBinary) -> None:
        with EmbeddedRedis(binary=binary) as server:
            directory = server.directory
            assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert not directory.exists()

    @pytest.mark.parametrize("name", ["url", "directory", "pid"])
    def test_where_it_does_not_run_it_says_how_to_start_it(
        self, binary: ServerBinary, name: str
    ) -> None:
        server = EmbeddedRedis(binary=binary)
        for how in ("not started", "stopped"):
            with pytest.raises(EmbeddedRedisError, match=rf"was {how}: use with .* start\(\)"):
                getattr(server, name)
            with server:
                getattr(server, name)

    def test_it_can_be_started_again_after_stop(self, binary: ServerBinary) -> None:
        server = EmbeddedRedis(binary=binary)
        for _ in range(2):
            with server, redis.Redis.from_url(server.url) as client:
                assert client.incr("k") == 1

    def test_started_twice_is_an_error(self, binary: ServerBinary) -> None:
        with (
            EmbeddedRedis(binary=binary) as server,
            pytest.raises(EmbeddedRedisError, match="runs already"),
        ):
            server.start()

    def test_stopping_what_does_not_run_is_nothing(self, binary: ServerBinary) -> None:
        server = EmbeddedRedis(binary=binary)
        server.stop()
        server.start()
        server.stop()
        server.stop()

    def test_a_forgotten_server_ends(self, binary: ServerBinary) -> None:
        server = EmbeddedRedis(binary=binary).start()
        connection, directory = connect(server.url), server.directory
        del server
        gc.collect()
        assert ended(connection)
        assert not directory.exists()

    def test_a_stopped_process_is_killed_in_the_end(self, binary: ServerBinary) -> None:
        server = EmbeddedRedis(binary=binary).start()
        os.kill(server.pid, signal.SIGSTOP)
        server.stop(timeout=0.1)
        assert not server.alive


class TestData:
    def test_kill_and_start_keep_data_and_address(self, binary: ServerBinary) -> None:
        with EmbeddedRedis(binary=binary, port=0) as server:
            addresses = (server.url, server.tcp_url)
            with redis.Redis.from_url(server.url) as client:
                client.set("k", "v")
            server.kill()
            assert not server.alive
            server.start()
            assert (server.url, server.tcp_url) == addresses
            with redis.Redis.from_url(server.tcp_url) as client:
                assert client.get("k") == b"v"

    def test_restart_keeps_data(self, binary: ServerBinary) -> None:
        with EmbeddedRedis(binary=binary) as server, redis.Redis.from_url(server.url) as client:
            client.set("k", "v")
            before = server.pid
            server.restart()
            assert server.pid != before
            assert client.get("k") == b"v"

    def test_a_given_directory_keeps_its_data_after_stop(
        self, binary: ServerBinary, tmp_path: Path
    ) -> None:
        directory = tmp_path / "new" / "data"
        with (
            EmbeddedRedis(directory, binary=binary) as server,
            redis.Redis.from_url(server.url) as client,
        ):
            client.set("k", "v")
        with (
            EmbeddedRedis(directory, binary=binary) as server,
            redis.Redis.from_url(server.url) as client,
        ):
            assert client.get("k") == b"v"

    def test_a_given_directory_goes_if_not_persistent(
        self, binary: ServerBinary, tmp_path: Path
    ) -> None:
        directory = tmp_path / "data"
        with EmbeddedRedis(directory, persistent=False, binary=binary):
            assert directory.exists()
        assert not directory.exists()

    def test_a_long_path_gets_a_short_socket(self, binary: ServerBinary, tmp_path: Path) -> None:
        directory = tmp_path / ("long" * 30)
        with (
            EmbeddedRedis(directory, binary=binary) as server,
            redis.Redis.from_url(server.url) as client,
        ):
            assert client.ping()
            path = Path(server.url.removeprefix("unix://"))
            assert running(directory) == server.url
        assert len(str(path)) < 60
        assert not path.parent.exists()

    def test_a_path_with_spaces(self, binary: ServerBinary, tmp_path: Path) -> None:
        with EmbeddedRedis(tmp_path / "a b 'c'", binary=binary) as server:
            assert server.directory.name == "a b 'c'"
            assert connect(server.url).close() is None


class TestRunning:
    def test_others_find_it(self, binary: ServerBinary, tmp_path: Path) -> None:
        assert running(tmp_path) is None
        with EmbeddedRedis(tmp_path, binary=binary) as server:
            assert running(tmp_path) == server.url
            assert running(str(tmp_path)) == server.url
        assert running(tmp_path) is None

    def test_what_a_crash_left_is_not_believed(self, binary: ServerBinary, tmp_path: Path) -> None:
        with EmbeddedRedis(tmp_path, binary=binary) as server:
            server.kill()
            assert (tmp_path / "server.json").exists()
            assert running(tmp_path) is None
            server.start()
            assert running(tmp_path) == server.url

    def test_another_server_at_that_address_is_not_believed(
        self, binary: ServerBinary, tmp_path: Path
    ) -> None:
        with EmbeddedRedis(tmp_path, binary=binary) as server:
            file = tmp_path / "server.json"
            file.write_text(file.read_text().replace(str(server.pid), "1"))
            assert running(tmp_path) is None

    @pytest.mark.parametrize("text", ["", "{}", "[]", "nonsense", '{"pid": 1}'])
    def test_a_broken_file_is_not_believed(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "server.json").write_text(text)
        assert running(tmp_path) is None

    @pytest.mark.parametrize("which", ["", "server.json", "redis.sock"])
    def test_what_another_user_wrote_is_refused(
        self, binary: ServerBinary, tmp_path: Path, which: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with EmbeddedRedis(tmp_path, binary=binary):
            if os.geteuid() == 0:
                os.lchown(tmp_path / which, 12345, 12345)
            else:  # this user cannot give a file away, and is another one instead
                monkeypatch.setattr(os, "geteuid", lambda: 12345)
            with pytest.raises(ConfigError, match=r"another user.*nothing was sent"):
                running(tmp_path)

    def test_one_directory_has_one_server(self, binary: ServerBinary, tmp_path: Path) -> None:
        with EmbeddedRedis(tmp_path, binary=binary) as server:
            second = EmbeddedRedis(tmp_path, persistent=False, binary=binary)
            with pytest.raises(EmbeddedRedisError, match="another server uses") as caught:
                second.start()
            assert server.url in str(caught.value)
            second.stop()
            del second
            assert running(tmp_path) == server.url


class TestFaults:
    def test_a_refused_setting_shows_the_log(self, binary: ServerBinary) -> None:
        server = EmbeddedRedis(binary=binary, config={"maxmemory-policy": "whatever"})
        with pytest.raises(EmbeddedRedisError) as caught:
            server.start()
        assert "ended with exit code 1" in str(caught.value)
        assert "whatever" in str(caught.value)
        assert not server.alive
        server.stop()

    def test_a_port_that_is_taken(self, binary: ServerBinary) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            server = EmbeddedRedis(binary=binary, port=taken.getsockname()[1])
            with pytest.raises(EmbeddedRedisError, match="in use"):
                server.start()
            server.stop()

    def test_a_free_port_that_is_taken_meanwhile_is_replaced(
        self, binary: ServerBinary, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            ports = [taken.getsockname()[1]]
            free_port = embedded._free_port
            monkeypatch.setattr(
                embedded, "_free_port", lambda: ports.pop() if ports else free_port()
            )
            with (
                EmbeddedRedis(binary=binary, port=0) as server,
                redis.Redis.from_url(server.tcp_url) as client,
            ):
                assert ports == []
                assert client.ping()

    def test_an_older_server_does_not_hide_a_newer_one_s_data(self, tmp_path: Path) -> None:
        (tmp_path / "appendonlydir").mkdir()
        old = ServerBinary(Path("/bin/false"), (6, 2, 14), "PATH")
        with pytest.raises(EmbeddedRedisError, match="written by Redis 7 or newer"):
            EmbeddedRedis(tmp_path, binary=old).start()

    def test_a_program_that_is_gone(self, tmp_path: Path) -> None:
        gone = ServerBinary(tmp_path / "redis-server", (7, 0, 0), "PATH")
        with pytest.raises(EmbeddedRedisError, match="redis-server"):
            EmbeddedRedis(binary=gone).start()
