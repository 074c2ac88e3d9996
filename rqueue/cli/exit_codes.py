"""Exit codes, and how a command ends with one."""

from __future__ import annotations

import sys

import click

from rqueue.text.escape import escaped

OK, NEGATIVE, USAGE, NOT_FOUND, SERVER, NOT_YET, MISSING, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130
"""The codes that `rqueue --help` lists."""


class Failure(click.ClickException):
    """A command's own refusal: one line, and an exit code."""

    def __init__(self, message: str, code: int = NEGATIVE) -> None:
        super().__init__(message)
        self.code = code


def confirm(question: str, yes: bool) -> None:
    """Ask before something is destroyed. Raises Failure where there is no terminal to ask on, and
    on no."""
    if yes:
        return
    if not _is_terminal():
        raise Failure(f"{question} Not asked, for this is no terminal: pass --yes", USAGE)
    if not click.confirm(escaped(question), err=True):
        raise Failure("nothing was changed")


def _is_terminal() -> bool:
    return sys.stdin.isatty()
