"""Text of an option that says which jobs are meant, or where: never empty.

In a script `--task "$TASK"` is empty where the variable is: taken for "no filter", it would mean
all jobs.
"""

from __future__ import annotations

import click


def filled(text: str) -> str:
    """The type of such an option: the text as it is. Raises BadParameter for an empty one."""
    if not text.strip():
        raise click.BadParameter("it is empty; leave the option out where nothing is to be said")
    return text
