"""The app as Django loads it."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.core.checks import register
from django.core.signals import setting_changed

from rqueue.contrib.django import checks
from rqueue.contrib.django.commits import install
from rqueue.contrib.django.conf import configure

__all__ = ["RqueueConfig"]


class RqueueConfig(AppConfig):
    """`rqueue.contrib.django` in INSTALLED_APPS."""

    name = "rqueue.contrib.django"
    label = "rqueue"
    verbose_name = "Job queues"

    def ready(self) -> None:
        """Say where the process's queues are, and let enqueues wait for commits."""
        configure()
        install()
        setting_changed.connect(_setting_changed, dispatch_uid="rqueue.settings")
        register(checks.check_settings, "rqueue")
        register(checks.check_tasks, "rqueue")
        register(checks.check_modules, "rqueue")
        register(checks.check_server, "rqueue", deploy=True)


def _setting_changed(*, setting: str, **_: Any) -> None:
    if setting == "RQUEUE":
        configure()
