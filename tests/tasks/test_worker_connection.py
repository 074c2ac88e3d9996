"""The state of a worker's connection."""

import os

from rqueue.tasks.worker_connection import worker_connection


def test_a_forked_process_has_asked_nothing_yet() -> None:
    """Workers are forked; their listeners hear nothing of their parent."""
    worker_connection.works()
    try:
        child = os.fork()
        if child == 0:
            os._exit(0 if worker_connection.state is None else 1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    finally:
        worker_connection.forget()
