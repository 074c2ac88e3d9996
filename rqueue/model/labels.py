"""Labels in history: what a job's row keeps of its labels and headers.

All labels are kept unless names are chosen; then those labels, and headers, of these names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from orjson import dumps

from rqueue.errors import Undecodable
from rqueue.model.envelope import unpack

__all__ = ["ALL", "labels_of", "may_have_labels", "texts"]

ALL = ("*",)
"""Stands for all labels a job has; names beside it are of headers."""

MOST, LONGEST = 16, 200
"""Labels of one row, and characters of one: the rest is left out."""

_LAST_BUT_ONE = itemgetter(-2)


def may_have_labels(values: Sequence[bytes]) -> bool:
    """Whether one of these stored values may say more of a job than its task and arguments: a look
    at one byte of each."""
    try:
        # a } before the last ]: options, or named arguments
        return 125 in map(_LAST_BUT_ONE, values)
    except IndexError:
        return True


def labels_of(value: bytes, names: Sequence[str] = ALL) -> dict[str, str]:
    """What the row of a job keeps; `value`: as it is stored, or its envelope. Of one that cannot be
    read, nothing."""
    if not names or (b'"labels"' not in value and b'"headers"' not in value):
        return {}
    try:
        opts = unpack(value[value.find(b";") + 1 :] if value[:1].isdigit() else value)[3]
    except Undecodable:
        return {}
    return texts(opts.get("labels"), opts.get("headers"), names)


def texts(labels: Any, headers: Any, names: Sequence[str] = ALL) -> dict[str, str]:
    """Those of these labels and headers that have such a name, as text: others than text as JSON
    writes them. Of a label and a header of one name the label counts."""
    known: dict[str, Any] = {}
    if isinstance(headers, Mapping):
        known |= {name: value for name, value in headers.items() if name in names}
    if isinstance(labels, Mapping):
        every = "*" in names
        known |= {name: value for name, value in labels.items() if every or name in names}
    kept = list(known.items())[:MOST]
    return {
        name: (value if isinstance(value, str) else dumps(value).decode())[:LONGEST]
        for name, value in kept
    }
