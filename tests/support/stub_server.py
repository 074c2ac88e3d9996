"""A server that speaks RESP and knows nothing: it answers what a test tells it to.

Greetings (HELLO, CLIENT, AUTH, SELECT) it answers as a Redis does, so that a connection comes to
be; everything else gets `reply`, a raw RESP reply.
"""

import socket
import socketserver
import threading
from types import TracebackType
from typing import Self

import hiredis

OK = b"+OK\r\n"


def hello(mode: str, protocol: int) -> bytes:
    """The answer to HELLO."""
    begins = "*4" if protocol == 2 else "%2"
    parts = (begins, "$4", "mode", f"${len(mode)}", mode, "$5", "proto", f":{protocol}", "")
    return "\r\n".join(parts).encode()


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class StubServer:
    """`reply`: what commands are answered; `greeting`, `mode`: what HELLO is; `info`: what INFO is;
    `commands`: what came.
    `lose`: how many of the next answers to scripts are lost, with their connections."""

    def __init__(self, reply: bytes = OK) -> None:
        self.reply = reply
        self.greeting: bytes | None = None
        self.info = ""
        self.mode = "standalone"
        self.commands: list[list[bytes]] = []
        self.lose = 0
        stub = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                in_transaction = False
                while command := _read(self.rfile):
                    stub.commands.append(command)
                    name = command[0].upper()
                    reply = stub.reply
                    if name == b"HELLO":
                        reply = stub.greeting or hello(
                            stub.mode, 3 if command[1:2] == [b"3"] else 2
                        )
                    elif name in (b"CLIENT", b"AUTH", b"SELECT"):
                        reply = OK
                    elif name == b"INFO" and stub.info:
                        reply = f"${len(stub.info)}\r\n{stub.info}\r\n".encode()
                    elif name == b"MULTI":
                        in_transaction, reply = True, OK
                    elif name == b"EXEC" and in_transaction:
                        in_transaction = False
                        reply = b"-EXECABORT Transaction discarded because of previous errors.\r\n"
                    elif stub.lose and name == b"EVALSHA":  # not what is left of a connection
                        stub.lose -= 1
                        return
                    self.wfile.write(reply)

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._server.server_address[1]}/0"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _read(file: object) -> list[bytes]:
    line = file.readline()  # type: ignore[attr-defined]
    if not line.startswith(b"*"):
        return []
    parts = []
    for _ in range(int(line[1:])):
        size = int(file.readline()[1:])  # type: ignore[attr-defined]
        parts.append(file.read(size + 2)[:-2])  # type: ignore[attr-defined]
    return parts


class Refusing:
    """A real server, but for one command, which is refused: `refused` times so far."""

    def __init__(self, url: str, command: bytes, reply: bytes) -> None:
        host, _, port = url.partition("://")[2].partition("/")[0].partition(":")
        self.refused = 0
        front = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with socket.create_connection((host, int(port))) as server:
                    reader = hiredis.Reader()
                    while parts := _read(self.rfile):
                        if parts[0].upper() == command:
                            front.refused += 1
                            self.wfile.write(reply)
                            continue
                        server.sendall(hiredis.pack_command(tuple(parts)))
                        while True:
                            data = server.recv(65536)
                            self.wfile.write(data)
                            reader.feed(data)
                            if not data or reader.gets() is not False:
                                break

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._server.server_address[1]}/0"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
