"""Spark's settings, as `--conf NAME=VALUE` gives them."""

from __future__ import annotations

from collections.abc import Iterable

import click


def settings_of(conf: Iterable[str]) -> dict[str, str]:
    """The settings by name. Raises BadParameter for what is none of Spark's."""
    settings = {}
    for text in conf:
        name, equals, value = text.partition("=")
        if not equals or not name.startswith("spark."):
            raise click.BadParameter(f"{text!r} is not spark.NAME=VALUE", param_hint="--conf")
        settings[name] = value
    return settings
