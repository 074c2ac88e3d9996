"""Locks that neither a call inside of a call nor a fork can jam.

A signal handler, a finalizer that the garbage collector runs or a listener may call rqueue in the
middle of a call of ours on the same thread, and any thread may fork at any time. So every lock is
reentrant, and a forked child finds it free unless the thread that forked has it. What a lock guards
has to bear an inner call: it is changed in one step, or looked at again after the change.
"""

from __future__ import annotations

import os
from threading import Lock, RLock
from typing import Any
from weakref import WeakSet

__all__ = ["new_gate", "new_lock"]

_all: WeakSet[Any] = WeakSet()


def new_lock() -> Any:
    """A reentrant lock for `with` and for `threading.Condition`."""
    lock = RLock()
    _all.add(lock)
    return lock


def new_gate() -> Any:
    """A lock that one thread may close and another one open. Only for threads of ours, in which no
    call of the application's is under way."""
    gate = Lock()
    _all.add(gate)
    return gate


def _free() -> None:
    """In a forked child: the threads that had the locks are not there."""
    for lock in list(_all):
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_free)
