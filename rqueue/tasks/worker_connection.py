"""The state of a worker process's connection, for the application's code in it."""

from __future__ import annotations

import os

from rqueue.model.connection_state import ConnectionStates

__all__ = ["worker_connection"]

worker_connection = ConnectionStates()
"""Of this process, if it is a worker: its dispatcher says what becomes of it. lost: its consumers'
lease ended, its jobs may run elsewhere, and what it settles of them is refused (C-29)."""

# what a parent process knew of its connections says nothing of those of its child
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=worker_connection.forget)
