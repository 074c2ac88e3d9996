"""Kinds of queues as people say them."""

from __future__ import annotations

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.protocol.policies import PLAIN, POLICIES, ExcludedPolicies, Kind, UnknownPolicy


def kind_of(name: object) -> Kind:
    """The kind of queue that people call so: "plain", or the names of policies. Raises
    ConfigError."""
    words = name.replace(",", " ").split() if isinstance(name, str) else []
    try:
        if words:
            return PLAIN if words == ["plain"] else Kind.of(words)
    except ExcludedPolicies as error:
        raise ConfigError("kind", str(error)) from None
    except UnknownPolicy:
        pass
    known = ", ".join(policy for policy in POLICIES if policy not in PLAIN.policies)
    raise ConfigError("kind", f"{shown(name)} is neither plain nor one of {known}")
