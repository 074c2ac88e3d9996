"""rqueue in Django: an app for INSTALLED_APPS, `manage.py rqueue`, enqueues that wait for commits.

See `docs/django.md`. Needs the extra `rqueue[django]`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["RqueueBackend"]


def __getattr__(name: str) -> Any:
    # late: the apps have to be there first, and `django.tasks` or its backport
    if name == "RqueueBackend":
        from rqueue.contrib.django.backend import RqueueBackend

        return RqueueBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
