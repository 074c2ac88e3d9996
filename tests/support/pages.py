"""The code of a page of docs/."""

from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks(page: str) -> str:
    """All Python of a page, one program, at its own line numbers."""
    lines, inside = [], False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        fence = line.startswith("```")
        if fence:
            inside = not inside and line == "```python"
        lines.append(line if inside and not fence else "")
    return "\n".join(lines)
