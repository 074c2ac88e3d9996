"""Settings as variables of the environment, for programs that are to use the same queues."""

from __future__ import annotations

from collections.abc import Iterable

from rqueue.settings import Settings

__all__ = ["VARIABLES", "environ_of"]

VARIABLES = {
    "RQUEUE_URL": "url",
    "RQUEUE_NAMESPACE": "namespace",
    "RQUEUE_SIGNING_KEYS": "signing_keys",
    "RQUEUE_LEASE": "lease_ms",
    "RQUEUE_CONNECT_TIMEOUT": "connect_timeout",
    "RQUEUE_COMMAND_TIMEOUT": "command_timeout",
    "RQUEUE_MAX_WAIT": "max_wait",
    "RQUEUE_REPLICAS": "replicas",
    "RQUEUE_FSYNC": "fsync",
    "RQUEUE_CONFIRM": "confirm_ms",
    "RQUEUE_MAX_BODY": "max_body",
}
"""Variables, and the settings that they say."""


def environ_of(settings: Settings, names: Iterable[str]) -> dict[str, str]:
    """The variables that say what `settings` has under these names."""
    keys = ",".join(f"{id_}:{secret}" for id_, secret in settings.signing_keys.items())
    said = {
        "url": settings.url or "",
        "signing_keys": keys,
        "lease_ms": f"{settings.lease_ms}ms",
        "connect_timeout": f"{settings.connect_timeout}s",
        "command_timeout": f"{settings.command_timeout}s",
        "max_wait": f"{settings.max_wait}s",
        "confirm_ms": f"{settings.confirm_ms}ms",
    }
    values = {
        variable: said.get(name, str(getattr(settings, name)))
        for variable, name in VARIABLES.items()
        if name in set(names)
    }
    return {variable: value for variable, value in values.items() if value}
