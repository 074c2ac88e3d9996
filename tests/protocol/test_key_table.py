"""The table of keys knows each key that the scripts know, and so does the page about keys."""

import re
from pathlib import Path

from rqueue.protocol.key_table import LEFT_OVER, READY, SCORES
from rqueue.protocol.lua_folder import find_lua

PAGE = Path(__file__).parents[2] / "docs" / "redis_keys.md"


def types_of_the_scripts() -> dict[str, set[str]]:
    """Each key of the scripts, by what stands before a colon, and its types."""
    text = Path(str(find_lua() / "include" / "queue" / "key_types.lua")).read_text("utf-8")
    found: dict[str, set[str]] = {}
    for quoted, word, kind in re.findall(r"(?:\['([\w:]+)'\]|\b(\w+)) = '(\w+)'", text):
        found.setdefault((quoted or word).partition(":")[0], set()).add(kind)
    return found


def test_each_sorted_set_says_what_its_scores_are() -> None:
    types = types_of_the_scripts()
    assert set(SCORES) == {name for name, kinds in types.items() if "zset" in kinds}
    assert {*READY, *LEFT_OVER} <= set(types)


def test_the_page_about_keys_has_each_key_with_its_type() -> None:
    rows = re.findall(r"^\| (`.*?) \| ([\w, ]+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    there: dict[str, set[str]] = {}
    for names, kinds in rows:
        keys = re.findall(r"`([\w:]+?):?(?:<.*?)?`", names)
        for place, key in enumerate(keys):
            several = kinds.split(", ")
            kind = several[min(place, len(several) - 1)]
            there.setdefault(key.partition(":")[0], set()).add(kind)
    types = types_of_the_scripts()
    assert {name: kinds for name, kinds in there.items() if name in types} == types
