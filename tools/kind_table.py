"""The table of which policies go together, from their declarations into `docs/queue_kinds.md`.

`python -m tools.kind_table` writes it; `tests/lua/test_policies.py` compares.
"""

from __future__ import annotations

import re
from pathlib import Path

from rqueue.protocol.policies import POLICIES

PAGE = Path(__file__).resolve().parent.parent / "docs" / "queue_kinds.md"
PLACE = re.compile(
    r"(<!-- kinds: python -m tools.kind_table -->\n).*?(<!-- end of kinds -->)", re.S
)
INSIDE = ("levels", "outbox", "deleting")
"""Policies that nobody asks for by name: every queue's, and those that others bring along."""


def table() -> str:
    """Each policy, and those that cannot be in a queue with it."""
    names = [name for name in POLICIES if name not in INSIDE]
    lines = ["| policy | not together with |", "| --- | --- |"]
    for name in names:
        others = ", ".join(f"`{other}`" for other in names if other in POLICIES[name].excludes)
        lines.append(f"| `{name}` | {others} |")
    return "\n".join(lines) + "\n"


def written(text: str) -> str:
    """The page with the table of now."""
    return PLACE.sub(lambda found: found[1] + table() + found[2], text)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
