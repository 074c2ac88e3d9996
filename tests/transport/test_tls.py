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
import redis

from rqueue import Queue
from rqueue.client._async.queue import AsyncQueue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import ConfigError, ConnectionLost
from rqueue.protocol.error_mapping import translate
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


@pytest.mark.parametrize(
    ("why", "advice"),
    [
        ("certificate has expired", "renew it on the server, or set the clock of this host"),
        ("certificate is not yet valid", "renew it on the server, or set the clock of this host"),
        ("unable to get local issuer certificate", "the file of the authority that signed it"),
    ],
)
def test_what_to_do_is_said_by_what_is_wrong_with_a_certificate(why: str, advice: str) -> None:
    said = f"[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: {why} (_ssl.c:1006)"
    error = redis.ConnectionError(f"Error 1 connecting to h:6379. {said}.")
    assert advice in str(translate(error, url="rediss://h:6379/0"))


def test_a_server_that_wants_a_certificate_of_its_clients(
    private_server: EmbeddedRedis, certificate: Certificate
) -> None:
    port = int(str(private_server.tcp_url).rpartition(":")[2].partition("/")[0])
    front = TlsFront(("127.0.0.1", port), certificate, mutual=True)
    url = f"rediss://127.0.0.1:{front.port}/0?ssl_ca_certs={certificate.file}"
    with Queue("q", url) as queue, pytest.raises(ConnectionLost) as caught:
        queue.send("t")
    assert "?ssl_certfile=FILE&ssl_keyfile=FILE" in str(caught.value)
    assert "?ssl_certfile=FILE" in invoke("queues", "--url", url, code=4).stderr
    own = f"{url}&ssl_certfile={certificate.file}&ssl_keyfile={certificate.key}"
    with Queue("q", own) as queue:
        assert queue.send("t").created
    front.close()


@pytest.mark.parametrize(
    ("scheme", "advice"),
    [("rediss", "?ssl_ca_certs=FILE"), ("redis", "does it want TLS? rediss:// is with it")],
)
def test_why_sentinels_are_not_heard_over_tls(front: TlsFront, scheme: str, advice: str) -> None:
    said = said_of(f"{scheme}+sentinel://127.0.0.1:{front.port}/mymaster")
    assert said.startswith("no Sentinel answers at 127.0.0.1")
    assert advice in said


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
    with pytest.raises(ConfigError, match="'ssl_ca_cert'; those of TLS are ssl_ca_certs, "):
        open_it(f"{scheme}?ssl_ca_cert={certificate.file}")
    with pytest.raises(ConfigError, match="'ssl_ca_certs'; TLS is rediss://"):
        open_it(f"{scheme.replace('rediss', 'redis')}?ssl_ca_certs={certificate.file}")
