"""Where jobs with labels belong in a queue with selectors, and whether they are there."""

from __future__ import annotations

from collections.abc import Mapping

from rqueue.protocol.commands.repair import Checked

MEMBER_PREFIX = 16
"""Digits before the id in a member of a class, as in one of the schedule."""

CLASSES_MOST = 64
"""Where all of these have jobs, others stand in the lists."""


def labels_noted(head: str) -> str | None:
    """The labels that a header notes, as in the names of classes; None where it notes none."""
    _, found, labels = head.partition("|c")
    return labels.partition("|")[0] if found else None


def class_of(head: str, classes: Mapping[str, str]) -> tuple[str, ...]:
    """The class that a ready job with this header stands in; () where it stands in a list."""
    labels = labels_noted(head)
    if labels is None or (labels not in classes and len(classes) >= CLASSES_MOST):
        return ()
    return (f"class:{classes.get(labels, '?')}",)


def fits_class(which: str, element: Checked, classes: Mapping[str, str], member: bytes) -> bool:
    """Whether this element belongs into the class that is called so. member: what it should be."""
    if "h" not in element.notes or set("sdr") & set(element.notes):
        return False
    return element.member == member and class_of(element.head, classes) == (which,)
