"""Pages can be read in a diff: no line of prose has more than 120 characters."""

from pathlib import Path

import pytest

from tests.docs.wrap import LIMIT, too_long, wrap

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted(ROOT.glob("docs/*.md")),
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "lua/README.md", "workers/README.md")
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_are_short(page: Path) -> None:
    """Else: `python -m tests.docs.wrap` with the page's name."""
    assert too_long(page.read_text(encoding="utf-8")) == []


LONG = " ".join(["word"] * 60)


def test_text_is_wrapped_and_all_else_stays() -> None:
    apart = f"# {LONG}\n\n| {LONG} |\n| --- |\n\n```\n{LONG}\n```\n\n<!-- {LONG} -->\n"
    assert wrap(apart) == apart
    assert too_long(apart) == []
    page = f"{LONG}\nshort\n\n- {LONG}\n- b\n  c\n\n1. {LONG}\n"
    assert len(too_long(page)) == 3
    done = wrap(page)
    assert too_long(done) == [] and max(map(len, done.splitlines())) <= LIMIT
    assert done.split() == page.split()
    assert "\n- b\n  c\n" in done, "what is short stays"
    assert "\n  word" in done and "\n   word" in done, "items go on under their first word"
    assert wrap(done) == done


def test_code_and_links_are_not_broken() -> None:
    code = "`a b`, " * 30 + "[two words](a/page.md) " * 10
    for line in wrap(code).splitlines():
        assert line.count("`") % 2 == 0
        assert line.count("[") == line.count(")")


def test_no_line_begins_like_an_item() -> None:
    text = "word " * 24 + "- 1. # " * 20
    assert wrap(wrap(text)) == wrap(text)
    assert not any(line.startswith(("-", "1.", "#")) for line in wrap(text).splitlines())
