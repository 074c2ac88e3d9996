"""Processes that a job forks: they are the job's, never a second worker.

A child of `os.fork` is a copy of the worker in the middle of a job, with its connections and its
page. It may do what it likes as long as it is in the job's function; where that returns or raises,
the process ends. `multiprocessing` and `subprocess` end by themselves, before they get that far.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

_ENDING = {signal.SIGTERM, signal.SIGINT}

_watching: Forks | None = None
_hooked = False


class Forks:
    """Knows whether this process is a job's child. strip: called in each one, before the job goes
    on in it; it takes away what belongs to the worker."""

    def __init__(self, strip: Callable[[], None]) -> None:
        self.child = False
        self._strip = strip

    def watch(self) -> None:
        """From now on, in this process."""
        global _hooked, _watching
        _watching = self
        if not _hooked:
            _hooked = True
            os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_born)

    def unwatch(self) -> None:
        """No more."""
        global _watching
        if _watching is self:
            _watching = None

    def _born(self) -> None:
        self.child = True
        # the job that forked may end it with SIGTERM, as multiprocessing does, or with SIGINT
        with suppress(ValueError):  # not the main thread, by what this interpreter knows
            signal.set_wakeup_fd(-1)
            for number in _ENDING:
                signal.signal(number, signal.SIG_DFL)
        self._strip()
        # a signal that came at once ends it: Python ignores what a handler would raise in this hook
        _release()
        with suppress(ValueError):
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def leave(self, error: BaseException | None = None) -> NoReturn:
        """The job's function is over in a child: end the process as a program would end, but for
        what is to be done at exit, which is the worker's."""
        code: object = 0
        if isinstance(error, SystemExit):
            code = error.code
        elif error is not None:
            traceback.print_exception(error)
            code = 1
        if code is not None and not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit((code or 0) & 0xFF)


def _hold() -> None:
    # a child that is ended at once must not take it for the worker's signal
    if _watching is not None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)


def _release() -> None:
    if _watching is not None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def _born() -> None:
    if _watching is not None:
        _watching._born()
