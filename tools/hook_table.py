"""The table hooks × policies × scripts, from the sources into `lua/README.md`.

`python -m tools.hook_table` writes it; `tests/lua/test_policies.py` compares.
"""

from __future__ import annotations

import re
from pathlib import Path

from rqueue.protocol.script_header import HOOKS
from rqueue.protocol.scripts import SCRIPTS
from tools.kinds import asking

README = Path(__file__).resolve().parent.parent / "lua" / "README.md"
PLACE = re.compile(
    r"(<!-- hooks: python -m tools.hook_table -->\n).*?(<!-- end of hooks -->)", re.S
)


def table() -> str:
    """The hooks that some script asks: the policies that answer, and the scripts."""
    policies = sorted(map(SCRIPTS.policy, SCRIPTS.policies()), key=lambda policy: policy.order)
    lines = [
        f"| hook | {' | '.join(policy.name for policy in policies)} | asked by |",
        f"| --- |{' --- |' * len(policies)} --- |",
    ]
    for hook in HOOKS:
        if asked_by := asking(hook):
            answers = " | ".join("yes" if hook in its.hooks else "" for its in policies)
            lines.append(f"| `{hook}` | {answers} | {' '.join(asked_by)} |")
    return "\n".join(lines) + "\n"


def written(text: str) -> str:
    """The README with the table of now."""
    return PLACE.sub(lambda found: found[1] + table() + found[2], text)


if __name__ == "__main__":
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")
