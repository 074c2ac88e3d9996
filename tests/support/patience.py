"""How long a test waits for what must happen."""

import os
import select
import time
from collections.abc import Callable

PATIENCE = 60.0
"""Seconds after which what did not happen never will. A test that passes waits for none of it; on a
machine that is busy with other things, what takes some ms alone may take many seconds."""


def until(condition: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    """Look again and again: servers tell nobody."""
    end = time.monotonic() + patience
    pause = select.poll()
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {patience} s (load {os.getloadavg()})"
        pause.poll(20)
