"""Where a pool's log goes: the logger `rqueue`, one line per event."""

from __future__ import annotations

import logging

FORMAT = "%(asctime)s %(levelname)s %(message)s"


def configure(quiet: bool) -> None:
    """Log to stderr, unless the program that runs the pool configured logging itself.

    quiet: only warnings and errors. Worker processes inherit this.
    """
    logger = logging.getLogger("rqueue")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING if quiet else logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(FORMAT))
        logger.addHandler(handler)
        logger.propagate = False
