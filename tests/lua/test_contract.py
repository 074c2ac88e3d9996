"""Each Lua script does with KEYS and ARGV what its header says, and nothing else."""

import re
from functools import cache
from pathlib import Path

import pytest

from rqueue.protocol.lua_folder import find_lua
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import SCRIPTS, Script, script
from tools.kinds import KINDS

ROOT = find_lua()
NAMES = SCRIPTS.names()
KINDS_OF_ONE = [Kind.of([policy]) for policy in SCRIPTS.policies()]
INCLUDES = sorted(
    path.relative_to(ROOT / "include").as_posix()
    for path in Path(str(ROOT / "include")).rglob("*")
    if path.is_file()
)

SLOT = re.compile(r"local ([a-z_0-9]+) = (KEYS|ARGV)\[(\d+)\]")
FIRST = re.compile(r"local FIRST = (\d+)")
NUMBERED = re.compile(r"\b(?:KEYS|ARGV)\[\s*\d+\s*\]")
NOTE = re.compile(r"---\s{2,}([a-z_0-9]+(?:, [a-z_0-9]+)*): ")


def without_comments(text: str) -> str:
    """The code alone; Lua's long brackets are not used in this project."""
    assert "[[" not in text, "long brackets would confuse this test"
    code = re.compile(r"""("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|--[^\n]*""")
    return code.sub(lambda found: found[1] or "", text)


def statements(name: str) -> list[str]:
    code = without_comments((ROOT / f"{name}.lua").read_text(encoding="utf-8"))
    return [line.strip() for line in code.splitlines() if line.strip()]


def included(include: str) -> str:
    """The text of an included file."""
    return (ROOT / "include" / include).read_text(encoding="utf-8")


GUARD = "guard"
"""A key that is declared and never used: it is to be absent."""


def slots(of: Script) -> list[str]:
    """The statements that a body begins with."""
    return [
        *(f"local {key} = KEYS[{i}]" for i, key in enumerate(of.header.keys, 1) if key != GUARD),
        *(f"local {arg} = ARGV[{i}]" for i, arg in enumerate(of.header.argv, 1)),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_body_begins_by_naming_each_slot(name: str) -> None:
    expected = slots(script(name))
    assert statements(name)[: len(expected)] == expected


@pytest.mark.parametrize("name", NAMES)
def test_no_slot_is_used_by_number_after_that(name: str) -> None:
    header = script(name).header
    rest = statements(name)[len(slots(script(name))) :]
    assert [line for line in rest if NUMBERED.search(line)] == []
    if header.rest is None:
        assert [line for line in rest if re.search(r"\b(KEYS|ARGV)\b", line)] == []
    else:
        first = FIRST.fullmatch(rest[0])
        assert first is not None, "a variadic rest begins at a place called FIRST"
        assert int(first[1]) == len(header.argv) + 1
        assert any(re.search(r"\bARGV\b", line) for line in rest[1:]), "the rest is never read"


@pytest.mark.parametrize("name", NAMES)
def test_each_named_slot_is_used(name: str) -> None:
    header = script(name).header
    body = "\n".join(statements(name)[len(slots(script(name))) :])
    unused = [s for s in (*header.keys[:1], *header.argv) if not re.search(rf"\b{s}\b", body)]
    assert unused == []


@pytest.mark.parametrize("name", NAMES)
def test_the_keys_are_the_queue_s_meta_and_one_that_never_exists(name: str) -> None:
    """A cluster that moves a slot key by key refuses such a script before it begins; see
    tests/protocol/test_slot_moves.py."""
    assert script(name).header.keys == ("meta", GUARD)
    assert not re.search(rf"\b{GUARD}\b", "\n".join(statements(name)))


def test_nothing_is_called_like_the_key_that_never_exists() -> None:
    named = [one for one in INCLUDES if re.search(rf"\b{GUARD}\b", without_comments(included(one)))]
    assert named == []


@pytest.mark.parametrize("name", NAMES)
def test_the_first_line_says_to_dragonfly_that_keys_are_derived(name: str) -> None:
    assert script(name).source.startswith("--!df flags=allow-undeclared-keys\n--- ")


@pytest.mark.parametrize("name", NAMES)
def test_notes_are_about_slots_that_exist(name: str) -> None:
    header = script(name).header
    known = {*header.keys, *header.argv, header.rest}
    text = (ROOT / f"{name}.lua").read_text(encoding="utf-8")
    notes = text[text.index("--- ARGV:") : text.index("--- REPLY:")].splitlines()[1:]
    # "a: x | b: y" are the cases of one slot's content, not slots.
    notes = [line for line in notes if " | " not in line]
    named = {slot for line in notes if (note := NOTE.match(line)) for slot in note[1].split(", ")}
    assert named <= known


def lines_of_all_kinds(name: str) -> list[str]:
    """What a script has in some kind, each line once, in the order of their files."""
    found: dict[tuple[str, int], str] = {}
    for kind in KINDS_OF_ONE if script(name).composed else KINDS_OF_ONE[:1]:
        composed = script(name, kind)
        found |= zip(composed.origins, composed.source.splitlines(), strict=True)
    return [found[place] for place in sorted(found)]


@pytest.mark.parametrize("name", NAMES)
def test_errors_raised_are_those_declared(name: str) -> None:
    """Error codes are the first word of an error reply, in the script or in what it includes."""
    declared = set(re.findall(r"\b[A-Z]{4,}\b", script(name).header.errors))
    code = without_comments("\n".join(lines_of_all_kinds(name)))
    raised = set(re.findall(r"error_reply\(\s*['\"]([A-Z]+)\b", code))
    own = set(re.findall(r"error_reply\(\s*['\"]([A-Z]+)\b", "\n".join(statements(name))))
    assert own <= declared, "raised here, not declared"
    assert declared <= raised, "declared, never raised"


# What the store sends is compared with these headers in tests/protocol/test_calls.py.


def test_includes_take_all_they_need_as_parameters() -> None:
    for include in INCLUDES:
        assert include.endswith(".lua")
        text = included(include)
        assert not re.search(r"\b(KEYS|ARGV)\b", without_comments(text)), include
        assert text.startswith("--- "), f"{include} does not say what it is for"


INCLUDE = re.compile(r'(\s*)--- @include "([\w/]+)"')
DEFINED = re.compile(r"local (?:function )?(\w+)(?:, (\w+))?")
POLICIES = sorted(
    path.relative_to(ROOT).as_posix() for path in Path(str(ROOT / "policies")).rglob("*.lua")
)
FILES = sorted(
    [*(f"{name}.lua" for name in NAMES), *(f"include/{name}" for name in INCLUDES), *POLICIES]
)


@cache
def provided(include: str) -> frozenset[str]:
    """What an included file defines, with what it includes itself."""
    names: set[str] = set()
    for line in (ROOT / "include" / f"{include}.lua").read_text(encoding="utf-8").splitlines():
        if defined := DEFINED.match(line):
            names |= {name for name in defined.groups() if name}
        elif (wanted := INCLUDE.match(line)) and not wanted[1]:
            names |= provided(wanted[2])
    return frozenset(names)


@cache
def everything() -> frozenset[str]:
    """What all included files define."""
    return frozenset[str]().union(*(provided(name.removesuffix(".lua")) for name in INCLUDES))


def missing_in(file: str) -> list[str]:
    """What a file uses and does not include; what a block includes is known in that block."""
    known: list[tuple[int, frozenset[str]]] = [(0, frozenset())]
    missing = []
    for line in (ROOT / file).read_text(encoding="utf-8").splitlines():
        wanted, code = INCLUDE.match(line), without_comments(line)
        depth = len(line) - len(line.lstrip())
        while (wanted or code.strip()) and depth < known[-1][0]:
            known.pop()
        if wanted:
            known.append((depth, provided(wanted[2])))
        elif code.strip():
            if (defined := DEFINED.match(code)) and not depth:
                known[0] = 0, known[0][1] | {name for name in defined.groups() if name}
            words = set(re.findall(r"(?<![.\w'])[A-Za-z_]\w*\b(?!')", code)) & everything()
            missing += sorted(words - set().union(*(names for _, names in known)))
    return missing


def test_a_file_includes_what_it_uses() -> None:
    """Lua finds out only when the line runs."""
    assert {file: missing for file in FILES if (missing := missing_in(file))} == {}


FUNCTION = re.compile(r"\s*local function (\w+)")


def strangers_in(include: str) -> list[str]:
    """The functions of an included file that begin with another name."""
    folder, _, file = include.removesuffix(".lua").partition("/")
    assert file, "an include stands in the folder of its noun"
    wanted = re.compile(rf"(?:{folder}_)?{file}(?:_\w+)?")
    text = included(include)
    names = [found[1] for line in text.splitlines() if (found := FUNCTION.match(line))]
    # what is local to another function is nobody's to look up
    top = [name for name in names if re.search(rf"^local function {name}\b", text, re.M)]
    return [name for name in top if not wanted.fullmatch(name)]


def test_a_function_begins_with_its_file_s_name() -> None:
    """So that the reader of a call knows where to look: <file>_..., or <folder>_<file>_... ."""
    assert {its: names for its in INCLUDES if (names := strangers_in(its))} == {}


def test_every_include_is_used() -> None:
    unused = {f"lua/include/{include}" for include in INCLUDES}
    # those of one policy are composed for the tests of errors too; then those that use most
    for kind in (*KINDS_OF_ONE, *sorted(KINDS, key=lambda kind: -len(kind.policies))):
        for name in NAMES:
            unused -= {file for file, _ in SCRIPTS.script(name, kind).origins}
        if not unused:
            return
    assert not unused


def test_who_looks_at_all_consumers_looks_at_as_many_as_there_may_be() -> None:
    """A number of its own is left behind when the limit changes (`CONSUMERS_MOST`)."""
    looks = re.compile(r"'(?:ZRANGE|ZREVRANGE)', base \.\. 'consumers', '?0'?, '?\d{4}")
    found = {
        str(path.relative_to(find_lua()))
        for path in find_lua().rglob("*.lua")
        if looks.search(path.read_text(encoding="utf-8"))
    }
    assert found == set()
