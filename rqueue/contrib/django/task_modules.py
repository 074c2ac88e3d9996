"""The modules with tasks that the installed apps have: the module `tasks` of each, or those that
RQUEUE["modules"] names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module

from django.apps import apps
from django.utils.module_loading import module_has_submodule

__all__ = ["import_task_modules", "task_modules"]


def task_modules(names: Sequence[str]) -> Iterator[str]:
    """The modules of these names, app by app."""
    for app in apps.get_app_configs():
        for name in names:
            if app.module is not None and module_has_submodule(app.module, name):
                yield f"{app.name}.{name}"


def import_task_modules(names: Sequence[str]) -> None:
    """Import them. Raises what their code raises."""
    for name in task_modules(names):
        import_module(name)
