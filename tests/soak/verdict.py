"""What went wrong, by the records alone: each rule names the jobs, processes or keys concerned."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tests.soak.causes import Causes
from tests.soak.ending import LAST
from tests.soak.evidence import Begin, Evidence, Job
from tests.soak.faults.jobs import PUBLISHER
from tests.soak.field import ORDERED
from tests.soak.scenario import Rule, Scenario
from tests.soak.scenarios import SCENARIOS

EXCUSED_CODES = {0, 3}
"""Exit codes of a pool that was asked to leave: all done, or running jobs were released."""

UNREACHABLE = 4

DEAF_S = 15.0
"""Seconds that a pool may need until it listens to signals, on a busy machine."""

COUNTED = {
    "ack": "acked",
    "cancelled": "cancelled",
    "expired": "expired",
    "displaced": "displaced",
}
"""Outcomes in the history, and the counters of the same in a queue."""

BY_CONSUMERS = ("own", "aown")
"""Queues of consumers of one's own, which may write no history."""

SUSPECTED = "LeaseEnded"
"""The error of a job whose worker vanished with everybody who watched it."""

SWITCH_S = 0.025
"""Seconds between the mark that a job runs and its first line: the interpreter may first have to
come back from another thread, or from several."""

CHARGE_S = 0.1
"""How far Redis's clock and the machine's may be apart."""


@dataclass
class Verdict:
    """`wrong`: rule → what is against it. `cases`: rule of a scenario → how many cases were judged
    by it. `counts`: what there was. `causes`: why jobs began again, and how often."""

    wrong: dict[str, list[str]] = field(default_factory=dict)
    cases: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    causes: dict[str, int] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not any(self.wrong.values())


def judge(evidence: Evidence, lease: float, scenarios: Sequence[Scenario] = ()) -> Verdict:
    """Hold the evidence against every rule: those for all jobs, and those of scenarios."""
    causes = Causes(evidence, lease)
    verdict = Verdict()
    for name, rule in RULES.items():
        verdict.wrong[name] = list(rule(evidence, causes))
    for scenario in scenarios:
        for name, rule in scenario.judge.items():
            its = f"{scenario.name}: {name}"
            cases = list(rule(evidence, causes))
            verdict.wrong[its] = [said for said in cases if said]
            verdict.cases[its] = len(cases)
    jobs = evidence.jobs.values()
    faults = evidence.records["fault"]
    verdict.counts = {
        "faults": len(faults),
        "kinds of faults": len({fault["name"] for fault in faults}),
        "jobs sent": sum(job.sent for job in jobs),
        "accepted": sum(job.accepted for job in jobs),
        "not known": sum(job.unknown and not job.accepted for job in jobs),
        "refused": sum(job.refused and not job.accepted and not job.unknown for job in jobs),
        "begun": sum(len(job.begins) for job in jobs),
        "begun again": sum(max(0, len(job.begins) - 1) for job in jobs),
        "charged for a crash": sum(row["outcome"] == "crash" for job in jobs for row in job.rows),
        "charged on a second suspicion": suspected(evidence),
        "lives of programs": len(evidence.records["started"]),
    }
    verdict.causes = dict(
        Counter(
            causes.of_again(first, again) or "none" for job in jobs for first, again in _again(job)
        )
    )
    return verdict


def _again(job: Job) -> Iterator[tuple[Begin, Begin]]:
    """Each time that a job began again, with the time before."""
    return zip(job.begins, job.begins[1:], strict=False)


def _said(job: Job) -> str:
    return f"{job.key[0]}/{job.key[1]} (id {job.id}, queue {job.queue})"


# -- jobs ------------------------------------------------------------------------------------------


def lost(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Accepted, and neither run to the end nor ended otherwise."""
    for job in evidence.jobs.values():
        if job.accepted and not job.done and not job.dead and not job.finals:
            yield f"{_said(job)}: begun {len(job.begins)} times"


def end_unknown(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Ran to the end, and the queue does not know that it ended."""
    for job in evidence.jobs.values():
        if job.done and not job.finals and not job.known:
            yield _said(job)


def no_row(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Accepted by a queue that pools serve, and no row in the history says how it ended."""
    for job in evidence.jobs.values():
        if job.accepted and job.queue not in BY_CONSUMERS and not job.finals:
            yield _said(job)


def counters(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A counter of a queue is not how many rows its history has."""
    rows = Counter((row["queue"], row["outcome"]) for row in evidence.records["row"])
    for record in evidence.records["counters"]:
        for outcome, counter in COUNTED.items():
            found, said = rows[record["queue"], outcome], record["counters"][counter]
            if found != said:
                yield f"queue {record['queue']}: {counter} {said}, rows {found}"


def settled_twice(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """More than one end in the history of a queue, or done in two queues."""
    for job in evidence.jobs.values():
        each = Counter(row["queue"] for row in job.finals)
        done = sum(row["outcome"] == "ack" for row in job.finals)
        if done > 1 or any(ends > 1 for ends in each.values()):
            yield f"{_said(job)}: {', '.join(row['outcome'] for row in job.finals)}"


def wrongly_ended(evidence: Evidence, causes: Causes) -> Iterator[str]:
    """Ended other than well, without anybody who asked for that."""
    purged = {record["queue"] for record in evidence.records["purging"]}
    for job in evidence.jobs.values():
        for row in job.finals:
            outcome = row["outcome"]
            if outcome == "ack":
                continue
            if outcome == "cancelled" and job.cancelling:
                continue
            if outcome == "purged" and job.queue in purged:
                continue
            if job.scenario and outcome in SCENARIOS[job.scenario].may:
                continue
            if job.how.startswith("die"):
                continue
            died = [begin for begin in job.begins if begin.pid in causes.deaths]
            if outcome not in ("cancelled", "purged") and len(died) >= CRASHES:
                continue
            yield f"{_said(job)}: {outcome} {row['error']}, begun {len(job.begins)} times"


CRASHES = 3
"""Processes that a job must have died with before it may be dead for it."""


def begun_again(evidence: Evidence, causes: Causes) -> Iterator[str]:
    """Begun again without a cause that the soak injected in that process."""
    for job in evidence.jobs.values():
        for first, again in _again(job):
            if not causes.of_again(first, again):
                lasted = f"{first.how or 'no end'} after {first.ended - first.at:.3f} s, "
                yield (
                    f"{_said(job)}: in {evidence.program(first.pid)} {first.pid} at "
                    f"{first.at:.3f}, {lasted if first.ended else ''}again in "
                    f"{evidence.program(again.pid)} {again.pid} at {again.at:.3f}"
                )


def out_of_order(evidence: Evidence, causes: Causes) -> Iterator[str]:
    """First begun behind a later one of the same publisher, at a consumer with one slot."""
    firsts = sorted(
        (job for job in evidence.jobs.values() if job.begins and _in_line(job)),
        key=lambda job: job.begins[0].at,
    )
    latest: dict[tuple[str, int], Job] = {}
    for job in firsts:
        begin = job.begins[0]
        line = (job.key[0], begin.pid)
        before = latest.get(line)
        if before is None or before.key[1] < job.key[1]:
            latest[line] = job
        elif not causes.others_held(begin.pid, before.begins[0].at):
            yield (
                f"{_said(job)} at {begin.at:.3f} after number {before.key[1]} at "
                f"{before.begins[0].at:.3f} in {evidence.program(begin.pid)} {begin.pid}"
            )


def _in_line(job: Job) -> bool:
    return job.queue in ORDERED and not job.delay and job.key[0] != PUBLISHER


def charged(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Charged for a crash, or for an attempt, that it did not begin."""
    suspects: Counter[tuple[str, str, float]] = Counter()
    for job in evidence.jobs.values():
        begins = sorted(begin.at for begin in job.begins)
        suspected = 0
        rows = [row for row in job.rows if "written" in row]
        for row in sorted(rows, key=lambda row: row["written"]):
            there = sum(at <= row["written"] + CHARGE_S for at in begins)
            if row["outcome"] == "crash":
                used = row["attempts"] + 1  # failed attempts were charged too
                if used - suspected <= there:
                    continue
                if row["lasted"] < SWITCH_S and row["error"] != SUSPECTED:
                    suspected += 1
                    continue  # it died between the mark and the first line
                # nobody is left who could know whether it had begun: one job at a time, the oldest,
                # and only where a worker held it that died before
                former = row["deaths"] > 1 and row["deliveries"] > 0
                step = (row["queue"], row["worker"], row["written"])
                suspects[step] += 1
                suspected += 1
                if row["error"] != SUSPECTED or not former or suspects[step] > 1:
                    yield (
                        f"{_said(job)}: crash number {used} ({row['error']}), begun {there} times "
                        "by then"
                    )
            elif row["attempts"] + row["crashes"] > there + suspected:
                yield (
                    f"{_said(job)}: {row['outcome']} with {row['attempts']} attempts and "
                    f"{row['crashes']} crashes charged, begun {there} times by then"
                )


def suspected(evidence: Evidence) -> int:
    """Charges of jobs that had not begun, where nobody was left who could know, twice."""
    count = 0
    for job in evidence.jobs.values():
        for row in job.rows:
            if row["outcome"] == "crash" and row["error"] == SUSPECTED:
                count += not any(begin.at <= row["written"] + CHARGE_S for begin in job.begins)
    return count


def refused_stored(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Its producer got the answer that it is not stored, and it is."""
    for job in evidence.jobs.values():
        if job.refused and not job.accepted and not job.unknown and (job.begins or job.rows):
            yield _said(job)


def from_nowhere(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Begun, and never sent by anybody."""
    for job in evidence.jobs.values():
        made = job.scenario or job.key[0].startswith(LAST)
        if job.begins and not job.sent and not made:
            yield _said(job)


def unfinished(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Still in the queue when all had had the time to end."""
    for record in evidence.records["left over"]:
        yield (
            f"queue {record['queue']}: {record['ready']} ready, {record['scheduled']} scheduled, "
            f"{record['held']} held, {record['blocked']} blocked, {record['deferred']} deferred, "
            f"{record['outgoing']} outgoing"
        )


def damage(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A value that cannot be read is not among the dead letters."""
    dead = {(record["queue"], record["id"]) for record in evidence.records["dead"]}
    ended = {(record["queue"], record["id"]) for record in evidence.records["row"]}
    for record in evidence.records["damaged"]:
        which = (record["queue"], record["id"])
        if which not in dead and which not in ended:
            yield f"{record['id']} of queue {record['queue']}"


# -- programs --------------------------------------------------------------------------------------


def errors_unpromised(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A producer or consumer met an error that its page does not promise."""
    for record in evidence.records["wrong"]:
        yield f"{record.get('publisher', 'a consumer')}: {record['error']}: {record['said'][:160]}"


def exit_codes(evidence: Evidence, causes: Causes) -> Iterator[str]:
    """A program that ended with a code that nothing explains."""
    signalled = {
        pid
        for effect in evidence.effects
        for pid in effect["pids"]
        if effect["kind"] == "signalled"
    }
    last = {record["process"] for record in evidence.records["closing"]}
    for record in evidence.records["ended"]:
        pid, code = record["process"], record["code"]
        if code < 0 and pid in causes.deaths:
            continue
        if pid in last and code in EXCUSED_CODES:
            continue
        if pid in last and code == -signal.SIGTERM and pid not in evidence.parents:
            continue  # it was still on its way up
        asked = record["kind"] == "pool" and pid in signalled
        if asked and code in EXCUSED_CODES:
            continue
        lived = _age(evidence, pid, record["at"]) - causes.stood_still(pid, 0.0, record["at"])
        if asked and lived < DEAF_S:
            continue  # the signal came before the pool could hear it
        if record["kind"] == "pool" and code == UNREACHABLE and _young(evidence, pid, record["at"]):
            continue
        yield f"{record['program']} {pid}: {code}"


def _age(evidence: Evidence, pid: int, at: float) -> float:
    """Seconds that a program had lived."""
    return at - next(r["at"] for r in evidence.records["started"] if r["process"] == pid)


def _young(evidence: Evidence, pid: int, ended: float) -> bool:
    """Whether a pool can have ended because Redis was away when it started."""
    started = ended - _age(evidence, pid, ended)
    return any(
        effect["kind"] == "away" and effect["since"] <= ended and started <= effect["until"]
        for effect in evidence.effects
    )


def late(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Did not end when it was asked to."""
    for record in evidence.records["late"]:
        yield record["program"]


def processes_left(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Processes that nobody controls any more, and children of jobs that went on."""
    for record in evidence.records["process left"]:
        yield f"{record['process']}: {record['said']}"
    for record in evidence.records["child lives"]:
        yield f"{record['child']}: the child of a job, still there after its job had ended"


def logs(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """A traceback, or an admission, in a log."""
    for record in evidence.records["log"]:
        yield f"{record['program']}: {record['said']}"


def doctor(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """What the doctor found when all had ended."""
    for record in evidence.records["finding"]:
        yield f"queue {record['queue']}: {record['said']}"
    for record in evidence.records["bad history"]:
        yield f"queue {record['queue']}: {record['said']}"


def keys_left(evidence: Evidence, _causes: Causes) -> Iterator[str]:
    """Keys that nobody needs any more."""
    for record in evidence.records["key left"]:
        yield str(record["key"])


RULES: dict[str, Rule] = {
    "lost": lost,
    "ran, and its end is unknown": end_unknown,
    "ended without a row": no_row,
    "settled twice": settled_twice,
    "wrongly ended": wrongly_ended,
    "begun again without a cause": begun_again,
    "out of order": out_of_order,
    "charged and did not run": charged,
    "refused and yet stored": refused_stored,
    "begun and never sent": from_nowhere,
    "still waiting at the end": unfinished,
    "damaged and gone": damage,
    "errors that nobody promised": errors_unpromised,
    "exit codes unexplained": exit_codes,
    "did not end in time": late,
    "processes left": processes_left,
    "tracebacks in logs": logs,
    "found by the doctor": doctor,
    "keys left": keys_left,
    "miscounted": counters,
}
"""Every rule, by the words of the report."""
