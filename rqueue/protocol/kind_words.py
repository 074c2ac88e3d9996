"""Kinds of queues as people say them."""

from __future__ import annotations

from collections.abc import Sequence

from rqueue.errors import ConfigError
from rqueue.model.expect import shown
from rqueue.protocol.policies import PLAIN, POLICIES, ExcludedPolicies, Kind, UnknownPolicy

OPTIONS = {
    "flows": "workflows and after=",
    "groups": "group=",
    "last_value": "key=",
    "limits": "limit=",
    "shares": "share=",
    "sorted": "sort_key=",
    "sticky": "sticky groups",
    "unique": "unique=",
}
"""What of a task or a call needs a policy, for people."""


def two_queues(error: ExcludedPolicies, needs: Sequence[str]) -> str:
    """What is wrong where a call needs policies that its queue cannot have, and what to do."""
    if {*error.policies} <= {*needs}:
        return str(error)
    one, other = (OPTIONS.get(policy, policy) for policy in error.policies)
    return f"{error}; let tasks with {one}, or those with {other}, have another: task(queue=...)"


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
