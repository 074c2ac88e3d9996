"""TLS that is set up wrongly: one line says what to write instead."""

from __future__ import annotations

import asyncio
import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rqueue import Queue
from rqueue.client._async.queue import AsyncQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, ConnectionLost
from rqueue.transport.redis_client import open_async_client, open_client
from rqueue_workers.exit_codes import Exit
from tests.support.command_line import invoke
from tests.support.tls_front import Certificate, TlsFront
from tests.workers.pools import Pool


@pytest.fixture
def certificate(tmp_path: Path) -> Certificate:
    return Certificate.made(tmp_path)


@pytest.fixture
def front(private_server: EmbeddedRedis, certificate: Certificate) -> Iterator[TlsFront]:
    assert private_server.tcp_url
    port = int(private_server.tcp_url.rpartition(":")[2].partition("/")[0])
    front = TlsFront(("127.0.0.1", port), certificate)
    yield front
    front.close()


def said_of(url: str) -> str:
    """What both clients say, which is the same."""
    with Queue("q", url) as queue, pytest.raises(ConnectionLost) as caught:
        queue.send("t")

    async def work() -> None:
        async with AsyncQueue("q", url) as queue:
            await queue.send("t")

    with pytest.raises(ConnectionLost) as other:
        asyncio.run(work())
    said = str(caught.value)
    assert advice_of(said) == advice_of(str(other.value))
    return said


def advice_of(said: str) -> str:
    return said.partition("; ")[2].partition(" (redis")[0]


def test_a_certificate_that_nobody_whom_we_trust_has_signed(front: TlsFront) -> None:
    said = said_of(f"rediss://127.0.0.1:{front.port}/0")
    assert "certificate for TLS is not trusted (self-signed certificate)" in said
    assert "?ssl_ca_certs=FILE" in said


def test_a_certificate_for_another_name(front: TlsFront, certificate: Certificate) -> None:
    said = said_of(f"rediss://localhost:{front.port}/0?ssl_ca_certs={certificate.file}")
    assert "TLS has another name" in said and "?ssl_check_hostname=false" in said


def test_no_tls_where_it_is_wanted(front: TlsFront) -> None:
    assert "rediss:// is with it" in said_of(f"redis://127.0.0.1:{front.port}/0")


@pytest.mark.parametrize(
    ("scheme", "words"),
    [("redis", "does it want TLS (rediss://)"), ("rediss", "?ssl_ca_certs=FILE")],
)
def test_the_command_line_says_so_too(front: TlsFront, scheme: str, words: str) -> None:
    said = invoke("queues", "--url", f"{scheme}://127.0.0.1:{front.port}/0", code=4)
    assert words in said.stderr
    assert ("is the server running" in said.stderr) == (scheme == "redis")


@pytest.fixture
def resetting_port() -> Iterator[int]:
    """Of a server that wants TLS and closes what comes without, before it has read all of it."""

    class Closes(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(1)
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.request.close()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Closes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_a_connection_that_is_reset_may_want_tls_too(
    resetting_port: int, make_pool: Callable[..., Pool]
) -> None:
    url = f"redis://127.0.0.1:{resetting_port}/0"
    assert "does it want TLS? rediss:// is with it" in said_of(url)
    said = "does it want TLS (rediss://), and is --url or RQUEUE_URL right?"
    assert said in invoke("queues", "--url", url, code=4).stderr
    pool = make_pool(url, patience=0.1)
    assert pool.ended() == Exit.REDIS
    waits, *_, ends = pool.log.splitlines()
    assert said in ends
    assert f"{said}; waiting at most 0.1 s" in waits, "while it may still be mended"


@pytest.mark.parametrize("scheme", ["rediss://h/0", "rediss+cluster://h", "rediss+sentinel://h/m"])
@pytest.mark.parametrize("open_it", [open_client, open_async_client])
def test_options_that_cannot_be_used_are_refused_at_once(
    scheme: str, open_it: Callable[[str], object], tmp_path: Path, certificate: Certificate
) -> None:
    (empty := tmp_path / "empty.pem").touch()
    for options, words in {
        "ssl_cert_reqs=maybe": "it is one of required, optional, none",
        f"ssl_ca_certs={tmp_path}/nowhere.pem": "cannot be read: No such file",
        f"ssl_ca_certs={empty}": "no certificate in",
        f"ssl_certfile={tmp_path}/nowhere.pem": "cannot be read: No such file",
        f"ssl_certfile={certificate.file}&ssl_keyfile={empty}": "not a certificate with its key",
    }.items():
        with pytest.raises(ConfigError, match=f"^url: .*{words}"):
            open_it(f"{scheme}?{options}")
    open_it(f"{scheme}?ssl_ca_certs={certificate.file}&ssl_cert_reqs=optional")
