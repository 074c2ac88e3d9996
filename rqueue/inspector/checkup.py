"""The checkup of one queue: its places walked in pages, what looks wrong looked at again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar, cast

import redis

from rqueue import store
from rqueue.connection import execute, translated
from rqueue.errors import Undecodable, WrongServer
from rqueue.inspector.consumer_checks import (
    consumer_names,
    diagnose_bytes,
    diagnose_consumer,
    diagnose_liveness,
)
from rqueue.inspector.findings import Action, Finding
from rqueue.inspector.job_checks import diagnose_job, list_of, seat_of
from rqueue.inspector.queues import glob_escape, scan, server_now
from rqueue.job import parse_record
from rqueue.keys import QueueKeys
from rqueue.store.repair import CHECK_PAGE, Checked

S = TypeVar("S")

LOOKS = 3
"""A finding is reported when it was seen so often, one after the other."""
PAUSE_S = 0.1
SUSPECTS_MAX = 1000
"""Jobs that one checkup looks at closely; a repair is followed by the next one."""
SCAN_ALWAYS = 20_000
"""Up to so many jobs each is looked for in its place, whatever the sums say."""
RECORDS_SAMPLE = 1000


class Checkup:
    """One checkup of one queue; `wait` sleeps between two looks."""

    def __init__(self, client: redis.Redis, keys: QueueKeys, wait: Callable[[float], None]) -> None:
        self.client = client
        self.keys = keys
        self._wait = wait
        self.jobs = 0
        """Elements that were looked at."""
        self._suspects: dict[str, bytes] = {}
        self._levels: set[int] = set()
        self._names: set[str] = set()
        self._registered: set[str] = set()
        self._others: tuple[str, ...] = ()
        self._highest = {"ready": 0, "due": 0}

    def findings(self) -> list[Finding]:
        """Everything that is wrong with this queue. Raises the server errors."""
        try:
            return list(self._findings())
        except WrongServer as error:
            return [Finding("counters", "schema", self.keys.queue, "", str(error))]

    def _findings(self) -> Iterator[Finding]:
        self._look_around()
        lists = [f"{kind}:{level}" for level in sorted(self._levels) for kind in ("due", "ready")]
        unsorted = [which for which in lists if not self._walk_list(which)]
        self._walk("scheduled", self._suspect_scheduled)
        self._walk("dead", self._suspect_dead)
        self._walk_hands()
        self._find_lost()
        yield from self._unordered(unsorted)
        yield from self._thrice(islice(self._suspects, SUSPECTS_MAX), self._diagnose_job)
        yield from self._thrice(sorted(self._names), self._diagnose_consumer)
        yield from self._thrice(sorted(self._registered), self._diagnose_bytes)
        yield from self._thrice([""], self._diagnose_liveness)
        yield from self._thrice(["levels", "positions", "version"], self._diagnose_meta)
        if not unsorted and not self._suspects:
            # else the count is not to be trusted before those are repaired
            yield from self._thrice(["marked"], self._diagnose_marked)
        yield from self._thrice(
            ["causes", "errors", "awaited", "parked", "short"], self._diagnose_leftovers
        )
        yield from self._sample_records()

    def _execute(self, call: store.Call[S]) -> S:
        return execute(self.client, call, queue=self.keys.queue)

    # -- looking again -----------------------------------------------------------------------------

    def _thrice(
        self, subjects: Iterable[S], look: Callable[[S], list[Finding]]
    ) -> Iterator[Finding]:
        """What is seen of a subject in each of `LOOKS` looks: a queue that moves may be caught
        between two of our reads, but not again and again."""
        seen: dict[S, list[Finding]] = {}
        for subject in subjects:
            if found := look(subject):
                seen[subject] = found
        for _ in range(LOOKS - 1):
            if not seen:
                return
            self._wait(PAUSE_S)
            for subject in list(seen):
                known = {finding.key for finding in seen[subject]}
                seen[subject] = [f for f in look(subject) if f.key in known]
                if not seen[subject]:
                    del seen[subject]
        for found in seen.values():
            yield from found

    # -- what there is -----------------------------------------------------------------------------

    def _look_around(self) -> None:
        """Levels and names, from all keys of the queue: what nobody speaks of is there too."""
        base = self.keys.base
        for key in scan(self.client, glob_escape(base) + "[rdhcw]*"):
            kind, colon, name = key[len(base) :].partition(":")
            if kind in ("ready", "due") and name.isdigit():
                self._levels.add(int(name))
            elif kind in ("held", "consumer", "wake") and colon:
                self._names.add(name)
        self._levels |= self._meta_levels()
        self._registered, inside = consumer_names(self.client, self.keys)
        self._names |= self._registered | inside
        self._others = tuple(sorted(self._names - self._registered))

    def _meta(self, *fields: str) -> list[bytes | None]:
        with translated(self.client, queue=self.keys.queue):
            return cast("list[bytes | None]", self.client.hmget(self.keys.meta, list(fields)))

    def _meta_levels(self) -> set[int]:
        (levels,) = self._meta("levels")
        return {int(level) for level in (levels or b"").decode().split(",") if level.isdigit()}

    # -- walking -----------------------------------------------------------------------------------

    def _pages(self, which: str) -> Iterator[list[Checked]]:
        """Pages from the end: jobs leave at the front and come at the end, so what is counted from
        the end is seen twice, never passed over."""
        stop = -1
        while True:
            call = store.check_page(self.keys, which, stop - CHECK_PAGE + 1, stop)
            elements = self._execute(call).elements
            if not elements:
                return
            self.jobs += len(elements)
            yield elements
            stop -= CHECK_PAGE

    def _walk(self, which: str, suspect: Callable[[Checked], None]) -> None:
        for elements in self._pages(which):
            for element in elements:
                suspect(element)

    def _walk_list(self, which: str) -> bool:
        """Look at one ready list; whether it is sorted."""
        kind, _, level = which.partition(":")
        in_order = True
        behind: int | None = None  # position of the element that follows
        seen: set[bytes] = set()
        for elements in self._pages(which):
            for element in reversed(elements):
                if element.member in seen:
                    continue  # the list grew: this one was on the last page
                position = element.position
                if not self._fits_list(element, kind, int(level)):
                    self._suspect(element.member)
                elif position is not None:
                    self._highest[kind] = max(
                        self._highest[kind], position if kind == "ready" else position + 10**13
                    )
                    if position == behind:
                        self._suspect(element.member)  # twice in this list
                    elif behind is not None and position > behind:
                        in_order = False
                    behind = position
            seen = {element.member for element in elements}
        return in_order

    def _suspect(self, member: bytes, seat: bytes = b"") -> None:
        self._suspects.setdefault(member.decode("utf-8", "surrogateescape"), seat)

    def _fits_list(self, element: Checked, kind: str, level: int) -> bool:
        if element.marked:
            return not set("sd") & set(element.notes)
        if "h" not in element.notes or set("sdr") & set(element.notes):
            return False
        return list_of(element.position or 0, element.level) == f"{kind}:{level}"

    def _suspect_scheduled(self, element: Checked) -> None:
        id_ = element.member[14:]
        right = seat_of(element.position or 0, id_.decode("utf-8", "surrogateescape"))
        if "h" not in element.notes or set("dr") & set(element.notes) or element.member != right:
            self._suspect(id_, element.member)

    def _suspect_dead(self, element: Checked) -> None:
        if not {"h", "c"} <= set(element.notes) or "s" in element.notes:
            self._suspect(element.member)

    def _walk_hands(self) -> None:
        seen: set[bytes] = set()
        for name in sorted(self._names):
            mine: set[bytes] = set()
            for elements in self._pages(f"held:{name}"):
                for element in elements:
                    wrong = "h" not in element.notes or set("sdrw") & set(element.notes)
                    if wrong or element.member in seen:
                        self._suspect(element.member)
                    mine.add(element.member)
                if len(mine) < len(elements):  # twice in these hands
                    for element in elements:
                        self._suspect(element.member)
            seen |= mine

    def _find_lost(self) -> None:
        """Jobs in no place: where the sums do not agree (or are small), each job is looked for."""
        with (
            translated(self.client, queue=self.keys.queue),
            self.client.pipeline(transaction=True) as pipe,
        ):
            pipe.hlen(self.keys.jobs)
            pipe.zcard(self.keys.scheduled)
            pipe.zcard(self.keys.dead)
            for level in self._levels:
                pipe.llen(self.keys.ready(level))
                pipe.llen(self.keys.due(level))
            for name in self._names:
                pipe.llen(self.keys.held(name))
            stored, *placed = cast("list[int]", pipe.execute())
        if stored == sum(placed) and stored > SCAN_ALWAYS:
            return
        cursor = "0"
        while len(self._suspects) < SUSPECTS_MAX:
            cursor, lost = self._execute(store.check_scan(self.keys, cursor, CHECK_PAGE))
            for id_ in lost:
                self._suspects.setdefault(id_, b"")
            if cursor == "0":
                return

    # -- what is wrong -----------------------------------------------------------------------------

    def _diagnose_job(self, id: str) -> list[Finding]:
        seat = self._suspects[id]
        places = self._execute(store.check_job(self.keys, id, seat, self._others))
        strangers = set(places.holders) & set(self._others)
        elsewhere = places.lists or places.dead or places.due or len(places.holders) > 1
        if strangers and places.head[:1] == "h" and not elsewhere:
            return []  # all that an unregistered consumer holds is one finding
        return diagnose_job(self.keys.queue, id, places, seat, self._others)

    def _diagnose_consumer(self, name: str) -> list[Finding]:
        now = server_now(self.client, self.keys)
        return diagnose_consumer(self.client, self.keys, name, now)

    def _diagnose_bytes(self, name: str) -> list[Finding]:
        return diagnose_bytes(self.client, self.keys, name)

    def _diagnose_liveness(self, _subject: str) -> list[Finding]:
        now = server_now(self.client, self.keys)
        return diagnose_liveness(self.client, self.keys, sorted(self._levels), now)

    def _unordered(self, suspects: list[str]) -> Iterator[Finding]:
        def look(which: str) -> list[Finding]:
            misplaced = self._misplaced(which)
            if not misplaced:
                return []
            says = (
                f"{len(misplaced)} jobs of list {which} do not stand where their positions say:"
                " they run too early or too late, and a search for them goes wrong"
            )
            return [
                Finding(
                    "order",
                    "unsorted",
                    self.keys.queue,
                    which,
                    says,
                    "take them out and put them back at their positions",
                    action=Action("order", tuple(misplaced), others=self._others),
                )
            ]

        yield from self._thrice(suspects, look)

    def _misplaced(self, which: str) -> list[str]:
        """The fewest elements of a list without which it is sorted."""
        elements: dict[bytes, int] = {}
        for page in self._pages(which):
            for element in reversed(page):
                if element.position is not None:
                    elements.setdefault(element.member, element.position)
        members = list(elements)[::-1]
        positions = [elements[member] for member in members]
        # longest increasing subsequence: `tails[n]` ends the best one of length n + 1
        tails: list[int] = []
        ends: list[int] = []
        before: list[int] = []
        for index, position in enumerate(positions):
            length = bisect_left(tails, position)
            before.append(ends[length - 1] if length else -1)
            tails[length : length + 1] = [position]
            ends[length : length + 1] = [index]
        kept, at = set(), ends[-1] if ends else -1
        while at >= 0:
            kept.add(at)
            at = before[at]
        return [
            member.decode("utf-8", "surrogateescape")
            for index, member in enumerate(members)
            if index not in kept
        ]

    def _diagnose_meta(self, subject: str) -> list[Finding]:
        action = Action("meta", levels=tuple(sorted(self._levels)))

        def finding(kind: str, says: str, remedy: str) -> list[Finding]:
            return [
                Finding("counters", kind, self.keys.queue, subject, says, remedy, action=action)
            ]

        if subject == "levels":
            missing = sorted(self._levels - self._meta_levels())
            if missing:
                levels = ", ".join(map(str, missing))
                return finding(
                    "levels",
                    f"jobs wait in level {levels}, which is not among the levels in use: no pull"
                    " looks there",
                    "note the level",
                )
        elif subject == "positions":
            seq, promoted = (int(value or 0) for value in self._meta("seq", "promoted"))
            if self._highest["ready"] > seq or self._highest["due"] > promoted:
                return finding(
                    "positions",
                    f"a job has position {max(self._highest['ready'] - seq, 0)} beyond the last"
                    " one that was given: the next jobs would stand before it",
                    "go on behind it",
                )
        elif (version := self._meta("v")[0]) is None and (self._levels or self._registered):
            return finding(
                "version",
                f"the queue does not say which version of rqueue wrote it ({version!r})",
                "write this one's",
            )
        return []

    def _diagnose_marked(self, subject: str) -> list[Finding]:
        """The counter of cancelled elements, compared with those there are; a count that was
        disturbed says nothing."""
        signs = ("marked", "cancelled", "acked", "released")
        before = self._meta(*signs)
        marks = 0
        for level in sorted(self._levels):
            for kind in ("due", "ready"):
                seen: set[bytes] = set()
                for page in self._pages(f"{kind}:{level}"):
                    marks += sum(e.marked for e in page if e.member not in seen)
                    seen = {e.member for e in page}
        counted = int(before[0] or 0)
        if marks == counted or before != self._meta(*signs):
            return []
        return [
            Finding(
                "counters",
                "marked",
                self.keys.queue,
                subject,
                f"{marks} cancelled elements are in the lists, and {counted} are counted: the"
                f" number of ready jobs is wrong by {abs(marks - counted)}",
                "count them",
                action=Action("meta", marked=(counted, marks)),
            )
        ]

    def _diagnose_leftovers(self, which: str) -> list[Finding]:
        ids = list(islice(self._leftovers(which), 250))
        if not ids:
            return []
        what = {
            "causes": "causes of dead letters that are not there: they take room",
            "errors": "errors of jobs that are not there: they take room",
            "awaited": "notes that somebody waits for a job that is not there: they take room",
            "parked": "notes that a job is parked which is not scheduled: the numbers are wrong",
            "short": "consumers wait for room for a job that is not there: they are never told",
        }[which]
        shown = ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")
        return [
            Finding(
                "records",
                which,
                self.keys.queue,
                which,
                f"{len(ids)}{' or more' if len(ids) == 250 else ''} {what} ({shown})",
                "tell them" if which == "short" else "drop them",
                "problem" if which in ("short", "causes") else "note",
                Action("leftovers", tuple(ids), which=which),
            )
        ]

    def _leftovers(self, which: str) -> Iterator[str]:
        key = getattr(self.keys, which)
        cursor = 0
        with translated(self.client, queue=self.keys.queue):
            while True:
                cursor, found = cast(
                    "tuple[int, dict[bytes, bytes]]", self.client.hscan(key, cursor, count=100)
                )
                for id_ in found:
                    name = id_.decode("utf-8", "surrogateescape")
                    if not self._is_true(which, name):
                        yield name
                if not cursor:
                    return

    def _is_true(self, which: str, id: str) -> bool:
        if which == "causes":
            raw = id.encode("utf-8", "surrogateescape")
            return self.client.zscore(self.keys.dead, raw) is not None
        raw_id: Any = id.encode("utf-8", "surrogateescape")
        value_size = self.client.hstrlen(self.keys.jobs, raw_id)
        if not value_size:
            return False
        if which == "parked":
            return self._execute(store.check_job(self.keys, id)).due is not None
        return True

    def _sample_records(self) -> Iterator[Finding]:
        broken = 0
        with translated(self.client, queue=self.keys.queue):
            for key in (self.keys.ended, self.keys.ended_old):
                _, found = cast(
                    "tuple[int, dict[bytes, bytes]]",
                    self.client.hscan(key, 0, count=RECORDS_SAMPLE),
                )
                for raw in found.values():
                    try:
                        parse_record(raw)
                    except Undecodable:
                        broken += 1
        if broken:
            says = (
                f"{broken} of some {RECORDS_SAMPLE} records that were looked at cannot be read:"
                " who asks for these results gets an error until they are forgotten"
            )
            yield Finding("records", "unreadable", self.keys.queue, "", says)
