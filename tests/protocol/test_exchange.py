"""What an exchange does with what a server says, without one."""

from redis import exceptions as rx

from rqueue.errors import RedisBusy
from rqueue.protocol import commands, exchange
from rqueue.protocol.exchange import Exchange
from rqueue.protocol.keys import QueueKeys
from rqueue.protocol.policies import Kind

KEYS = QueueKeys("q")
NO_SCRIPT = rx.NoScriptError("No matching script. Please use EVAL.")


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
