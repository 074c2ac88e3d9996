"""The shipped Lua sources with something changed in them."""

import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from rqueue.protocol.lua_folder import find_lua
from rqueue.protocol.scripts import Scripts

START_MS = 1_700_000_000_000


def changed(folder: Path, file: str, right: str, wrong: str) -> None:
    """Replace a piece of a source; it must be there once."""
    path = folder / "lua" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(right) == 1, f"lua/{file} has changed: this piece is not there once: {right}"
    path.unlink()  # it may be a link to the source itself
    path.write_text(text.replace(right, wrong), encoding="utf-8")


def frozen(folder: Path) -> Scripts:
    """The sources with a clock that stands still unless a test moves it.

    A search at random must find the same again when it repeats its steps: with a clock that runs
    by itself, two times are now the same millisecond and now not.
    """
    # links: what is not changed need not be copied
    shutil.copytree(Path(str(find_lua())), folder / "lua", copy_function=os.symlink)
    running = "time[1] * 1000 + math.floor(time[2] / 1000) + (tonumber(offset) or 0)"
    changed(folder, "include/queue/clock.lua", running, f"{START_MS} + (tonumber(offset) or 0)")
    # Lifetimes are Redis's own business and go on: no search takes that long.
    changed(folder, "include/result/records.lua", "return 2 * keep", "return 2 * keep + 600000")
    return Scripts(folder / "lua")


_KEPT: list[TemporaryDirectory[str]] = []
"""Removed when the process ends."""


@cache
def sound() -> Scripts:
    """Scripts as `frozen` makes them, for all that change nothing in them: a script is put together
    once for each kind of queue."""
    _KEPT.append(TemporaryDirectory(prefix="rqueue-lua-"))
    return frozen(Path(_KEPT[0].name))
