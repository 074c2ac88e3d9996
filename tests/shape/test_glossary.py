"""One term for each thing (docs/glossary.md): words that rqueue does not use do not come back."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PLACES = ("rqueue", "workers", "lua", "tests", "benchmarks", "examples", "docs", "tools")
KINDS = {".py", ".lua", ".md"}
EXEMPT = {"docs/glossary.md", "tests/shape/test_glossary.py"}


def _word(pattern: str) -> str:
    """As a word, or as a part of a name: `in_hand`, `hands_look`, `Hand`; not `handle`."""
    parts = (rf"(?<![A-Za-z])(?:{pattern})(?![a-z])", rf"(?:{pattern.title()})(?![a-z])")
    return "|".join(parts)


GIVE = "give|gives|gave|given|giving"
RETIRED = {
    # "by hand" and "on the other hand" are English; "hands out" and "hands on" are verbs
    "hand": r"(?<!by )(?<!by_)(?<!other )(?<!at )(?<![A-Za-z])[Hh]ands?(?![a-z])"
    r"(?![ _]o(?:ut|n|ver|ff)\b|-(?:written|made|off|over))",
    "hand over": r"\b[Hh]and(?:s|ed|ing)?[ _-](?:it |them |that |this )?(?:over|off)\b|into_hands",
    "desk": _word("desks?"),
    "courier": _word("couriers?"),
    "crew": _word("crews?"),
    "lane": _word("lanes?"),
    "errand": _word("errands?"),
    "seat": _word("seat|seats|seated"),
    # "short jobs", "in short" and "memory is short" are English
    "short": r"(?<![A-Za-z])shorts(?![a-z])|(?<![A-Za-z_])short_(?!jobs\b)[a-z]\w*|\bbe short\b",
    "bury": _word("bury|buried|buries|burying"),
    # "wired" is a verb
    "wire": rf"(?!wire format)(?:{_word('a?wires?')}|AsyncWire)",
    # "Lines of text" begins a sentence
    "lines": r"(?<![A-Za-z])Lines\b(?! [a-z])|transport[./]lines\b",
    "give back": rf"\b(?:{GIVE})(?: (?:it|them|all|one|what|jobs?|his|its|their)){{0,2}}[ _]back\b"
    rf"|(?:{GIVE})_back",
    # words that hide the subject of a sentence; "told apart" is a verb of its own
    "whoever": r"\b[Ww]hoever\b",
    "somebody": r"\b[Ss]omebody\b",
    "told": r"\b[Tt]old\b(?! apart)",
}

LETTERS = {"hand over": "hand", "bury": "bur", "give back": "back"}
"""What a text has that uses the word, where that is not the word itself."""


@cache
def _texts() -> dict[str, str]:
    """file -> what is in it."""
    listed = subprocess.run(
        ["git", "ls-files", *PLACES, "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return {
        name: (ROOT / name).read_text(encoding="utf-8")
        for name in sorted(set(listed))
        if Path(name).suffix in KINDS
        and name not in EXEMPT
        and name != "CHANGELOG.md"  # tells what was called how
        and (ROOT / name).exists()
    }


def found(word: str, text: str) -> list[str]:
    """The lines of a text that use the word."""
    if LETTERS.get(word, word) not in text.lower():  # most texts: patterns take long
        return []
    pattern = re.compile(RETIRED[word])
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


@pytest.mark.parametrize("word", RETIRED)
def test_a_retired_word_does_not_come_back(word: str) -> None:
    standing = {
        name: lines
        for name, text in _texts().items()
        if (lines := found(word, text)) or found(word, Path(name).stem)
    }
    assert standing == {}, "docs/glossary.md says what the word for it is"


def test_the_page_names_each_retired_word() -> None:
    rows = [
        [cell.strip() for cell in line.strip("| ").split(" | ")]
        for line in GLOSSARY.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    cells = [cell for row in rows for cell in (row[0], row[-1])]
    for word in RETIRED:
        assert any(re.search(rf"\b{word}\b", cell) for cell in cells), word


FOUND = {
    "hand": "in its hands; self.hand; hands_look; class Hand; in_hand; from the hand of",
    "hand over": "hand over; handed over; hands it over; hand_over; hand-off",
    "lane": "a lane; MainLane; lanes",
    "seat": "a seat; seated; seat_put",
    "short": "short_wait; the shorts",
    "bury": "buried; bury_job",
    "wire": "Wire; AsyncWire; self._wire; wires",
    "lines": "Lines; rqueue.transport.lines",
    "give back": "gives back; given back; give_back; gave it back",
    "whoever": "whoever looks; Whoever waits",
    "somebody": "somebody waits; in somebody's way",
    "told": "is told; told of work; Told of work",
}
FINE = {
    "hand": "by hand; handle; beforehand; on the other hand; JobHandle; hands out; handed_to",
    "hand over": "handed_to; handle over; hands out",
    "lane": "planes; airplane",
    "seat": "Seattle",
    "short": "short jobs; in short; shortly; memory is short",
    "bury": "Canterbury",
    "wire": "wired; wireless; the wire format",
    "lines": "lines; two lines; splitlines",
    "give back": "feedback; give it; backs",
    "whoever": "who; whatever",
    "somebody": "some body; anybody",
    "told": "told apart; Told apart; a stolen toldo",
}


@pytest.mark.parametrize("word", FOUND)
def test_the_patterns_find_the_word_and_nothing_else(word: str) -> None:
    for text in FOUND[word].split("; "):
        assert found(word, text), text
    for text in FINE[word].split("; "):
        assert not found(word, text), text
