"""The code of a page of docs/."""

from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


PEER = "<!-- peer -->"
"""Stands above code of another library, which is shown beside ours and not run."""


def blocks(page: str) -> str:
    """All Python of a page, one program, at its own line numbers."""
    lines, inside, before = [], False, ""
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        if fence:
            inside = not inside and line == "```python" and before != PEER
        lines.append(line if inside and not fence else "")
        before = line
    return "\n".join(lines)


def peer_blocks(page: str) -> list[str]:
    """The pieces of Python of other libraries on a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [rest.partition("```")[0] for rest in text.split(f"{PEER}\n```python\n")[1:]]
