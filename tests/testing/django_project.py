"""A Django project in one file, with a test case of its own: run by `test_plugin`."""

import unittest

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["rqueue.contrib.django"],
    RQUEUE={"url": "redis://127.0.0.1:1/0"},
)
django.setup()

from django.db import transaction  # noqa: E402
from django.test import TestCase  # noqa: E402
from django.test.utils import setup_databases, setup_test_environment  # noqa: E402

from rqueue import task  # noqa: E402
from rqueue.testing import RqueueTestMixin  # noqa: E402

ran: list[int] = []


@task(queue="orders")
def receipt(order: int) -> None:
    ran.append(order)


class OrderTests(RqueueTestMixin, TestCase):
    def test_what_waits_for_a_commit_is_in_memory(self) -> None:
        with self.captureOnCommitCallbacks(execute=True):
            with transaction.atomic():
                receipt.enqueue(1)
            self.rqueue.assert_not_enqueued(receipt)
        self.rqueue.assert_enqueued(receipt, args=[1])
        assert self.rqueue.drain().ran == 1
        assert ran == [1]

    def test_what_is_rolled_back_is_not(self) -> None:
        with self.captureOnCommitCallbacks(execute=True), transaction.atomic():
            receipt.enqueue(2)
            transaction.set_rollback(True)
        self.rqueue.assert_not_enqueued(receipt)


if __name__ == "__main__":
    setup_test_environment()
    setup_databases(verbosity=0, interactive=False)
    unittest.main()
