"""The relay of an outbox in an application's database, for any way to that database.

`rqueue.contrib.sqlalchemy` and `rqueue.contrib.django.outbox` are the ways there are. Each has a
store (`OutboxStore`): the statements.
"""

from rqueue.contrib.outbox.relay import Relay
from rqueue.contrib.outbox.store import OutboxStore

__all__ = ["OutboxStore", "Relay"]
