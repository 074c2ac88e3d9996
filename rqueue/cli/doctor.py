"""`rqueue doctor`: check a live server's queues."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.exit_codes import NEGATIVE, OK, confirm
from rqueue.cli.output import echo, json_option, print_json, yes_option
from rqueue.cli.progress import Counter
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.escape import escaped
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.inspector import Finding


@click.command()
@click.argument("queues", nargs=-1, metavar="[QUEUE]...")
@click.option("--repair", is_flag=True, help="Repair what can be repaired, then check again.")
@yes_option
@json_option
@connection_options
@pass_target
def doctor(
    target: Target, /, queues: tuple[str, ...], repair: bool, yes: bool, as_json: bool
) -> int:
    """Check a live server's queues, and repair them.

    Nothing is stopped for it. It checks what must always hold: every job is in exactly one place,
    lists are in order, only registered consumers hold jobs, each consumer is in one list, a
    consumer that waits while there is work was notified, none holds more than it granted, counters
    are exact, ended jobs are not alive; and the server's version, memory, eviction and persistence.
    A problem is looked at twice more before it is reported. On a terminal it shows how many queues
    it has checked.

    Of a queue that is spread over shards it checks its table, each shard and the servers of all.

    Of a Redis Cluster every master is looked at; its state, slots that nobody serves or whose move
    was left half done, masters without replicas, and cluster-require-full-coverage. A node that
    cannot be asked is a problem, and the queues of the others are checked.

    Behind Sentinels each of them is asked: which primary they name, whether replicas can take its
    place, whether a failover is under way. A primary that gives no answer is a problem; its queues
    are not looked at then.

    A problem is something that must not be. A note is worth knowing: jobs that wait in a queue that
    no worker serves or that is paused, and jobs whose task no worker knows. With --repair what can
    be repaired is, in small steps that each look once more; back up first where you can (BGSAVE).

    \b
    Exit codes: 0 no problems (or all repaired), 1 problems were found (or are left).

    \b
    Examples:
      rqueue doctor
      rqueue doctor default --json
      rqueue doctor default --repair --yes
    """  # noqa: D301
    from rqueue.inspector.doctor.cluster_checks import primary_away

    repaired: list[Finding] = []
    with target.inspector(replica=True) as inspector:
        physician = inspector.doctor()
        found = physician.check_server()
        if primary_away(found):
            named = {}
        elif queues:
            named = {name: inspector.node_of(name) for name in queues}
        else:
            named = inspector.find_queues().nodes
        found += physician.check_places(list(named))
        places = physician.with_shards(named)
        names = list(places)
        with Counter("queues checked", len(names), quiet=as_json) as counter:
            for done, its in enumerate(physician.check_queues_at(places), 1):
                found += its
                counter.update(done)
        remedies = [finding for finding in found if finding.action and finding.remedy]
        if repair and remedies:
            if not as_json:
                _print(found)
                echo()
            confirm(f"Repair {many(len(remedies), 'finding')}?", yes)
            left = [finding for finding in found if finding.invariant == "server"]
            for name in names:
                left += physician.heal_at(name, places[name], repaired.append)
            found = left
    found = list(dict.fromkeys(found))  # of a shard that is away its table says so too
    problems = [finding for finding in found if finding.severity == "problem"]
    if as_json:
        print_json(
            {
                "healthy": not problems,
                "queues": names,
                "looked_at": physician.looked_at,
                "findings": [_document(finding) for finding in found],
                "repaired": [_document(finding) for finding in repaired],
            }
        )
        return NEGATIVE if problems else OK
    if repaired:
        echo(f"repaired {many(len(repaired), 'finding')}")
    _print(found)
    entries = many(physician.looked_at, "entry", "entries")
    checked = f"{many(len(names), 'queue')}, {entries}"
    verdict = many(len(problems), "problem") if problems else "no problems"
    left_ = " left" if repaired and problems else ""
    echo(f"{verdict}{left_} ({checked} looked at)")
    if problems and not repair and any(finding.remedy for finding in problems):
        echo("'rqueue doctor --repair' does what is said after 'repair:'", err=True)
    return NEGATIVE if problems else OK


def _document(finding: Finding) -> dict[str, Any]:
    facts = asdict(finding)
    del facts["action"]
    return facts


def _print(found: list[Finding]) -> None:
    """Findings below each other, the problems first."""
    import textwrap

    order = {"problem": 0, "note": 1}
    for finding in sorted(found, key=lambda finding: (order[finding.severity], finding.queue)):
        red = finding.severity == "problem"
        place = f"queue '{finding.queue}': " if finding.queue else ""
        said = escaped(f"{place}{finding.says} [{finding.invariant}]")
        first, *rest = textwrap.wrap(said, 96)
        echo(first, head=f"{finding.severity}: ", color="red" if red else "yellow")
        for line in rest:
            echo(f"  {line}")
        if finding.remedy:
            echo(f"  repair: {finding.remedy}")
