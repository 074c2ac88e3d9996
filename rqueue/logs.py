"""The loggers of rqueue: whatever a program does with their records, they steer no terminal.

`rqueue` for the client, `rqueue.pool` for supervisors, `rqueue.worker` for worker processes,
`rqueue.spark` for Spark. The library sets neither handlers nor levels; `rqueue worker` does, unless
logging is configured already.
"""

from __future__ import annotations

import logging

from rqueue.text.escape import escaped, escaped_lines

__all__ = ["logger"]

_formatter = logging.Formatter()

FIRST_LINES, LAST_LINES = 40, 60
"""What is logged of a traceback that is longer than both: functions that call each other without
an end make one of thousands of lines."""


def logger(name: str) -> logging.Logger:
    """The logger `name`, whose records carry escaped texts: ids, task names, errors, tracebacks."""
    found = logging.getLogger(name)
    if _escape not in found.filters:
        found.addFilter(_escape)
    return found


def _escape(record: logging.LogRecord) -> bool:
    """Escape the texts of a record; numbers stay what its format expects."""
    if not record.args:
        record.msg = escaped(str(record.msg))
    elif isinstance(record.args, tuple):
        record.args = tuple(map(_fit, record.args))
    if record.exc_info and not record.exc_text:
        # formatters print this text where there is one
        record.exc_text = escaped_lines(_folded(_formatter.formatException(record.exc_info)))
    return True


def _folded(trace: str) -> str:
    lines = trace.split("\n")
    left_out = len(lines) - FIRST_LINES - LAST_LINES
    if left_out <= 1:
        return trace
    middle = f"  [... {left_out:,} lines ...]"
    return "\n".join([*lines[:FIRST_LINES], middle, *lines[-LAST_LINES:]])


def _fit(value: object) -> object:
    return value if isinstance(value, int | float) else escaped(str(value))
