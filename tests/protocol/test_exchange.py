"""What an exchange does with what a server says, without one."""

import pytest
from redis import exceptions as rx

from rqueue.errors import RedisBusy
from rqueue.model.confirmation import Confirmation
from rqueue.protocol import commands, exchange
from rqueue.protocol.exchange import Exchange, plain_command
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import SCRIPTS

KEYS = QueueKeys("q")
NO_SCRIPT = rx.NoScriptError("No matching script. Please use EVAL.")


def test_a_plain_command_is_what_an_exchange_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    call = commands.enqueue_one(KEYS, "id", b"body")
    monkeypatch.setattr(SCRIPTS, "plain", {})
    assert plain_command(call) is None  # its script is not loaded yet
    monkeypatch.undo()
    monkeypatch.setattr(exchange, "KNOWN", {})  # other tests of this process have queues of kinds
    assert Exchange(call).command == plain_command(call)  # in this order: an exchange loads it
    assert plain_command(call._replace(confirm=Confirmation(1, False, 5))) is None
    assert plain_command(call._replace(needs=("ttl",))) is None
    monkeypatch.setitem(exchange.KNOWN, KEYS.meta, Kind.parse("1 ttl levels"))
    assert plain_command(call) is None


def test_a_script_that_the_server_forgets_at_once_is_taught_once() -> None:
    under_way = Exchange(commands.counts(KEYS))
    first = under_way.command
    assert under_way.refused(NO_SCRIPT, "") is None
    assert under_way.command[:2] == ("SCRIPT", "LOAD")
    assert under_way.goes_on(first[1]) and under_way.command == first
    assert isinstance(under_way.refused(NO_SCRIPT, ""), RedisBusy)


def test_each_script_is_taught_where_the_kind_is_learned_meanwhile() -> None:
    """By another thread, of a queue that took on a policy just then."""
    under_way = Exchange(commands.counts(KEYS))
    plain = under_way.command
    assert under_way.refused(NO_SCRIPT, "") is None
    exchange.KNOWN[KEYS.meta] = Kind.parse("1 ttl levels")
    try:
        assert under_way.command[:2] == ("SCRIPT", "LOAD")
        assert under_way.goes_on(plain[1])
        other = under_way.command
        assert other[1] != plain[1]
        assert under_way.refused(NO_SCRIPT, "") is None
        assert under_way.command[:2] == ("SCRIPT", "LOAD")
        assert under_way.goes_on(other[1]) and under_way.command == other
    finally:
        del exchange.KNOWN[KEYS.meta]
