"""Calls of scripts as nobody should make them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rqueue.protocol.commands import ScriptCall

ABSURD: list[Any] = ["", "x", "-1", "0", "1.5", "nan", "inf", "1e400", "9" * 25, "\0", "r0", 300]

changes = st.one_of(
    st.just(None),
    st.just(None),
    st.just(None),
    st.tuples(st.sampled_from(["drop", "repeat"]), st.integers(0, 20), st.just("")),
    st.tuples(st.just("put"), st.integers(0, 20), st.sampled_from(ABSURD)),
)


def changed(call: ScriptCall[Any], change: tuple[str, int, Any] | None) -> ScriptCall[Any]:
    """With an argument that is missing, there twice, or absurd."""
    args = list(call.args)
    if change is None or not args:
        return call
    what, at, absurd = change
    at %= len(args)
    if what == "drop":
        del args[at]
    elif what == "repeat":
        args.insert(at, args[at])
    else:
        args[at] = absurd
    return call._replace(args=args)
