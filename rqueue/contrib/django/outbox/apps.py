"""The app as Django loads it."""

from __future__ import annotations

from django.apps import AppConfig

__all__ = ["OutboxConfig"]


class OutboxConfig(AppConfig):
    """`rqueue.contrib.django.outbox` in INSTALLED_APPS."""

    name = "rqueue.contrib.django.outbox"
    label = "rqueue_outbox"
    verbose_name = "Outbox of job queues"
    default_auto_field = "django.db.models.BigAutoField"
