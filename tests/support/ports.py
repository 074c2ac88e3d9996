"""Ports of programs that choose none themselves, and that others have to know beforehand.

None is one that the system hands out to clients: between the choice and the program's start none of
the suite's thousands of connections takes it, and a server that was killed finds its own free when
it comes back.
"""

import errno
import random
import socket

BUS = 10_000
"""What a node adds to its port for the nodes' talk among each other; Redis 6.2 knows no setting."""

_PORTS = range(10_000, 14_000)
_NODE_PORTS = range(14_000, 22_000)


def free_port() -> int:
    """A port that is free."""
    while True:
        port = random.SystemRandom().choice(_PORTS)
        if _free(port):
            return port


def free_node_port() -> int:
    """A port that is free together with that of its bus."""
    while True:
        port = random.SystemRandom().choice(_NODE_PORTS)
        if _free(port) and _free(port + BUS):
            return port


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True
