"""Build the calls that check a live queue, and repair it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rqueue.model.job import DEFAULT_LEVEL, parse_header, sort_key
from rqueue.protocol.call import Arg, ScriptCall, text
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_bytes, raw_text

CHECK_PAGE = 250
"""Elements that one check_page call looks at: a few ms of Redis."""


class Checked(NamedTuple):
    """One element of a place. `member`: as it stands there; `head`: what is before the envelope, a
    mark, or "" without a job; `score`: -1.0 in lists. `notes`: see `lua/check_page.lua`."""

    member: bytes
    head: str
    score: float
    bytes: int
    notes: str

    @property
    def marked(self) -> bool:
        """Whether it is the mark of a cancelled job."""
        return self.head[:1] == "!"

    @property
    def order(self) -> tuple[int, int] | None:
        """Due time (0: an ordinary one) and position of the job or the mark: where it stands in its
        list. None where the head says no such thing."""
        return order_in(self.head)

    @property
    def level(self) -> int:
        """The job's level; 4 where the header does not say."""
        return level_in(self.head)


def order_in(head: str) -> tuple[int, int] | None:
    """Due time and position in a header or a mark (`!<position>,<due>`), None where there is no
    such thing."""
    return sort_key(raw_bytes(head))


def level_in(head: str) -> int:
    """The level in a header; 4 where there is none."""
    header = parse_header(raw_bytes(head))
    return DEFAULT_LEVEL if header is None else header.level


class CheckedPage(NamedTuple):
    """A page of a place, which has `size` elements in all."""

    now: int
    size: int
    elements: list[Checked]


class Places(NamedTuple):
    """Where one job is, at one moment. `head` begins with "h" for a header, "!" for a mark, "?" for
    what is neither; "" = no such job. `due`: at its own member in the schedule, `stray`: at
    the member that was asked for. `lists`, `holders`: name -> how often."""

    now: int
    head: str
    due: float | None
    stray: float | None
    dead: bool
    cause: bool
    record: bool
    lists: dict[str, int]
    holders: dict[str, int]


def _read_page(reply: Any) -> CheckedPage:
    flat = reply[2:]
    elements = [
        Checked(
            flat[i],
            raw_text(flat[i + 1]),
            float(flat[i + 2]) if flat[i + 2] else -1.0,
            flat[i + 3],
            text(flat[i + 4]),
        )
        for i in range(0, len(flat), 5)
    ]
    return CheckedPage(reply[0], reply[1], elements)


def _read_scan(reply: Any) -> tuple[str, list[bytes]]:
    return text(reply[1]), reply[2:]


def _counts(flat: list[Any]) -> dict[str, int]:
    return {raw_text(flat[i]): flat[i + 1] for i in range(0, len(flat), 2)}


def _read_places(reply: Any) -> Places:
    now, head, due, stray, dead, cause, record, lists, holders = reply
    return Places(
        now,
        raw_text(head),
        float(due) if due else None,
        float(stray) if stray else None,
        bool(dead),
        bool(cause),
        bool(record),
        _counts(lists),
        _counts(holders),
    )


def _read_word(reply: Any) -> str:
    return text(reply[1])


def _read_set_right(reply: Any) -> tuple[str, int]:
    return text(reply[1]), int(reply[2])


def _read_fields(reply: Any) -> list[str]:
    return [text(field) for field in reply[1]]


def _read_count(reply: Any) -> int:
    return int(reply[1])


def check_page(keys: QueueKeys, which: str, start: int, stop: int) -> ScriptCall[CheckedPage]:
    """A page of one place (a list of jobs, the schedule, the dead letters, what a consumer holds),
    by indexes as of LRANGE."""
    return ScriptCall("check_page", keys.meta, [which, start, stop], _read_page)


def check_scan(keys: QueueKeys, cursor: str, limit: int) -> ScriptCall[tuple[str, list[bytes]]]:
    """Ids of some of the stored jobs; (the next cursor, ids)."""
    return ScriptCall("check_scan", keys.meta, [cursor, limit], _read_scan)


def check_job(
    keys: QueueKeys, id: str, member: bytes = b"", others: Sequence[str] = (), *, deep: bool = True
) -> ScriptCall[Places]:
    """Every place that one job is in. deep: walk the ready lists (slow where many jobs wait), else
    look only where its position says."""
    args: list[Arg] = [raw_bytes(id), member, "1" if deep else "0", *map(raw_bytes, others)]
    return ScriptCall("check_job", keys.meta, args, _read_places)


def repair_job(
    keys: QueueKeys, id: str, step: str = "place", member: bytes = b"", others: Sequence[str] = ()
) -> ScriptCall[str]:
    """Leave a job in exactly one place; answers which."""
    args: list[Arg] = [raw_bytes(id), step, member, *map(raw_bytes, others)]
    return ScriptCall("repair_job", keys.meta, args, _read_word)


def repair_consumer(keys: QueueKeys, consumer: str) -> ScriptCall[tuple[str, int]]:
    """Set a consumer right; (its list or "", jobs left of an unregistered one: call again)."""
    return ScriptCall("repair_consumer", keys.meta, [raw_bytes(consumer)], _read_set_right)


def repair_meta(
    keys: QueueKeys,
    levels: Sequence[int] = (),
    marked: tuple[int, int] | None = None,
    highest: int = 0,
) -> ScriptCall[list[str]]:
    """Set right what meta says of the lists; answers the changed fields. marked: (what the counter
    was, what it is to be). highest: a position that some job has."""
    was, becomes = ("", "") if marked is None else (str(marked[0]), str(marked[1]))
    args: list[Arg] = [was, becomes, highest, *levels]
    return ScriptCall("repair_meta", keys.meta, args, _read_fields)


class Miscount(NamedTuple):
    """What was seen of a limit at one moment: `fewer` permits are said to be out than jobs have,
    and `last` was who had set such a number right before, "" = nobody. `by`: who does it now."""

    fewer: int = 0
    last: str = ""
    by: str = "doctor"


NO_MISCOUNT = Miscount()
"""The number of permits stays."""


def repair_group(
    keys: QueueKeys,
    group: str,
    blocked: tuple[int, int] | None = None,
    miscount: Miscount = NO_MISCOUNT,
    ids: Sequence[str] = (),
) -> ScriptCall[int]:
    """Set right who has the turn of a group (escaped, as in names of keys; "" = none), or the
    number of blocked jobs: (what it was, what it is to be); or the permits of a limit, of which
    these jobs have some that seemed neither ready nor held. Answers how much was changed."""
    was, becomes = ("", "") if blocked is None else (str(blocked[0]), str(blocked[1]))
    fewer, last, by = miscount
    args: list[Arg] = [raw_bytes(group), was, becomes, fewer, last, by, *map(raw_bytes, ids)]
    return ScriptCall("repair_group", keys.meta, args, _read_count)


def repair_leftovers(keys: QueueKeys, which: str, ids: Sequence[str]) -> ScriptCall[int]:
    """Drop what is noted of jobs that it is no longer true of; answers how many."""
    return ScriptCall("repair_leftovers", keys.meta, [which, *map(raw_bytes, ids)], _read_count)


def repair_parents(keys: QueueKeys, id: str, first: int = 0) -> ScriptCall[int]:
    """Let a job that waits for others hear of those that have ended, or are lost, without its
    knowledge; of the thousand from the place `first` on. Answers of how many."""
    return ScriptCall("repair_parents", keys.meta, [raw_bytes(id), first], _read_count)


def repair_outbox(keys: QueueKeys, members: Sequence[str]) -> ScriptCall[int]:
    """Set the outbox right: what is named in it has a job, and each job is named. Answers how much
    was changed."""
    return ScriptCall(
        "repair_outbox", keys.meta, [raw_bytes(name) for name in members], _read_count
    )
