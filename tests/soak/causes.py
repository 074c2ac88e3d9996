"""Why a job may have begun again: only by what the soak itself did, in that process, just then."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from tests.soak.evidence import ALL, Begin, Evidence

SETTLE = 1 / 3
"""Of a lease: how long after a job's end its settling may be under way. A lease that is longer says
that the machine is busy."""

REJOIN = 0.5
"""Of a lease: how long after an outage those who waited may not be back yet. A lease that is longer
says that the machine is busy."""

BACK_S = 1.0
"""Seconds in which a worker that is connected again has asked what it holds."""

SIGNAL_S = 0.05
"""Seconds after a signal was sent in which its process may still run."""


class Span(NamedTuple):
    """A stretch of time."""

    since: float
    until: float

    def meets(self, since: float, until: float) -> bool:
        """Whether they have a moment in common."""
        return self.since <= until and since <= self.until


class Causes:
    """What the soak did to each process. `lease`: seconds that a silent worker keeps its jobs."""

    def __init__(self, evidence: Evidence, lease: float) -> None:
        self._evidence = evidence
        self.lease = lease
        self._rejoin = lease * REJOIN
        # renewed when 0.3 of it have passed; what is shorter than most of the rest can end no lease
        self._enough = lease * 0.6
        self.deaths: dict[int, float] = {}
        self.frozen: dict[int, list[Span]] = defaultdict(list)
        self.stopped: dict[int, list[float]] = defaultdict(list)
        self._away: dict[str, list[Span]] = defaultdict(list)
        self._clocks: dict[str, list[Span]] = defaultdict(list)
        for effect in evidence.effects:
            span = Span(effect["since"], effect["until"])
            for pid in effect["pids"]:
                if effect["kind"] == "death":
                    self.deaths[pid] = span.since
                elif effect["kind"] == "freeze":
                    self.frozen[pid].append(span)
                elif effect.get("signal") == "SIGQUIT":
                    self.stopped[pid].append(span.since)
            if effect["kind"] == "away":
                self._away[effect["scope"]].append(span)
            elif effect["kind"] == "clock":
                self._clocks[effect["scope"]].append(span)
        for record in evidence.records["dies"]:
            self.deaths.setdefault(record["pid"], record["at"])
        self._outages = {scope: self._of(scope) for scope in ("pools", "consumers")}

    def _of(self, scope: str) -> list[Span]:
        """When a scope was without Redis, with pauses too short to come back within them."""
        return self._merged(self._away[scope] + self._away[ALL])

    def of_again(self, first: Begin, again: Begin) -> str:
        """What made a job begin again, "" if nothing that the soak did."""
        if first.how == "fail":
            return "asked to fail"
        if self._clock_set(first, again):
            return "the queue's clock was set"
        until = min(self._settled_by(first), again.at) if first.ended else again.at
        return self.of_loss(first.pid, first.at, until) or self._had_it_before(again)

    def of_loss(self, its: int, since: float, until: float) -> str:
        """Why a process may have lost what it had in a stretch of time, "" if it cannot have."""
        for pid in (its, self._evidence.parents.get(its, 0)):
            who = "its process" if pid == its else "its supervisor"
            died = self.deaths.get(pid)
            # without a supervisor a lease ends, even if the worker lives on
            beyond = pid == its and died is not None and died + SIGNAL_S < since
            if died is not None and died <= until and not beyond:
                return f"{who} was killed"
            if any(span.meets(since, until) for span in self._long(pid)):
                return f"{who} was frozen"
            if any(since - SIGNAL_S <= at <= until for at in self.stopped[pid]):
                return f"{who} was asked to stop at once"
        if self._without_redis(its, since - self._rejoin, until):
            return "Redis was away for long"
        if self._hindered(its, since, until):
            return "one fault after the other"
        return ""

    def _clock_set(self, first: Begin, again: Begin) -> bool:
        """Whether the clock that leases go by was set, shortly before or meanwhile."""
        queue = first.facts.get("queue", "")
        spans = self._clocks[queue]
        return any(span.meets(first.at - self._rejoin, again.at) for span in spans)

    def stood_still(self, pid: int, since: float, until: float) -> float:
        """Seconds of a stretch of time in which a process was stopped."""
        spans = [span for span in self.frozen[pid] if span.meets(since, until)]
        return sum(min(span.until, until) - max(span.since, since) for span in spans)

    def cut_off(self, pid: int, since: float, until: float) -> bool:
        """Whether a reply of Redis to a worker may have been lost in a stretch of time, or shortly
        before: what it holds begins by its position then."""
        its = Span(since - BACK_S, until)
        return any(
            its.meets(record["at"], record["at"])
            for record in self._evidence.records["connection"]
            if record["pid"] == pid
        ) or any(
            its.meets(fault["at"] - fault["seconds"], fault["at"])
            for fault in self._evidence.records["fault"]
            if fault["track"] in ("server", "network")
        )

    def _settled_by(self, begin: Begin) -> float:
        """When the end of a job is known to Redis at the latest: not while that is away."""
        by = begin.ended + self.lease * SETTLE
        for span in self._outages[self._scope(begin.pid)]:
            if span.meets(begin.ended, by):
                by = max(by, span.until + self._rejoin)
        return by

    def _had_it_before(self, again: Begin) -> str:
        """Whether a job was held by a consumer of one's own whose lease ended without its knowing:
        it was run elsewhere, and begins there once more. A worker of a pool asks first."""
        if self._scope(again.pid) == "pools":
            return ""
        if any(span.meets(again.at, again.at) for span in self._long(again.pid)):
            return "the other process had it before it was frozen"
        if self._without_redis(again.pid, again.at - self._rejoin, again.at):
            return "the other process had it before Redis was away"
        if self._hindered(again.pid, again.at, again.at):
            return "the other process had it before one fault after the other"
        return ""

    def _hindered(self, pid: int, since: float, until: float) -> bool:
        """Whether faults that are too short each kept a lease from being renewed, one after the
        other: what stopped the worker, its supervisor, or the way to Redis."""
        parent = self._evidence.parents.get(pid, 0)
        spans = self.frozen[pid] + self.frozen[parent] + self._outages[self._scope(pid)]
        return any(span.meets(since, until) for span in self._enough_of(self._merged(spans)))

    def _without_redis(self, pid: int, since: float, until: float) -> bool:
        """Whether a process was kept from Redis for as long as can end its lease."""
        return any(
            span.until - span.since >= self._enough and span.meets(since, until)
            for span in self._outages[self._scope(pid)]
        )

    def _scope(self, pid: int) -> str:
        return "pools" if self._evidence.program(pid).startswith("pool") else "consumers"

    def _long(self, pid: int) -> list[Span]:
        return self._enough_of(self.frozen[pid])

    def _enough_of(self, spans: list[Span]) -> list[Span]:
        """Those that can end a lease, until all are back."""
        return [
            Span(span.since, span.until + self._rejoin)
            for span in spans
            if span.until - span.since >= self._enough
        ]

    def others_held(self, pid: int, at: float) -> bool:
        """Whether, shortly before `at`, another process of the same program may have held jobs: one
        that the soak had killed, frozen, or asked to leave."""
        program = self._evidence.program(pid)
        for effect in self._evidence.effects:
            if effect["kind"] == "away" or not effect["pids"]:
                continue
            patience = 2 * self.lease + 2 + self._unable(pid, effect["until"], at)
            if not effect["since"] - 0.5 <= at <= effect["until"] + patience:
                continue
            if any(
                self._evidence.program(other) == program and other != pid
                for other in effect["pids"]
            ):
                return True
        return False

    def _unable(self, pid: int, since: float, until: float) -> float:
        """Seconds of a stretch in which a process could take nothing back: frozen, or without
        Redis."""
        program = self._evidence.program(pid)
        frozen = [
            span
            for other, spans in self.frozen.items()
            if self._evidence.program(other) == program
            for span in spans
        ]
        spans = frozen + self._outages[self._scope(pid)]
        return sum(span.until - span.since for span in spans if span.meets(since, until))

    def _merged(self, spans: list[Span]) -> list[Span]:
        """Spans in order, those as one between which nobody had the time to come back."""
        merged: list[Span] = []
        for span in sorted(spans):
            if merged and span.since - merged[-1].until < self._rejoin:
                merged[-1] = Span(merged[-1].since, max(merged[-1].until, span.until))
            else:
                merged.append(span)
        return merged
