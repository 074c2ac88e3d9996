"""The loggers of rqueue: whatever a program does with their records, they steer no terminal.

`rqueue` for the client, `rqueue.pool` for supervisors, `rqueue.worker` for worker processes,
`rqueue.spark` for Spark. The library sets neither handlers nor levels; `rqueue worker` does, unless
logging is configured already.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from textwrap import indent
from typing import Any

from orjson import OPT_NON_STR_KEYS, dumps, loads

from rqueue.text.escape import escaped, escaped_lines

__all__ = ["JsonFormatter", "enable", "logger"]

_formatter = logging.Formatter()

FIRST_LINES, LAST_LINES = 40, 60
"""What is logged of a traceback that is longer than both: functions that call each other without
an end make one of thousands of lines."""

TEXT_MOST, TRACE_MOST = 16_384, 65_536
"""Characters that are logged of one text, and of one traceback."""

INDENT = "  "
"""Stands before each line of a traceback, so that none can pass for a record: a record begins at
the left."""


def logger(name: str) -> logging.Logger:
    """The logger `name`, whose records carry escaped texts: ids, task names, errors, tracebacks."""
    found = logging.getLogger(name)
    if _escape not in found.filters:
        found.addFilter(_escape)
    return found


def enable() -> None:
    """Let rqueue's loggers speak again that an application's `logging.config.dictConfig` silenced:
    it disables all that it does not name, unless it says otherwise."""
    for name, found in logging.root.manager.loggerDict.items():
        if isinstance(found, logging.Logger) and name.partition(".")[0] == "rqueue":
            found.disabled = False


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON: `time` (UTC, ISO 8601), `level`, `logger`, `message`, `pid`,
    what the record was given as `extra` (of rqueue's own: `job`, `task`, `queue`), and `exception`,
    the traceback. For any logger: `handler.setFormatter(JsonFormatter())`."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; what JSON has no form for stands as its text."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "pid": record.process,
        }
        for name, value in vars(record).items():
            if name not in _USUAL and name not in line and not name.startswith("_"):
                line[name] = value
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            lines = record.exc_text.split("\n")
            line["exception"] = "\n".join(one.removeprefix(INDENT) for one in lines)
        if record.stack_info:
            line["stack"] = self.formatStack(record.stack_info)
        try:
            return dumps(line, str, OPT_NON_STR_KEYS).decode()
        except TypeError:
            return dumps({name: _json(value) for name, value in line.items()}).decode()


def _json(value: object) -> object:
    """A value as JSON can hold it: a lone surrogate, or a number beyond 64 bits, it cannot."""
    try:
        return loads(dumps(value, str, OPT_NON_STR_KEYS))
    except TypeError:
        return escaped(repr(value))


_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


def _escape(record: logging.LogRecord) -> bool:
    """Escape the texts of a record; numbers stay what its format expects."""
    if not record.args:
        record.msg = _fit(record.msg)
    elif isinstance(record.args, tuple):
        record.args = tuple(map(_fit, record.args))
    if record.exc_info and not record.exc_text:
        # formatters print this text where there is one
        trace = _formatter.formatException(record.exc_info).rstrip("\n")
        trace = _cut(_folded(trace), TRACE_MOST)
        record.exc_text = indent(escaped_lines(trace), INDENT, lambda _line: True)
    return True


def _folded(trace: str) -> str:
    lines = trace.split("\n")
    left_out = len(lines) - FIRST_LINES - LAST_LINES
    if left_out <= 1:
        return trace
    middle = f"  [... {left_out:,} lines ...]"
    return "\n".join([*lines[:FIRST_LINES], middle, *lines[-LAST_LINES:]])


def _fit(value: object) -> object:
    return value if isinstance(value, int | float) else escaped(_cut(str(value), TEXT_MOST))


def _cut(text: str, most: int) -> str:
    """The text with its middle left out if it is longer than `most`."""
    left_out = len(text) - most
    if left_out <= 0:
        return text
    return f"{text[: most // 4]} [... {left_out:,} characters ...] {text[-(most - most // 4) :]}"
