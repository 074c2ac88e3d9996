"""Build the calls that delete a queue."""

from __future__ import annotations

from typing import Any, NamedTuple

from rqueue.protocol.call import ScriptCall, text
from rqueue.protocol.commands.read import Counts
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import deleting


class Deletion(NamedTuple):
    """How far it is. word: unknown; target, jobs, consumers: it is not deleted, since it has them;
    back: nor any more; deleting. names: of its consumers, or of the queues whose jobs come here.
    dead: ids of dead letters. jobs: that wait, are held or dead; outgoing: on their way to other
    queues. to: the queue that its jobs go to, "" if they end."""

    word: str
    names: list[str]
    dead: list[str]
    jobs: int
    outgoing: int
    to: str


def _read(reply: Any) -> Deletion:
    _, word, names, dead, jobs, outgoing, to = reply
    ids = list(map(text, dead))
    return Deletion(text(word), list(map(text, names)), ids, jobs, outgoing, text(to))


def _read_word(reply: Any) -> str:
    return text(reply[1])


def delete(
    keys: QueueKeys,
    *,
    jobs: bool = False,
    consumers: bool = False,
    to: str = "",
    back: bool = False,
) -> ScriptCall[Deletion]:
    """Begin to delete a queue, or look what is left of one that is being deleted. back: it is not
    deleted after all."""
    flags = [str(int(jobs)), str(int(consumers)), to, str(int(back))]
    return ScriptCall("delete", keys.meta, flags, _read, (deleting.POLICY.name,))


def delete_end(keys: QueueKeys) -> ScriptCall[str]:
    """Take away the keys of a queue that is being deleted and has nothing left: deleted, left,
    other (it is not being deleted)."""
    return ScriptCall("delete_end", keys.meta, (), _read_word)


def is_there(counts: Counts) -> bool:
    """Whether there is such a queue. Of one that was deleted its last term is left; who configures
    it, enqueues or registers makes it anew."""
    meta, consumers = counts.meta, counts.interested + counts.notified + counts.not_interested
    left = "deleted" in meta and not meta.keys() - {"deleted", "term", "v", "clock", "about"}
    return bool(meta) and (not left or consumers + counts.browsing > 0)
