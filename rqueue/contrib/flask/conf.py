"""Settings in an application's config, under the names of the variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rqueue.contrib.variables import VARIABLES
from rqueue.errors import ConfigError
from rqueue.settings import Settings

__all__ = ["given", "read"]


def given(config: Mapping[str, Any]) -> dict[str, Any]:
    """What the config says, by the names of the settings."""
    return {name: config[key] for key, name in VARIABLES.items() if config.get(key) is not None}


def read(config: Mapping[str, Any]) -> Settings:
    """The settings of an application. Raises ConfigError, which names the key."""
    try:
        return Settings.load(**given(config))
    except ConfigError as error:
        names = {name: key for key, name in VARIABLES.items()}
        raise ConfigError(names.get(error.setting, error.setting), error.problem) from None
