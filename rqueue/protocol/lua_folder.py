"""Where the queue's Lua sources are."""

from __future__ import annotations

from importlib import readers
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from rqueue.errors import ScriptSourceError

_USED = readers
"""`files` imports it when it is called. The first call of a process shall import nothing: where
another thread forks meanwhile, a module that is being imported can never be in the child."""


def find_lua() -> Traversable:
    """Return the folder of Lua sources.

    A wheel (unpacked or zipped) carries it inside the package. A checkout, imported in place or
    through an editable install, has it beside the package; the copy that an editable install leaves
    in site-packages is not part of the package that was imported and is not looked at, so an edit
    takes effect.

    Raises `ScriptSourceError` if neither is there.
    """
    package = files("rqueue")
    inside = package / "lua"
    if inside.is_dir():
        return inside
    # Only a checkout counts: beside an installed package, a folder `lua` would be another
    # project's.
    beside = Path(__file__).resolve().parents[2]
    if (beside / "lua").is_dir() and (beside / "pyproject.toml").is_file():
        return beside / "lua"
    raise ScriptSourceError(
        f"rqueue's Lua scripts are missing: there is neither {inside} "
        f"nor, in a checkout, {beside / 'lua'}; reinstall rqueue"
    )
