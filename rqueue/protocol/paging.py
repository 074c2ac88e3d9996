"""Reading all pages of a listing, without I/O: the one place that knows which page is the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeAlias, TypeVar

from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.read import (
    PAGE_MAX,
    EntryPage,
    Page,
    browse,
    browse_set,
)
from rqueue.protocol.keys import QueueKeys

__all__ = ["AnyPage", "Paging", "entries", "read_pages", "waiting"]

AnyPage: TypeAlias = Page | EntryPage

C = TypeVar("C")
P = TypeVar("P", bound=AnyPage)


class Paging(Generic[P, C]):
    """The way through a listing: while there is a `call`, its page goes to `read`.

    `more` alone says which page is the last: one without jobs may have others behind it, if its own
    have ended.
    """

    def __init__(self, make: Callable[[C], ScriptCall[P]], cursor: C) -> None:
        self._make = make
        self._more = True
        self.cursor = cursor
        """Where the next page begins."""

    @property
    def call(self) -> ScriptCall[P] | None:
        """What reads the next page; None behind the last one."""
        return self._make(self.cursor) if self._more else None

    def read(self, page: P) -> P:
        """Go on behind this page; returns it."""
        cursor: Any = page.cursor
        self.cursor, self._more = cursor, page.more
        return page


def read_pages(paging: Paging[P, Any], run: Callable[[ScriptCall[P]], P]) -> Iterator[P]:
    """All pages of a listing; the next one is read when it is asked for."""
    while call := paging.call:
        yield paging.read(run(call))


def waiting(keys: QueueKeys, cursor: str = "", limit: int = PAGE_MAX) -> Paging[Page, str]:
    """The ready jobs in their order, then those behind others of their groups."""
    return Paging(lambda place: browse(keys, place, limit), cursor)


def entries(
    keys: QueueKeys,
    which: str,
    cursor: tuple[str, str] = ("-inf", ""),
    limit: int = PAGE_MAX,
) -> Paging[EntryPage, tuple[str, str]]:
    """The jobs that are `scheduled`, `dead` or `held:<consumer>`, by their scores."""
    return Paging(lambda place: browse_set(keys, which, place, limit), cursor)
