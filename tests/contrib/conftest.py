"""Django, set up once in a process, with databases in memory; what it changed in rqueue is put back
after each test."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import rqueue
from rqueue.client._sync.queue import Queue
from rqueue.client.default_queues import disconnect
from rqueue.embedded.server import EmbeddedRedis
from rqueue.tasks.enqueuer import DEFAULTS, MadeEnqueuers


@pytest.fixture(scope="session")
def _django() -> Iterator[None]:
    from django.conf import settings

    from tests.contrib import django_settings

    said = {name: value for name, value in vars(django_settings).items() if name.isupper()}
    settings.configure(**said)
    import django
    from django.test.utils import (
        setup_databases,
        setup_test_environment,
        teardown_databases,
        teardown_test_environment,
    )

    django.setup()
    _as_without_django()
    setup_test_environment()
    made = setup_databases(verbosity=0, interactive=False)
    yield
    teardown_databases(made, verbosity=0)
    teardown_test_environment()


def _as_without_django() -> None:
    DEFAULTS.enqueuers = MadeEnqueuers(rqueue._default_queue)
    DEFAULTS.async_enqueuer = rqueue._default_async_queue


@pytest.fixture
def django(
    _django: None, server: EmbeddedRedis, queue_name: str, no_defaults: Any
) -> Iterator[Any]:
    """A project whose queues are on `server`; `queue` is one of them, `override` changes RQUEUE."""
    from django.contrib.auth.models import Group
    from django.db import connection, transaction
    from django.test.utils import override_settings

    from rqueue.contrib.django.commits import install

    class Project(SimpleNamespace):
        def override(self, **settings: Any) -> Any:
            return override_settings(RQUEUE={"url": server.url, **settings})

    with Queue(queue_name, server.url) as queue, Project().override():
        install()
        try:
            yield Project(queue=queue, transaction=transaction, connection=connection, Group=Group)
        finally:
            _as_without_django()
            disconnect()
            Group.objects.all().delete()
