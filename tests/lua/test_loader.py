"""The loader finds, expands and checks Lua sources, and says where it found a fault."""

import hashlib
from pathlib import Path

import pytest

from rqueue.errors import ScriptSourceError
from rqueue.protocol.lua_folder import find_lua
from rqueue.protocol.script_header import parse_header
from rqueue.protocol.scripts import DRAGONFLY, Scripts
from tests.support import lua_sources
from tests.support.lua_sources import HEADER, Sources, fault

sources = lua_sources.sources


def test_a_script_is_its_source_with_a_sha(sources: Sources) -> None:
    script = sources(one=HEADER + "return 1\n").script("one")
    assert script.name == "one"
    assert script.source == DRAGONFLY + "\n" + HEADER + "return 1\n"
    assert script.sha == hashlib.sha1(script.source.encode()).hexdigest()


def test_a_script_is_loaded_once(sources: Sources) -> None:
    scripts = sources(one=HEADER + "return 1\n")
    assert scripts.script("one") is scripts.script("one")


def test_names_are_the_lua_files_alone(sources: Sources, tmp_path: Path) -> None:
    scripts = sources(two=HEADER, one=HEADER, include__part="local x = 1\n")
    (tmp_path / "README.md").write_text("not a script")
    assert scripts.names() == ("one", "two")


def test_a_folder_without_scripts_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScriptSourceError, match="no Lua scripts in"):
        Scripts(tmp_path).names()


def test_an_unknown_script_is_an_error_that_lists_the_known(sources: Sources) -> None:
    assert "no script 'two'" in fault(sources(one=HEADER), "two")
    assert fault(sources(one=HEADER), "two").endswith("there are: one")


@pytest.mark.parametrize("name", ["../one", "include/part", "", "One"])
def test_a_name_cannot_leave_the_folder(sources: Sources, name: str) -> None:
    assert "no script" in fault(sources(one=HEADER, include__part="local x = 1\n"), name)


class TestIncludes:
    def test_an_include_stands_where_its_line_was(self, sources: Sources) -> None:
        scripts = sources(
            one=HEADER + '--- @include "part"\nreturn part()\n',
            include__part="local function part() return 1 end\n",
        )
        body = scripts.script("one").source.removeprefix(DRAGONFLY + "\n" + HEADER)
        assert body == "local function part() return 1 end\nreturn part()\n"

    def test_each_file_once_and_what_is_needed_first(self, sources: Sources) -> None:
        scripts = sources(
            one=HEADER + '--- @include "top"\n--- @include "base"\n--- @include "top"\nreturn 1\n',
            include__top='--- @include "middle"\n--- @include "base"\nlocal top\n',
            include__middle='--- @include "base"\nlocal middle\n',
            include__base="local base\n",
        )
        body = scripts.script("one").source.removeprefix(DRAGONFLY + "\n" + HEADER).splitlines()
        assert body == ["local base", "local middle", "local top", "return 1"]

    def test_lines_are_traced_to_their_files(self, sources: Sources) -> None:
        script = sources(
            one=HEADER + '--- @include "part"\nreturn 1\n',
            include__part="local a\nlocal b\n",
        ).script("one")
        assert script.origins[6:] == (
            ("lua/include/part.lua", 1),
            ("lua/include/part.lua", 2),
            ("lua/one.lua", 7),
        )
        assert script.locate("ERR user_script:8: oh script: 0") == "lua/include/part.lua:2"
        assert script.locate("ERR oh") is None
        assert script.locate("ERR user_script:99: oh") is None

    def test_missing(self, sources: Sources) -> None:
        message = fault(sources(one=HEADER + '--- @include "nowhere"\n'), "one")
        assert message == (
            'lua/one.lua:6: no include "nowhere": lua/include/nowhere.lua is not there'
        )

    def test_missing_below_tells_the_way_there(self, sources: Sources) -> None:
        scripts = sources(
            one=HEADER + '--- @include "a"\n',
            include__a='local x\n--- @include "b"\n',
            include__b='--- @include "nowhere"\n',
        )
        assert fault(scripts, "one").splitlines() == [
            'lua/include/b.lua:1: no include "nowhere": lua/include/nowhere.lua is not there',
            "  included from lua/include/a.lua:2",
            "  included from lua/one.lua:6",
        ]

    def test_circular(self, sources: Sources) -> None:
        scripts = sources(
            one=HEADER + '--- @include "a"\n',
            include__a='--- @include "b"\n',
            include__b='local x\n--- @include "a"\n',
        )
        assert fault(scripts, "one").splitlines() == [
            "lua/include/b.lua:2: circular include: "
            "lua/include/a.lua -> lua/include/b.lua -> lua/include/a.lua",
            "  included from lua/include/a.lua:1",
            "  included from lua/one.lua:6",
        ]

    def test_an_indented_one_belongs_to_its_block(self, sources: Sources) -> None:
        block = '  --- @include "a"\n  --- @include "b"\n'
        scripts = sources(
            one=HEADER + "if x then\n" + block + "end\n" + '--- @include "a"\n',
            include__a='--- @include "base"\nlocal a\n',
            include__b='--- @include "base"\nlocal b\n',
            include__base="local base\n",
        )
        body = scripts.script("one").source.split("if x then\n")[1]
        assert body == "local base\nlocal a\nlocal b\nend\nlocal base\nlocal a\n"

    def test_what_stands_outside_is_known_in_a_block(self, sources: Sources) -> None:
        scripts = sources(
            one=HEADER + '--- @include "a"\nif x then\n  --- @include "a"\nend\n',
            include__a="local a\n",
        )
        assert scripts.script("one").source.endswith("local a\nif x then\nend\n")

    def test_of_itself(self, sources: Sources) -> None:
        scripts = sources(one=HEADER + '--- @include "a"\n', include__a='--- @include "a"\n')
        assert "circular include: lua/include/a.lua -> lua/include/a.lua" in fault(scripts, "one")

    @pytest.mark.parametrize(
        "line",
        [
            "--- @include part",
            "--- @include 'part'",
            '-- @include "part"',
            '--- @include "../part"',
            '--- @include "part" "other"',
        ],
    )
    def test_malformed(self, sources: Sources, line: str) -> None:
        scripts = sources(one=HEADER + line + "\n", include__part="local x\n")
        assert fault(scripts, "one").startswith("lua/one.lua:6: malformed include")


class TestHeader:
    def test_all_of_it(self) -> None:
        header = parse_header(
            "--- Settles jobs,\n"
            "--- and pulls.\n"
            "--- KEYS: meta\n"
            "--- ARGV: consumer, term,\n"
            "---   window, ids...\n"
            "---   window: jobs, then bytes\n"
            "---   ids: of the jobs\n"
            "--- REPLY: {now, state,\n"
            "---   id, ...}\n"
            "--- ERRORS: GONE | STALE\n"
            '--- @include "queue"\n'
            "local meta = KEYS[1]\n",
            "lua/settle.lua",
        )
        assert header.purpose == "Settles jobs, and pulls."
        assert header.keys == ("meta",)
        assert header.argv == ("consumer", "term", "window")
        assert header.rest == "ids"
        assert header.reply == "{now, state,\nid, ...}"
        assert header.errors == "GONE | STALE"

    def test_notes_in_parentheses_are_not_names(self) -> None:
        text = HEADER.replace("ARGV: none", "ARGV: limit (at most 500, or 0), ids... (any)")
        header = parse_header(text, "lua/x.lua")
        assert (header.argv, header.rest) == (("limit",), "ids")

    @pytest.mark.parametrize(
        ("before", "after", "message"),
        [
            ("--- Does a thing.\n", "", "1: a script begins with"),
            ("--- KEYS: meta\n", "", "2: section ARGV where KEYS is due"),
            ("--- ERRORS: none\n", "", "4: the header has no section ERRORS"),
            ("--- ARGV: none", "--- ARGS: none", "3: unknown section ARGS"),
            ("--- ARGV: none", "--- KEYS: meta", "3: section KEYS is there twice"),
            ("--- REPLY: {now}", "--- REPLY:", "4: section REPLY is empty"),
            ("--- REPLY: {now}", "--- REPLY: {now,\n--- state}", "5: neither a section nor"),
            ("ARGV: none", "ARGV: Id", "3: 'Id' cannot be the name of a slot of ARGV"),
            ("ARGV: none", "ARGV: id,, term", "3: '' cannot be the name of a slot of ARGV"),
            ("ARGV: none", "ARGV: ids..., term", "3: 'ids...' cannot be the name"),
            ("ARGV: none", "ARGV: id, id", "3: two slots are called id"),
            ("ARGV: none", "ARGV: meta", "3: two slots are called meta"),
        ],
    )
    def test_faults(self, before: str, after: str, message: str) -> None:
        assert before in HEADER
        with pytest.raises(ScriptSourceError) as caught:
            parse_header(HEADER.replace(before, after), "lua/x.lua")
        assert str(caught.value).startswith(f"lua/x.lua:{message}")

    def test_an_empty_file(self) -> None:
        with pytest.raises(ScriptSourceError, match=r"lua/x\.lua:1: a script begins with"):
            parse_header("", "lua/x.lua")


def test_the_checkout_reads_the_folder_at_its_top() -> None:
    assert find_lua() == Path(__file__).resolve().parents[2] / "lua"
