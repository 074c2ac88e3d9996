"""A server that speaks RESP and knows nothing: it answers what a test tells it to.

Greetings (HELLO, CLIENT, AUTH, SELECT) it answers as a Redis does, so that a connection comes to
be; everything else gets `reply`, a raw RESP reply.
"""

import socketserver
import threading
from types import TracebackType
from typing import Self

OK = b"+OK\r\n"
HELLO = (
    b"*6\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$5\r\nproto\r\n:2\r\n"
)
HELLO_3 = b"%" + HELLO[1:].replace(b"6\r\n", b"3\r\n", 1).replace(b":2", b":3")


class StubServer:
    """`reply`: what commands are answered; `greeting`: what HELLO is; `commands`: what came.
    `lose`: how many of the next answers to scripts are lost, with their connections."""

    def __init__(self, reply: bytes = OK) -> None:
        self.reply = reply
        self.greeting: bytes | None = None
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
                        reply = stub.greeting or (HELLO_3 if command[1:2] == [b"3"] else HELLO)
                    elif name in (b"CLIENT", b"AUTH", b"SELECT"):
                        reply = OK
                    elif name == b"MULTI":
                        in_transaction, reply = True, OK
                    elif name == b"EXEC" and in_transaction:
                        in_transaction = False
                        reply = b"-EXECABORT Transaction discarded because of previous errors.\r\n"
                    elif stub.lose and name == b"EVALSHA":  # not what is left of a connection
                        stub.lose -= 1
                        return
                    self.wfile.write(reply)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self._server = Server(("127.0.0.1", 0), Handler)
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
