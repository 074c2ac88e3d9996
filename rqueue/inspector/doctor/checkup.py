"""The checkup of one queue: its places walked in pages, what looks wrong looked at again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import TypeVar
from zlib import crc32

import redis

from rqueue.errors import WrongServer
from rqueue.inspector.doctor.bounded_checks import diagnose_room, suspect_room
from rqueue.inspector.doctor.class_checks import class_of, fits_class
from rqueue.inspector.doctor.consumer_checks import (
    diagnose_bytes,
    diagnose_consumer,
    diagnose_liveness,
)
from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.flow_checks import diagnose_deferred, suspect_deferred
from rqueue.inspector.doctor.group_checks import (
    diagnose_blocked,
    diagnose_group,
    fits_group,
    suspect_groups,
    without_turn,
)
from rqueue.inspector.doctor.job_checks import (
    diagnose_job,
    group_in,
    limits_in,
    list_of,
    places_beside,
)
from rqueue.inspector.doctor.key_checks import diagnose_key, suspect_keys
from rqueue.inspector.doctor.kind_checks import diagnose_outbox, diagnose_succession
from rqueue.inspector.doctor.limit_checks import (
    diagnose_limit,
    has_limits,
    suspect_limits,
    without_permits,
)
from rqueue.inspector.doctor.members import id_in, member_of, standing_of
from rqueue.inspector.doctor.note_checks import (
    MARK_SIGNS,
    diagnose_guard,
    diagnose_history,
    diagnose_leftovers,
    diagnose_marked,
    diagnose_meta,
    sample_records,
)
from rqueue.inspector.doctor.order_checks import misplaced
from rqueue.inspector.doctor.owner_checks import diagnose_own, diagnose_owner, place_of_turn
from rqueue.inspector.doctor.share_checks import has_shares, is_strand, looks_at_shares
from rqueue.inspector.doctor.ttl_checks import diagnose_expiring, suspect_expiring
from rqueue.inspector.doctor.type_checks import diagnose_types
from rqueue.inspector.doctor.unique_checks import diagnose_unique, suspect_unique
from rqueue.inspector.doctor.walk import Walk
from rqueue.protocol import commands
from rqueue.protocol.commands.class_notes import class_sizes, refusal_sizes
from rqueue.protocol.commands.clock import read_clock
from rqueue.protocol.commands.group_notes import group_sizes
from rqueue.protocol.commands.job_notes import notes_page
from rqueue.protocol.commands.owner_notes import own_sizes, owners_of
from rqueue.protocol.commands.places import place_sizes
from rqueue.protocol.commands.repair import Checked
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.replies import raw_bytes
from rqueue.text.numbers import many

S = TypeVar("S")

LOOKS = 3
"""A finding is reported when it was seen so often, one after the other."""
PAUSE_S = 0.1
SUSPECTS_MAX = 10_000
FOUND_MAX = 1000
"""Jobs that one checkup looks at closely, and reports; a repair is followed by the next one."""
SCAN_PAGE = 1000
PASS_MAX = 2_000_000
"""Ids that a search for lost jobs keeps in memory at once."""
SCAN_ALWAYS = 20_000
"""Up to so many jobs each is looked for in its place, even where the sums are right."""


IN_SETS = ("scheduled", "group", "heads", "class", "refused", "own")
"""Places whose members say more than an id."""


class Checkup:
    """One checkup of one queue; `wait` sleeps between two looks."""

    def __init__(self, client: redis.Redis, keys: QueueKeys, wait: Callable[[float], None]) -> None:
        self.client = client
        self.keys = keys
        self.walk = Walk(client, keys)
        self._wait = wait
        self._suspects: dict[str, bytes] = {}
        self._glances: set[str] = set()
        self._held: set[bytes] = set()
        self._turns: list[tuple[str, bytes]] = []  # groups of jobs that are ready or held
        self._limited: set[bytes] = set()  # such jobs that name limits
        self._marks = 0

    def findings(self) -> list[Finding]:
        """Everything that is wrong with this queue. Raises the server errors."""
        try:
            return list(self._findings())
        except WrongServer as error:
            return [Finding("counters", "schema", self.keys.queue, "", str(error))]

    def _findings(self) -> Iterator[Finding]:
        wrong = list(diagnose_types(self.client, self.keys))
        if wrong:
            yield from wrong
            return  # what else there is can be read without them only
        self.walk.look_around()
        lists = [
            f"{kind}:{level}" for level in sorted(self.walk.levels) for kind in ("due", "ready")
        ]
        self._walk_held()
        before = self.walk.meta(*MARK_SIGNS)
        unsorted = [which for which in lists if not self._walk_list(which)]
        moved = self.walk.meta(*MARK_SIGNS) != before
        miscounted = int(before[0] or 0) != self._marks
        self._walk("scheduled", self._suspect_scheduled)
        self._walk("dead", self._suspect_dead)
        for which in self.walk.group_places():
            self._walk(which, partial(self._suspect_group, which))
        for which in self.walk.class_places():
            self._walk(which, partial(self._suspect_class, which))
        bare = without_turn(self.walk, self._turns), without_permits(self.walk, self._limited)
        for id_ in chain(*bare):
            self._glance(id_)
        self._find_lost(certain=bool(unsorted or self._suspects))
        yield from self._thrice(sorted(self.walk.owners), partial(diagnose_owner, self.walk))
        yield from self._thrice(sorted(self.walk.own), partial(diagnose_own, self.walk))
        yield from self._unordered(unsorted)
        yield from self._thrice(islice(self._suspects, SUSPECTS_MAX), self._diagnose_job)
        if has_limits(self.walk):
            look = partial(diagnose_limit, self.walk, self._limited)
            yield from self._thrice(suspect_limits(self.walk, self._limited), look)
        elif not has_shares(self.walk):
            yield from self._thrice(suspect_groups(self.walk), partial(diagnose_group, self.walk))
        for subjects, look_at in looks_at_shares(self.walk):
            yield from self._thrice(subjects, look_at)
        yield from self._thrice(["blocked"], partial(diagnose_blocked, self.walk))
        yield from self._thrice(suspect_keys(self.walk), partial(diagnose_key, self.walk))
        yield from self._thrice(suspect_unique(self.walk), partial(diagnose_unique, self.walk))
        yield from self._thrice(sorted(self.walk.names), self._diagnose_consumer)
        yield from self._thrice(sorted(self.walk.registered), self._diagnose_bytes)
        yield from self._thrice([""], self._diagnose_liveness)
        yield from self._thrice(
            ["levels", "positions", "promoted", "version"], partial(diagnose_meta, self.walk)
        )
        # A large queue that moves cannot be counted, and one with other damages not trusted
        countable = miscounted if not moved else self.walk.jobs <= SCAN_ALWAYS
        if countable and not unsorted and not self._suspects:
            yield from self._thrice(["marked"], partial(diagnose_marked, self.walk))
        yield from self._thrice(
            ["causes", "errors", "awaited", "parked", "byte_waiters"],
            partial(diagnose_leftovers, self.walk),
        )
        yield from self._thrice(suspect_expiring(self.walk), partial(diagnose_expiring, self.walk))
        yield from self._thrice(suspect_deferred(self.walk), partial(diagnose_deferred, self.walk))
        for diagnose in (diagnose_succession, diagnose_outbox):
            yield from self._thrice([""], partial(diagnose, self.walk))
        yield from self._thrice(suspect_room(self.walk), partial(diagnose_room, self.walk))
        yield from self._thrice(["guard"], partial(diagnose_guard, self.walk))
        yield from diagnose_history(self.walk)
        yield from sample_records(self.walk)

    # -- looking again -----------------------------------------------------------------------------

    def _thrice(
        self, subjects: Iterable[S], look: Callable[[S], list[Finding]]
    ) -> Iterator[Finding]:
        """The findings that each of `LOOKS` looks at a subject has: a moving queue may be caught
        between two of our reads, but not again and again."""
        seen: dict[S, list[Finding]] = {}
        for subject in subjects:
            if found := look(subject):
                seen[subject] = found
                if len(seen) == FOUND_MAX:
                    break
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

    # -- walking -----------------------------------------------------------------------------------

    def _walk(self, which: str, suspect: Callable[[Checked], None]) -> None:
        for elements in self.walk.pages(which):
            for element in elements:
                suspect(element)

    def _walk_list(self, which: str) -> bool:
        """Look at one ready list; whether it is sorted."""
        kind, _, level = which.partition(":")
        in_order = True
        behind: tuple[int, int] | None = None  # of the element that follows
        seen: set[bytes] = set()
        for elements in self.walk.pages(which):
            for element in reversed(elements):
                if element.member in seen:
                    continue  # the list grew: this one was on the last page
                self._marks += element.marked
                order = element.order
                if not self._fits_list(element, kind, int(level)):
                    self._suspect(element.member)
                elif element.member in self._held:
                    self._glance(element.member)
                elif order is not None:
                    if order == behind:
                        self._suspect(element.member)  # twice in this list
                    elif behind is not None and order > behind:
                        in_order = False
                    behind = order
                    self.walk.promoted = self.walk.promoted or order[0] > 0
            seen = {element.member for element in elements}
        return in_order

    def _suspect(self, id: bytes, member: bytes = b"") -> None:
        self._suspects.setdefault(id.decode("utf-8", "surrogateescape"), member)

    def _glance(self, member: bytes) -> None:
        """Suspect what may only have moved: the first look at it is a cheap one."""
        id_ = member.decode("utf-8", "surrogateescape")
        if id_ not in self._suspects:
            self._glances.add(id_)
            self._suspects[id_] = b""

    def _fits_list(self, element: Checked, kind: str, level: int) -> bool:
        if element.marked:
            return not set("sd") & set(element.notes)
        if "h" not in element.notes or set("sdr") & set(element.notes):
            return False
        elsewhere = places_beside(element.head) or class_of(element.head, self.walk.classes)
        return list_of(element.head) == f"{kind}:{level}" and not elsewhere

    def _suspect_class(self, which: str, element: Checked) -> None:
        id_ = id_in(element.member)
        member = standing_of(element.head, id_.decode("utf-8", "surrogateescape"))
        if not fits_class(which, element, self.walk.classes, member):
            self._suspect(id_, element.member)

    def _suspect_group(self, which: str, element: Checked) -> None:
        id_ = id_in(element.member)
        if not fits_group(which, element, place_of_turn(element.head, self.walk.owners)):
            self._suspect(id_, element.member)
        elif which.startswith(("heads", "own:")) or is_strand(which.removeprefix("group:")):
            self._needs(element.head, id_)

    def _needs(self, head: str, id: bytes) -> None:
        """Note what a job must have that is ready or held: the turn of its group, or permits."""
        if group := group_in(head):
            self._turns.append((group, id))
        if limits_in(head):
            self._limited.add(id)

    def _suspect_scheduled(self, element: Checked) -> None:
        id_ = id_in(element.member)
        right = member_of(element.head, id_.decode("utf-8", "surrogateescape"))
        if "h" not in element.notes or set("dr") & set(element.notes) or element.member != right:
            self._suspect(id_, element.member)

    def _suspect_dead(self, element: Checked) -> None:
        if not {"h", "c"} <= set(element.notes) or "s" in element.notes:
            self._suspect(element.member)

    def _walk_held(self) -> None:
        for name in sorted(self.walk.names):
            mine: set[bytes] = set()
            for elements in self.walk.pages(f"held:{name}"):
                for element in elements:
                    wrong = "h" not in element.notes or set("sdr") & set(element.notes)
                    if wrong or element.member in self._held or element.member in mine:
                        self._suspect(element.member)
                    mine.add(element.member)
                    self._needs(element.head, element.member)
            self._held |= mine

    def _find_lost(self, *, certain: bool) -> None:
        """Jobs in no place: each is looked for where sums differ, are small, or may agree by chance
        (something else is wrong: `certain`)."""
        sizes = place_sizes(self.keys, self.walk.levels, self.walk.names)
        stored, placed = self.walk.execute(sizes)
        placed += self.walk.execute(group_sizes(self.keys, self.walk.groups, heads=True))
        placed += sum(self.walk.execute(own_sizes(self.keys, sorted(self.walk.own))))
        placed += self.walk.execute(refusal_sizes(self.keys, self.walk.refusals))
        placed += self.walk.execute(class_sizes(self.keys, self.walk.class_numbers))
        if stored == placed and stored > SCAN_ALWAYS and not certain:
            return
        passes = -(-stored // PASS_MAX)
        for number in range(passes):
            self._search(number, passes)

    def _search(self, number: int, passes: int) -> None:
        """One share of the jobs, told apart by their ids: listed first, then crossed off wherever
        one is found; so what arrives meanwhile is not missed."""
        missing: set[bytes] = set()
        cursor = ""
        while cursor != "0":
            call = commands.check_scan(self.keys, cursor or "0", SCAN_PAGE)
            cursor, ids = self.walk.execute(call)
            missing.update(id_ for id_ in ids if passes == 1 or crc32(id_) % passes == number)
        for which in self._places():
            id_at = id_in if which.startswith(IN_SETS) else bytes
            for elements in self.walk.pages(which):
                missing.difference_update(id_at(element.member) for element in elements)
        deferred = 0
        while missing:
            page = self.walk.execute(notes_page(self.keys, "deferred", deferred, count=SCAN_PAGE))
            missing.difference_update(raw_bytes(id_) for id_ in page.notes)
            if not (deferred := page.cursor):
                break
        for id_ in islice(missing, SUSPECTS_MAX):
            self._glance(id_)

    def _places(self) -> list[str]:
        """Every place for jobs, in the order in which jobs go through them."""
        lists = [f"{kind}:{n}" for n in sorted(self.walk.levels) for kind in ("due", "ready")]
        return [
            "scheduled",
            *self.walk.group_places()[::-1],
            *self.walk.class_places(),
            *lists,
            *(f"held:{name}" for name in self.walk.names),
            "dead",
        ]

    # -- what is wrong -----------------------------------------------------------------------------

    def _diagnose_job(self, id: str) -> list[Finding]:
        member = self._suspects[id]
        others, deep = self.walk.others, id not in self._glances
        self._glances.discard(id)
        places = self.walk.execute(commands.check_job(self.keys, id, member, others, deep=deep))
        strangers = set(places.holders) & set(others)
        elsewhere = places.lists or places.dead or places.due or len(places.holders) > 1
        if strangers and places.head[:1] == "h" and not elsewhere:
            return []  # all that an unregistered consumer holds is one finding
        turn = place_of_turn(places.head[1:], self.walk.execute(owners_of(self.keys)).owners)
        return diagnose_job(self.keys.queue, id, places, member, others, self.walk.classes, turn)

    def _diagnose_consumer(self, name: str) -> list[Finding]:
        now = self.walk.execute(read_clock(self.keys)).now
        return diagnose_consumer(self.client, self.keys, name, now)

    def _diagnose_bytes(self, name: str) -> list[Finding]:
        return diagnose_bytes(self.client, self.keys, name)

    def _diagnose_liveness(self, _subject: str) -> list[Finding]:
        now = self.walk.execute(read_clock(self.keys)).now
        return diagnose_liveness(self.client, self.keys, sorted(self.walk.levels), now)

    def _unordered(self, suspects: list[str]) -> Iterator[Finding]:
        def look(which: str) -> list[Finding]:
            out = self._misplaced(which)
            if not out:
                return []
            says = (
                f"{many(len(out), 'job')} of list {which} not where they belong:"
                " they run too early or too late, and a search for them goes wrong"
            )
            return [
                Finding(
                    "order",
                    "unsorted",
                    self.keys.queue,
                    which,
                    says,
                    "take them out and put them back at their places",
                    action=Action("order", tuple(out), others=self.walk.others),
                )
            ]

        yield from self._thrice(suspects, look)

    def _misplaced(self, which: str) -> list[str]:
        """The fewest elements of a list without which it is sorted."""
        elements: dict[bytes, tuple[int, int]] = {}
        for page in self.walk.pages(which):
            for element in reversed(page):
                if element.member in elements:
                    # twice in the list, or the list grew: a close look tells
                    self._suspect(element.member)
                elif (order := element.order) is not None:
                    elements[element.member] = order
        return misplaced(elements)
