"""What the admin page and its permissions hang on: no table, nothing is stored in the database."""

from __future__ import annotations

from django.db import models

__all__ = ["JobQueue"]


class JobQueue(models.Model):
    """A queue, by name. There is no table of them: they are in Redis."""

    name = models.CharField(max_length=200, primary_key=True)

    class Meta:
        """Two permissions: to look at jobs, and to change them."""

        managed = False
        app_label = "rqueue"
        verbose_name = "queue"
        default_permissions = ()
        permissions = (
            ("view", "Can look at queues and jobs"),
            ("act", "Can requeue, promote and cancel jobs, and pause queues"),
        )

    def __str__(self) -> str:
        return str(self.name)
