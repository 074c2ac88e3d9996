"""Selectors: labels make classes, of which each consumer takes those that it selects (Q-22)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rqueue.errors import ConfigError, Undecodable
from rqueue.model.envelope import unpack
from rqueue.model.selector import Value, class_text, label_problem
from rqueue.protocol.policies.policy import Policy

__all__ = ["POLICY", "classed", "labels_in"]

POLICY = Policy("selectors")

Arg = str | bytes | int | float


def labels_in(envelope: bytes) -> dict[str, Value]:
    """The labels in an envelope; none where it cannot be read: nobody can select by those."""
    if b'"labels"' not in envelope:
        return {}
    try:
        labels = unpack(envelope)[3].get("labels")
    except Undecodable:
        return {}
    if not isinstance(labels, dict):
        return {}
    return {
        name: value
        for name, value in labels.items()
        if name and isinstance(value, str | bool | int | float)
    }


def classed(policies: Sequence[str], args: Sequence[Arg]) -> Sequence[Arg]:
    """The arguments of an enqueue, [how, runs, id, envelope, ...], for a queue with these policies:
    to one with selectors the labels of each job are sent too, as its envelope has them. Raises
    ConfigError where they cannot make a class."""
    if POLICY.name not in policies:
        return args
    how, runs, *flat = args
    terms: list[str] = []
    for run in str(runs).split(";"):
        its, _, count = run.rpartition(",")
        terms += [its] * int(count)
    said = []
    for its, envelope in zip(terms, flat[1::2], strict=True):
        assert isinstance(envelope, bytes)
        labels = labels_in(envelope)
        if problem := label_problem(labels):
            raise ConfigError("labels", problem)
        said.append(f"{its}|c{class_text(labels)}")
    made = ";".join(f"{its},{len(list(jobs))}" for its, jobs in groupby(said))
    return [how, made, *flat]
