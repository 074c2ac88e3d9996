"""Stands for Python where Spark starts it: see `tests/support/spark_python.py`.

Arguments: the Python, the socket of the process that forks, `-m`, and a module with its arguments.
It is as if the fork were this process: it ends as that does, and that with it. Where nobody forks
any more, Python itself takes its place.
"""

import marshal
import os
import socket
import sys


def main() -> int:
    python, place, *arguments = sys.argv[1:]
    option, *module = arguments
    with socket.socket(socket.AF_UNIX) as forker:
        try:
            if option != "-m":  # Spark also asks for the version
                raise ConnectionRefusedError
            forker.connect(place)
        except OSError:
            os.execv(python, [python, *arguments])
        text = marshal.dumps((module, dict(os.environ), os.getcwd()))
        socket.send_fds(forker, [len(text).to_bytes(4, "big")], [0, 1, 2])
        forker.sendall(text)
        code = forker.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    sys.exit(main())
