"""What is sent of nearly every call, and which calls are more than a command and its reply."""

import pytest

from rqueue.model.confirmation import Confirmation
from rqueue.protocol import commands
from rqueue.protocol.exchange import KNOWN, Exchange
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import SCRIPTS
from rqueue.transport.connection import plain_command

KEYS = QueueKeys("plain command")
OTHER = QueueKeys("of another kind")


def test_a_plain_command_is_what_an_exchange_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    call = commands.enqueue_one(KEYS, "id", b"body")
    monkeypatch.setattr(SCRIPTS, "plain", {})
    assert plain_command(call) is None  # its script is not loaded yet
    monkeypatch.undo()
    assert Exchange(call).command == plain_command(call)  # in this order: an exchange loads it
    assert plain_command(call._replace(confirm=Confirmation(1, False, 5))) is None
    assert plain_command(call._replace(needs=("ttl",))) is None


def test_a_queue_of_another_kind_makes_no_other_call_an_exchange(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call, other = (commands.enqueue_one(keys, "id", b"body") for keys in (KEYS, OTHER))
    command = Exchange(call).command
    monkeypatch.setitem(KNOWN, OTHER.meta, Kind.parse("1 ttl levels"))
    assert plain_command(other) is None
    assert plain_command(call) == command
