"""Problems of limits: who has permits, how many are out, and what is known of those that wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import islice

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.group_checks import GROUPS_MAX, fits_group
from rqueue.inspector.doctor.job_checks import limits_in
from rqueue.inspector.doctor.walk import Walk
from rqueue.protocol import commands
from rqueue.protocol.commands import Miscount
from rqueue.protocol.commands.limit_notes import PermitsState, permits_state
from rqueue.protocol.policies import limits

STRANGERS_MAX = 100
"""Jobs with permits that were not seen ready or held, of which one look at a limit asks."""


def has_limits(walk: Walk) -> bool:
    """Whether the queue has the policy."""
    stamp = walk.meta("v")[0] or b""
    return limits.POLICY.name in stamp.decode("utf-8", "replace").split()


def without_permits(walk: Walk, there: Set[bytes]) -> Iterator[bytes]:
    """Ids of jobs that are ready or held, of these that name limits, and have no permits."""
    if there:
        claims = walk.execute(permits_state(walk.keys)).claims
        yield from (id_ for id_ in there if id_.decode("utf-8", "surrogateescape") not in claims)


def suspect_limits(walk: Walk, there: Set[bytes]) -> list[str]:
    """Limits that are waited for, and those whose permits are miscounted, or are of jobs that were
    neither ready nor held. there: ids of those that were."""
    state = walk.execute(permits_state(walk.keys))
    out, counted = state.out, state.counted
    wrong = {one for one in {*out, *counted} if out.get(one, 0) != counted.get(one, 0)}
    for id_, names in state.claims.items():
        if id_.encode("utf-8", "surrogateescape") not in there:
            wrong.update(names)
    return list(
        islice(sorted({*wrong, *filter(_is_limit, {*walk.groups, *state.waited_for})}), GROUPS_MAX)
    )


def diagnose_limit(walk: Walk, there: Set[bytes], limit: str) -> list[Finding]:
    """Whether the permits of this limit are those of jobs that are ready or held, and who waits for
    one is known, and gets what is free."""
    state = walk.execute(permits_state(walk.keys))

    def finding(
        kind: str, says: str, remedy: str, fewer: int = 0, ids: Sequence[str] = ()
    ) -> list[Finding]:
        miscount = Miscount(fewer, state.corrected_by, walk.name)
        action = Action("group", which=limit, miscount=miscount, ids=tuple(ids))
        return [Finding("limits", kind, walk.keys.queue, limit, says, remedy, action=action)]

    out, counted = state.out.get(limit, 0), state.counted.get(limit, 0)
    if out != counted:
        return finding(
            "permits",
            f"{max(0, out)} permits of limit {limit} are said to be out, and jobs have {counted}",
            "count them",
            fewer=counted - max(0, out),
        )
    strangers = [*islice(_strangers(state, there, limit), STRANGERS_MAX)]
    leaked = [id_ for id_ in strangers if not _may_have_permits(walk, id_)]
    if leaked:
        others = f", as have {len(leaked) - 1} others" if leaked[1:] else ""
        return finding(
            "leaked",
            f"job {leaked[0]!r}, neither ready nor held, has a permit of limit {limit}{others}: no"
            " other job gets it",
            "take it back",
            ids=leaked,
        )
    for page in walk.pages(f"group:{limit}"):
        if any(not fits_group(f"group:{limit}", element) for element in page):
            return finding(
                "stray",
                f"among those that wait for limit {limit} there is something that is no job of it,"
                " or not at its place",
                "take it out",
            )
    return _diagnose_waiting(walk, state, limit) or []


def _diagnose_waiting(walk: Walk, state: PermitsState, limit: str) -> list[Finding]:
    action = Action("group", which=limit)

    def finding(kind: str, says: str, remedy: str) -> list[Finding]:
        return [Finding("limits", kind, walk.keys.queue, limit, says, remedy, action=action)]

    call = commands.check_page(walk.keys, f"group:{limit}", 0, 0)
    first = walk.execute(call).elements
    if bool(first) != (limit in state.waited_for):
        return finding(
            "limit",
            f"limit {limit} {'is not' if first else 'has no jobs that wait and is'} among those"
            " that are waited for",
            "note it" if first else "forget it",
        )
    named = limits_in(first[0].head).get(limit) if first else None
    if named is None or limit in state.reopened:
        return []
    own, out = named.allowing(state.allowed(limit, named)), state.out.get(limit, 0)
    if own.per_ms and own.most and limit not in state.due and own.tokens <= own.burst - out:
        return finding(
            "untimed",
            f"a job waits for rate {limit}, and nobody knows when its tokens are there",
            "compute it",
        )
    if not own.per_ms and out < own.most:
        return finding(
            "not-offered",
            f"a job waits for limit {limit}, of which {out} of {own.most} permits are out: nobody"
            " offers it the next",
            "offer it",
        )
    return []


def _strangers(state: PermitsState, there: Set[bytes], limit: str) -> Iterator[str]:
    for id_, names in state.claims.items():
        if limit in names and id_.encode("utf-8", "surrogateescape") not in there:
            yield id_


def _may_have_permits(walk: Walk, id: str) -> bool:
    """Whether a job is ready or held."""
    places = walk.execute(commands.check_job(walk.keys, id, deep=False))
    ready = any(name.startswith("heads") or not _is_limit(name) for name in places.lists)
    return bool(places.holders) or ready


def _is_limit(group: str) -> bool:
    """Whether this is no strand of a share, whose jobs have their permits."""
    return "." not in group
