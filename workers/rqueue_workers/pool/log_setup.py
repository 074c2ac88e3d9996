"""Where a pool's log goes: the logger `rqueue`, one line per event."""

from __future__ import annotations

import logging
import time

FORMAT = "%(asctime)s %(levelname)s %(message)s"


class Utc(logging.Formatter):
    """Times in UTC, and marked so: an application may set the zone of its workers' processes
    (Django does), and their lines stand among the supervisor's."""

    converter = staticmethod(time.gmtime)
    default_msec_format = "%s,%03dZ"


def configure(quiet: bool) -> None:
    """Log to stderr, unless the program that runs the pool configured logging itself.

    quiet: only warnings and errors. Worker processes inherit this.
    """
    logger = logging.getLogger("rqueue")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING if quiet else logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(Utc(FORMAT))
        logger.addHandler(handler)
        logger.propagate = False
