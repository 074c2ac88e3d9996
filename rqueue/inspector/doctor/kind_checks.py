"""Problems of kinds of queues that are no job's: who is live where others stand by, and what is on
its way to other queues."""

from __future__ import annotations

from rqueue.inspector.doctor.findings import Action, Finding
from rqueue.inspector.doctor.walk import Walk
from rqueue.protocol.commands.clock import read_clock
from rqueue.protocol.commands.consumer_rows import registered_names, succession
from rqueue.protocol.commands.outgoing import outbox
from rqueue.text.numbers import many

WAITS_MS = 60_000
"""How long a job that was sent waits to be sent again, before it is said."""


def diagnose_succession(walk: Walk, _subject: str) -> list[Finding]:
    """Whether one that stands by should be live."""
    known = walk.execute(succession(walk.keys))
    if not known.standbys:
        return []
    registered = set(walk.execute(registered_names(walk.keys)))
    action = Action("look")

    def finding(kind: str, says: str, remedy: str) -> list[Finding]:
        return [Finding("consumers", kind, walk.keys.queue, "", says, remedy, action=action)]

    if gone := sorted(known.live - registered):
        says = f"{', '.join(gone)} counts as live and is not registered: nobody takes over from it"
        return finding("not-live", says, "let those that stand by take over")
    if not known.most or len(known.live) < known.most:
        says = (
            f"{many(len(known.standbys), 'consumer')} stand by, and {len(known.live)} of"
            f" {known.most or 'all'} are live: nobody takes over"
        )
        return finding("nobody-live", says, "let those that stand by take over")
    return []


def diagnose_outbox(walk: Walk, _subject: str) -> list[Finding]:
    """Whether each job of the outbox can be sent, and is."""
    found = walk.execute(outbox(walk.keys))
    now = walk.execute(read_clock(walk.keys)).now
    queue = walk.keys.queue
    if len(found.due) < 1000 and (lost := sorted(set(found.jobs) - found.due.keys())):
        says = f"{many(len(lost), 'job')} of the outbox will not be sent: the outbox has lost them"
        action = Action("outbox", tuple(lost))
        return [Finding("records", "unsent", queue, "", says, "put them back", action=action)]
    if empty := sorted(found.due.keys() - set(found.jobs)):
        says = f"the outbox names {many(len(empty), 'job')} that it does not have"
        action = Action("outbox", tuple(empty))
        return [Finding("records", "no-letter", queue, "", says, "forget them", action=action)]
    late = [member for member, due in found.due.items() if 0 < due < now - WAITS_MS]
    if late:
        target = late[0].split("\n")[1] if "\n" in late[0] else ""
        says = f"{many(len(late), 'job')} for queue {target!r} wait in the outbox, and none is sent"
        remedy = "Queue.forward() sends them; where the target refuses them, its logs say why"
        return [Finding("liveness", "unsent-late", queue, "", says, remedy, "note")]
    return []
