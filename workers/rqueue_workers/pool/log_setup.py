"""Where a pool's log goes: the logger `rqueue`, one line per event."""

from __future__ import annotations

import logging
import time

from rqueue.logs import JsonFormatter
from rqueue_workers.spec import PoolSpec

FORMAT = "%(asctime)s %(levelname)s %(message)s"


class Utc(logging.Formatter):
    """Times in UTC, and marked so: an application may set the zone of its workers' processes
    (Django does), and their lines stand among the supervisor's."""

    converter = staticmethod(time.gmtime)
    default_msec_format = "%s,%03dZ"


def configure(spec: PoolSpec) -> None:
    """Log to stderr, unless the program that runs the pool configured logging itself and the pool's
    options say nothing of a format.

    It touches the logger `rqueue` alone: the application's loggers, and the root, are its own.
    Worker processes inherit this.
    """
    logger = logging.getLogger("rqueue")
    if spec.log_level:
        logger.setLevel(spec.log_level.upper())
    elif logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING if spec.quiet else logging.INFO)
    if spec.log_format or not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(JsonFormatter() if spec.log_format == "json" else Utc(FORMAT))
        logger.handlers[:] = [handler]
        logger.propagate = False
