"""When a server of this machine has ended, noticed without polling."""

import socket


def connect(path: str) -> socket.socket:
    """A connection whose end (an empty read) tells that the server is gone, without polling."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(path.removeprefix("unix://"))
    return connection


def ended(connection: socket.socket) -> bool:
    with connection:
        try:
            return connection.recv(1) == b""
        except ConnectionResetError:
            return True
