"""TLS in front of servers that cannot speak it, with a certificate made for it."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Certificate(NamedTuple):
    """Of 127.0.0.1, signed by itself."""

    file: Path
    key: Path

    @classmethod
    def made(cls, folder: Path) -> Certificate:
        """A new one."""
        openssl = shutil.which("openssl")
        assert openssl, "the tests of TLS need the program openssl"
        one = cls(folder / "certificate.pem", folder / "key.pem")
        words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        names = ("-subj", "/CN=rqueue tests", "-addext", "subjectAltName=IP:127.0.0.1")
        files = ("-out", str(one.file), "-keyout", str(one.key))
        subprocess.run([openssl, *words.split(), *names, *files], check=True, capture_output=True)
        return one


class TlsFront:
    """Listens on a loopback port and passes on what is said there to `target`, (host, port).
    mutual: to clients that have the same certificate."""

    def __init__(
        self, target: tuple[str, int], certificate: Certificate, *, mutual: bool = False
    ) -> None:
        self._target = target
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.file, certificate.key)
        if mutual:
            self._context.load_verify_locations(certificate.file)
            self._context.verify_mode = ssl.CERT_REQUIRED
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="TLS", daemon=True)
        self._thread.start()
        self._open: set[asyncio.Task[None]] = set()
        self._server = self._do(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.connections = 0

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._pass_on, "127.0.0.1", 0, ssl=self._context)

    async def _pass_on(self, client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        server, there = await asyncio.open_connection(*self._target)
        ways = [asyncio.ensure_future(_copy(*way)) for way in ((client, there), (server, back))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._open.discard(task)
            for way in ways:
                way.cancel()
            for writer in (there, back):
                writer.transport.abort()

    def close(self) -> None:
        """Close all connections, and listen no more."""
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self._server.close()
        for task in (left := list(self._open)):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0)  # the transports close in the next turn


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
