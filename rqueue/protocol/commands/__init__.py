"""The only way to Redis: one function per script. Each builds a `ScriptCall`, which also reads the
reply. Nothing here does I/O, so the sync and the asyncio client share all of it.

What only looks at keys, and needs no script, is a `CommandCall`: `history`, `clock`, `job_notes`,
`places`, `consumer_rows`, `consumer_checks`, `queue_keys`, `write_log` and `server` build these.
They are imported by their modules, so that a client that enqueues does not load them.
"""

from rqueue.protocol.call import ScriptCall
from rqueue.protocol.commands.admin import (
    cancel,
    check_rights,
    configure,
    pause,
    promote,
    purge,
    purge_dead,
    purge_held,
    reorder,
    requeue,
    resign,
    resume,
    unpark,
)
from rqueue.protocol.commands.commit import Committed, commit
from rqueue.protocol.commands.consumers import (
    Ran,
    interest,
    note_running,
    reclaim,
    register,
    renew,
    unregister,
)
from rqueue.protocol.commands.deletion import Deletion, delete, delete_end
from rqueue.protocol.commands.enqueue import (
    Accepted,
    Note,
    Put,
    commit_write,
    enqueue,
    enqueue_alike,
    enqueue_flat,
    enqueue_one,
)
from rqueue.protocol.commands.key_types import (
    WrongType,
    check_types,
    repair_type,
    types_met_by,
)
from rqueue.protocol.commands.outgoing import link, outgoing_done, outgoing_take
from rqueue.protocol.commands.read import (
    Awaited,
    Counts,
    await_result,
    browse,
    browse_set,
    counts,
    show,
)
from rqueue.protocol.commands.repair import (
    check_job,
    check_page,
    check_scan,
    repair_consumer,
    repair_group,
    repair_job,
    repair_leftovers,
    repair_meta,
    repair_outbox,
)
from rqueue.protocol.commands.room import await_room, repair_room
from rqueue.protocol.commands.settle import Pulled, Retried, Window, pull, settle

__all__ = [
    "Accepted",
    "Awaited",
    "Committed",
    "Counts",
    "Deletion",
    "Note",
    "Pulled",
    "Put",
    "Ran",
    "Retried",
    "ScriptCall",
    "Window",
    "WrongType",
    "await_result",
    "await_room",
    "browse",
    "browse_set",
    "cancel",
    "check_job",
    "check_page",
    "check_rights",
    "check_scan",
    "check_types",
    "commit",
    "commit_write",
    "configure",
    "counts",
    "delete",
    "delete_end",
    "enqueue",
    "enqueue_alike",
    "enqueue_flat",
    "enqueue_one",
    "interest",
    "link",
    "note_running",
    "outgoing_done",
    "outgoing_take",
    "pause",
    "promote",
    "pull",
    "purge",
    "purge_dead",
    "purge_held",
    "reclaim",
    "register",
    "renew",
    "reorder",
    "repair_consumer",
    "repair_group",
    "repair_job",
    "repair_leftovers",
    "repair_meta",
    "repair_outbox",
    "repair_room",
    "repair_type",
    "requeue",
    "resign",
    "resume",
    "settle",
    "show",
    "types_met_by",
    "unpark",
    "unregister",
]
