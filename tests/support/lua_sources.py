"""Lua sources that a test writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rqueue.errors import ScriptSourceError
from rqueue.protocol.scripts import Scripts

HEADER = """\
--- Does a thing.
--- KEYS: meta
--- ARGV: none
--- REPLY: {now}
--- ERRORS: none
"""

Sources = Callable[..., Scripts]


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """Write `name=text` files (`/` is spelled `__`) and return their Scripts."""

    def write(**texts: str) -> Scripts:
        for name, text in texts.items():
            path = tmp_path / f"{name.replace('__', '/')}.lua"
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
        return Scripts(tmp_path)

    return write


def fault(scripts: Scripts, name: str) -> str:
    with pytest.raises(ScriptSourceError) as caught:
        scripts.script(name)
    return str(caught.value)


def policy(hooks: str, order: int = 1, fast: str = "yes") -> str:
    return f"""\
--- A policy.
--- HOOKS: {hooks}
--- META: none
--- JOB: none
--- KEYS: none
--- STORE: list
--- ORDER: {order}
--- FAST: {fast}
--- STRUCTURE: none
--- EXCLUDES: none
local code
"""
