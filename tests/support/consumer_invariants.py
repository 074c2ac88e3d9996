"""What must always hold of the lists of a queue's consumers."""

from __future__ import annotations

from tests.support.snapshot import Snapshot

STATES = ("interested", "notified", "not_interested", "browsers")


def one_list_each(snapshot: Snapshot) -> list[str]:
    """A consumer is in exactly one of the four lists, the one that its state names."""
    wrong = []
    lists = {
        "interested": set(snapshot.scores("interested")),
        "notified": set(snapshot.scores("notified")),
        "not_interested": snapshot.members("not_interested"),
        "browsers": snapshot.members("browsers"),
    }
    for name, row in snapshot.consumers.items():
        found = [state for state in STATES if name in lists[state]]
        if found != [row.get("state")]:
            wrong.append(f"consumer {name} says {row.get('state')} and is in {found}")
        if (row.get("mode") == "browse") and found[:1] not in (["browsers"], ["not_interested"]):
            wrong.append(f"browser {name} is in {found}")
    for state, names in lists.items():
        for name in names - set(snapshot.consumers):
            wrong.append(f"{name} is in {state} and is not registered")
    if lists["browsers"] and "browsing" not in snapshot.meta:
        wrong.append("there are browsers, and the queue does not know that it must tell them")
    return wrong
