"""The database's clock in Django's expressions."""

from __future__ import annotations

from typing import Any

from django.db.models import BigIntegerField
from django.db.models.expressions import Expression

from rqueue.contrib.outbox.store import NOW_MS

__all__ = ["NowMs"]


class NowMs(Expression):
    """Ms since the epoch, as the database says."""

    output_field = BigIntegerField()

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **kwargs: Any) -> Any:
        """The database's own words for it."""
        return NOW_MS[connection.vendor], ()
