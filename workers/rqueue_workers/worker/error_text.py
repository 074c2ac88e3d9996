"""Errors of jobs as text: for the log, and for the causes that are kept."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any

from rqueue.tasks.control import Control, Refuse, Snooze
from rqueue.tasks.retry import error_name

LONGEST_TEXT = 16_384
LONGEST_REASON = 200

OURS = "rqueue_workers.worker."
"""The modules that stand between the worker and what it runs."""


class Unreadable(Exception):
    """Stands for an exception that raises another one when it is looked at."""

    def __init__(self, first: BaseException, second: BaseException) -> None:
        try:
            name = error_name(type(first))
        except BaseException:
            name = "what the job raised"
        super().__init__(f"{name} cannot be read: that raises {type(second).__name__}")


def summary_of(name: str, cause: dict[str, Any]) -> str:
    """An error in one line, from its name and its cause."""
    return f"{name}: {cause['message']}" if cause["message"] else name


def exc_info_of(error: BaseException) -> Any:
    """For the log: the exception with its traceback, which begins where the job does."""
    if isinstance(error, Control):
        return None
    return type(error), error, _begun(error)


def _begun(error: BaseException) -> TracebackType | None:
    """A traceback without the frames of the worker that it begins with."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith(OURS):
        trace = trace.tb_next
    return trace


def message_of(error: BaseException) -> str:
    """What an error says of itself."""
    try:
        return str(error)
    except BaseException as second:  # a user's __str__ may be broken
        return f"<{type(error).__name__}: its text cannot be made: {type(second).__name__}>"


def traceback_of(error: BaseException) -> str:
    """The traceback of an error, which begins where the job does."""
    try:
        return "".join(traceback.format_exception(type(error), error, _begun(error)))
    except BaseException as second:
        return f"<no traceback: {type(second).__name__}>"


def clean(said: str) -> str:
    """Text that JSON can hold, and not too much of it: the beginning and, above all, the end."""
    if len(said) > LONGEST_TEXT:
        said = f"{said[: LONGEST_TEXT // 4]}\n[...]\n{said[-3 * LONGEST_TEXT // 4 :]}"
    return said.encode("utf-8", "backslashreplace").decode()


def reason_of(error: Snooze | Refuse) -> str:
    """Why a job is put off, as its row of the history has it; "" if it does not say."""
    if not error.reason:
        return ""
    said = " ".join(clean(str(error.reason)).split())[:LONGEST_REASON]
    return f"{type(error).__name__}: {said}"


def text(id: bytes) -> str:
    """An id for a log line."""
    return id.decode("utf-8", "backslashreplace")


def about(id: bytes, task: str, queue: str = "") -> dict[str, str]:
    """What a log record says of its job beside its text."""
    said = {"job": text(id), "task": task, "queue": queue}
    return {name: value for name, value in said.items() if value}
