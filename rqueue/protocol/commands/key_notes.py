"""Build the calls that look at what a queue of last values keeps of its keys, named as in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.protocol.call import CommandCall
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_text


class LatestPage(NamedTuple):
    """Some keys: key -> id of its latest job. `cursor` goes into the next call; 0: that was the
    last page."""

    cursor: int
    latest: dict[str, str]


def _read_page(replies: Sequence[Any]) -> LatestPage:
    cursor, found = replies[0]
    if not isinstance(found, dict):
        found = dict(zip(found[::2], found[1::2], strict=True))
    return LatestPage(int(cursor), {raw_text(key): raw_text(id_) for key, id_ in found.items()})


def _read_ids(replies: Sequence[Any]) -> list[str | None]:
    return [None if id_ is None else raw_text(id_) for id_ in (replies[0] if replies else [])]


def _read_scores(replies: Sequence[Any]) -> list[float | None]:
    return [None if score is None else float(score) for score in (replies[0] if replies else [])]


def latest_page(keys: QueueKeys, cursor: int = 0, *, count: int) -> CommandCall[LatestPage]:
    """About `count` of the keys."""
    return CommandCall(keys.meta, [("HSCAN", keys.latest, cursor, "COUNT", count)], _read_page)


def unique_page(keys: QueueKeys, cursor: int = 0, *, count: int) -> CommandCall[LatestPage]:
    """About `count` of the keys of unique jobs, and the ids of the jobs that have them."""
    return CommandCall(keys.meta, [("HSCAN", keys.unique, cursor, "COUNT", count)], _read_page)


def period_ends(keys: QueueKeys, names: Sequence[str]) -> CommandCall[list[float | None]]:
    """When the periods of these keys of unique jobs are over, ms; None where one has none."""
    asked = [("ZMSCORE", keys.periods, *names)] if names else []
    return CommandCall(keys.meta, asked, _read_scores)


def latest_of(keys: QueueKeys, names: Sequence[str]) -> CommandCall[list[str | None]]:
    """The ids of the latest jobs of these keys; None where nothing is kept of one."""
    asked = [("HMGET", keys.latest, *names)] if names else []
    return CommandCall(keys.meta, asked, _read_ids)
