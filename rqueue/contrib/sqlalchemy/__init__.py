"""Jobs and an application's own database in one transaction, through SQLAlchemy.

`Outbox.enqueue` writes a job into the transaction that the job follows from; a relay moves it into
its queue when that is committed, exactly once. `Outbox.run_once` writes into the transaction of a
job's effects that they have happened, so that they happen once however often the job runs.

See `docs/outbox.md`. Needs the extra `rqueue[sqlalchemy]`, and tables of its own in the database.
"""

from rqueue.contrib.outbox.relay import Relay
from rqueue.contrib.sqlalchemy.outbox import Outbox

__all__ = ["Outbox", "Relay"]
