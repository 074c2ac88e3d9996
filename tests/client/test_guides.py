"""The pages for those who come from another library: our code runs, theirs can be parsed, and what
the comparison says of us has a page."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest

from rqueue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.tasks import app
from rqueue.tasks.other_words import METHOD_WORDS, OPTION_WORDS
from rqueue.tasks.registry import registry
from tests.support.pages import DOCS, blocks, peer_blocks

GUIDES = ("from_rq.md", "from_celery.md", "from_dramatiq.md", "from_arq.md")


@pytest.fixture
def names(
    no_defaults: Any, private_server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    monkeypatch.setenv("RQUEUE_URL", private_server.url)
    monkeypatch.setattr(registry, "_tasks", {})
    before = app.apps()
    yield {"__name__": "guide"}
    for one in set(app.apps()) - set(before):
        one.remove()


@pytest.mark.parametrize("page", GUIDES)
def test_the_code_of_a_guide_runs(
    page: str, names: dict[str, Any], private_server: EmbeddedRedis
) -> None:
    exec(compile(blocks(page), page, "exec"), names)
    if page == "from_arq.md":
        assert asyncio.run(names["main"]()) == "home ready"
        assert asyncio.run(names["download"]("ab", session=names["Session"]())) == 2
    expected = {"from_rq.md": ("mail", 2, 1), "from_celery.md": ("payments", 1, 1)}
    expected |= {"from_dramatiq.md": ("images", 1, 1), "from_arq.md": ("web", 1, 1)}
    name, ready, scheduled = expected[page]
    with Queue(name, private_server.url) as queue:
        assert (queue.counts().ready, queue.counts().scheduled) == (ready, scheduled)


@pytest.mark.parametrize("page", GUIDES)
def test_the_code_of_others_can_be_parsed(page: str) -> None:
    pieces = peer_blocks(page)
    assert len(pieces) >= 2
    for piece in pieces:
        compile(piece, page, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_words_of_a_guide_are_known_to_our_errors() -> None:
    """Who tries one of them here hears of ours."""
    for word in ("job_timeout", "at_front", "depends_on", "countdown", "acks_late", "max_age"):
        assert word in OPTION_WORDS
    for word in ("delay", "apply_async", "send", "send_with_options"):
        assert word in METHOD_WORDS


def test_the_comparison_has_a_page_for_each_yes() -> None:
    text = (DOCS / "compare.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    head = cells[0]
    assert head[1] == "rqueue" and len(head) == 10
    for row in cells[2:]:
        assert len(row) == len(head), row
        if row[1].startswith(("yes", "in ")):
            pytest.fail(f"without a page: {row[0]}")
        assert all(cell in ("yes", "partly", "no", "") for cell in row[2:]), row
    ours = [row[1] for row in cells[2:]]
    assert any(cell.startswith("no") for cell in ours), "nobody has everything"


@pytest.mark.parametrize("page", [*GUIDES, "compare.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([\w./]+\.md)(?:#([\w-]+))?\)", text)
    assert len(links) >= 2
    for target, anchor in links:
        there = (DOCS / target).read_text(encoding="utf-8")
        heads = re.findall(r"^#+ (.*)$", there, re.MULTILINE)
        assert not anchor or anchor in map(_anchor, heads), f"{target}#{anchor}"


def _anchor(head: str) -> str:
    """As GitHub makes them."""
    return re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-")
