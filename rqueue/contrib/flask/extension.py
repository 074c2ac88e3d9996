"""The extension: `Rqueue(app)`, or `init_app` where a factory makes the application."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from flask import Flask

from rqueue.client._sync.queue import Queue
from rqueue.client.default_queues import configure, queue
from rqueue.contrib.flask.command import command
from rqueue.contrib.flask.conf import read
from rqueue.contrib.job_wrappers import around_jobs
from rqueue.errors import LifecycleError

__all__ = ["Rqueue"]

NAME = "rqueue"

_app: Flask | None = None
"""Whose context the jobs of this process run in."""


def _context() -> AbstractContextManager[Any]:
    assert _app is not None
    return _app.app_context()


class Rqueue:
    """The queues of an application.

    Its config says where they are, under the names of the variables: RQUEUE_URL,
    RQUEUE_NAMESPACE, RQUEUE_SIGNING_KEYS, ...; what it does not say the environment does. A
    process has one such place, and jobs run in one application's context: those of the application
    that was given to `init_app` last. Raises ConfigError.
    """

    def __init__(self, app: Flask | None = None) -> None:
        self._app: Flask | None = None
        if app is not None:
            self.init_app(app)

    def init_app(self, app: Flask) -> None:
        """Configure the process's queues by the config of `app`; its jobs run in the context of
        `app`, and `flask rqueue` is the command line. Raises ConfigError."""
        global _app
        configure(settings=read(app.config))
        app.extensions[NAME] = self
        app.cli.add_command(command)
        if _app is None:
            around_jobs(_context)
        self._app = _app = app

    def queue(self, name: str = "default") -> Queue:
        """The application's queue of this name. Raises LifecycleError before `init_app`."""
        if self._app is None:
            raise LifecycleError("no application has this extension yet: call init_app(app) first")
        return queue(name)
