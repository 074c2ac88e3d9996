"""Errors of a lake."""

from __future__ import annotations

from rqueue.errors import ConfigError, RQueueError

__all__ = ["LakeBusy", "LakeError", "no_lake"]


class LakeError(RQueueError):
    """A lake cannot be read or written; says what to do."""


class LakeBusy(LakeError):
    """Another archiver writes into the same lake; nothing was written twice."""


def no_lake(path: str) -> ConfigError:
    """The error of a lake that is to be read and is not there."""
    return ConfigError(
        "lake",
        f"there is none at {path}: rqueue pipeline archive makes one, with the first rows of"
        " history that it finds",
    )
