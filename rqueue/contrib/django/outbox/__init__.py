"""An app for INSTALLED_APPS: enqueues inside of transactions are part of them, and effects happen
once.

See `docs/outbox.md`. It has tables (`manage.py migrate`), and a relay that has to run
(`manage.py rqueue_outbox relay`).
"""

from __future__ import annotations

from typing import Any

__all__ = ["run_once", "waits"]


def __getattr__(name: str) -> Any:
    if name in __all__:  # late: its models need the apps to be there first
        from rqueue.contrib.django.outbox import jobs

        return getattr(jobs, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
