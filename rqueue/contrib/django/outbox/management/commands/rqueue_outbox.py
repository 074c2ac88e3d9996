"""`manage.py rqueue_outbox`: the relay, and what an operator asks of the outbox."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from rqueue.client.default_queues import queue
from rqueue.contrib.django.outbox.jobs import database
from rqueue.contrib.django.outbox.store import DjangoStore
from rqueue.contrib.outbox.command import print_status, retry, run_relay
from rqueue.contrib.outbox.relay import BATCH, KEEP_S, POLL_S, Relay, problem_of
from rqueue.errors import RQueueError
from rqueue.model.times import parse_duration


class Command(BaseCommand):
    """relay, status, retry."""

    help = "Move jobs from the outbox of the database into their queues, and see what waits there."

    def add_arguments(self, parser: CommandParser) -> None:
        """What each of the three takes."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        relay = verbs.add_parser("relay", help="move jobs until it is stopped (Ctrl-C, SIGTERM)")
        relay.add_argument("--once", action="store_true", help="move what is there, and end")
        relay.add_argument("--batch", type=int, default=BATCH, help="jobs in one step, 1 to 1000")
        relay.add_argument("--poll", default=f"{POLL_S:g}s", help="between two looks")
        keep = "how long run_once remembers jobs that have ended"
        relay.add_argument("--keep", default=f"{KEEP_S / 86400:g}d", help=keep)
        verbs.add_parser("status", help="how many jobs wait, and which are refused (exit code 1)")
        again = verbs.add_parser("retry", help="let refused jobs be sent again: these, or all")
        again.add_argument("jobs", nargs="*", metavar="JOB")
        again.add_argument("--drop", action="store_true", help="delete them instead")

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        """Run one of the three. Raises CommandError."""
        try:
            store = DjangoStore(database())
        except RQueueError as error:
            raise CommandError(str(error), returncode=2) from None
        try:
            code = self._run(store, verb, options)
        except RQueueError as error:
            raise CommandError(str(error), returncode=2) from None
        except store.errors as error:
            raise CommandError(f"outbox: {problem_of(error, store)}", returncode=2) from None
        if code:
            sys.exit(code)

    def _run(self, store: DjangoStore, verb: str, options: dict[str, Any]) -> int:
        if verb == "status":
            return print_status(store)
        if verb == "retry":
            return retry(store, options["jobs"], drop=options["drop"])
        if not 1 <= options["batch"] <= 1000:
            raise CommandError("--batch: 1 to 1000 jobs", returncode=2)
        poll = parse_duration(options["poll"], "--poll")
        keep = parse_duration(options["keep"], "--keep")
        relay = Relay(store, queue, options["batch"], poll, keep)
        run_relay(relay, once=options["once"])
        return 0
