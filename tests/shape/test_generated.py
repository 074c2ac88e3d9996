"""The sync client is made from the asyncio one: nothing of it is edited by hand."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import unasync  # noqa: E402


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    """Made once for all that look at it."""
    return unasync.generated()


@pytest.fixture
def made_before(texts: dict[Path, str], monkeypatch: pytest.MonkeyPatch) -> dict[Path, str]:
    mine = dict(texts)
    monkeypatch.setattr(unasync, "generated", lambda: mine)
    return mine


@pytest.mark.usefixtures("made_before")
def test_what_is_generated_is_up_to_date() -> None:
    assert unasync.out_of_date() == [], "run `make generate`"


def test_an_edited_file_would_be_found(made_before: dict[Path, str]) -> None:
    target = "rqueue/client/_sync/queue.py"
    made_before[ROOT / target] += "# edited\n"
    assert unasync.out_of_date() == [target]


def test_a_rule_that_nothing_uses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unasync, "RULES", [*unasync.RULES, (r"\bnowhere\b", "here")])
    with pytest.raises(SystemExit, match="nowhere"):
        unasync.generated()


def test_no_word_of_asyncio_is_left(texts: dict[Path, str]) -> None:
    for path, text in texts.items():
        for word in ("async ", "await ", "asyncio", "_async"):
            code = "\n".join(text.split("\n")[1:])
            hits = [
                line
                for line in code.splitlines()
                if word in line and "in asyncio" not in line.lower()
            ]
            assert not hits, f"{path.name}: {hits}"
