"""The loader finds, expands and checks Lua sources, and says where it found a fault."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rqueue.errors import ScriptSourceError
from rqueue.protocol import script_parts
from rqueue.protocol.policies import Kind
from rqueue.protocol.script_header import parse_header
from rqueue.protocol.scripts import DRAGONFLY, Scripts, find_lua

HEADER = """\
--- Does a thing.
--- KEYS: meta
--- ARGV: none
--- REPLY: {now}
--- ERRORS: none
"""

Sources = Callable[..., Scripts]


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """Write `name=text` files (`/` is spelled `__`) and return their Scripts."""

    def write(**texts: str) -> Scripts:
        for name, text in texts.items():
            path = tmp_path / f"{name.replace('__', '/')}.lua"
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_text(text)
        return Scripts(tmp_path)

    return write


def fault(scripts: Scripts, name: str) -> str:
    with pytest.raises(ScriptSourceError) as caught:
        scripts.script(name)
    return str(caught.value)


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


def policy(hooks: str, order: int = 1, fast: str = "yes") -> str:
    return f"""\
--- A policy.
--- HOOKS: {hooks}
--- META: none
--- JOB: none
--- KEYS: none
--- STORE: list
--- ORDER: {order}
--- FAST: {fast}
--- STRUCTURE: none
--- EXCLUDES: none
local code
"""


class TestKinds:
    """What stands for the policies of a kind of queue."""

    def body(self, sources: Sources, text: str, *policies: str, **more: str) -> list[str]:
        """The script's lines, with these policies in its kind; their own lines left out."""
        found = sources(one=HEADER + text, **more)
        kind = Kind(policies)
        lines = zip(found.script("one", kind).source.splitlines(), strict=False)
        origins = found.script("one", kind).origins
        return [
            line
            for (line,), (file, _) in zip(lines, origins, strict=True)
            if not file.startswith("lua/policies/")
        ][1 + len(HEADER.splitlines()) :]

    def test_each_policy_that_has_the_hook_is_called_in_their_order(self, sources: Sources) -> None:
        text = "if x then\n  --- @each left(queue, job)\nend\n"
        two = {"policies__b": policy("left", 1), "policies__a": policy("left, taken", 2)}
        calls = ["  b_left(queue, job)", "  a_left(queue, job)"]
        assert self.body(sources, text, "a", "b", **two) == ["if x then", *calls, "end"]

    def test_what_nobody_answers_is_not_there(self, sources: Sources) -> None:
        text = "--- @each left(job)\n--- @hooks left\n--- @if left\nlost()\n--- @end\nreturn 1\n"
        one = {"policies__a": policy("taken")}
        assert self.body(sources, text, "a", **one) == ["return 1"]
        found = sources(one=HEADER + text, **one).script("one", Kind(("a",)))
        assert "policy" not in found.source
        assert found.composed
        assert found.asks == {"left"}

    def test_the_first_answer_counts(self, sources: Sources) -> None:
        text = "local fault\n--- @each fault = admit(job)\n"
        two = {"policies__b": policy("admit", 1), "policies__a": policy("admit", 2)}
        assert self.body(sources, text, "a", "b", **two) == [
            "local fault",
            "fault = fault or b_admit(job)",
            "fault = fault or a_admit(job)",
        ]

    def test_an_answer_among_the_arguments_goes_through_all(self, sources: Sources) -> None:
        text = "--- @each where = returned(job, where)\n"
        two = {"policies__b": policy("returned", 1), "policies__a": policy("returned", 2)}
        assert self.body(sources, text, "a", "b", **two) == [
            "where = b_returned(job, where)",
            "where = a_returned(job, where)",
        ]

    def test_one_policy_answers_by_a_name_of_the_hook(self, sources: Sources) -> None:
        two = {"policies__b": policy("rank", 1), "policies__a": policy("rank", 2)}
        assert self.body(sources, "--- @one rank\n", "a", **two) == ["local rank = a_rank"]
        scripts = sources(one=HEADER + "--- @one rank\n", **two)
        with pytest.raises(ScriptSourceError, match=r"one policy of a kind answers rank: b, a"):
            scripts.script("one", Kind(("a", "b")))

    def test_a_hook_of_its_own_file_is_found_there(self, sources: Sources) -> None:
        both = {"policies__a": policy("left, upkeep"), "policies__a__upkeep": "local own\n"}
        found = sources(one=HEADER + "--- @each upkeep(queue)\n", **both)
        source = found.script("one", Kind(("a",))).source
        assert source.endswith("\nlocal own\na_upkeep(queue)\n")
        assert "local code" not in source

    def test_a_policy_stands_once_in_its_block(self, sources: Sources) -> None:
        text = "--- @hooks left\nfor x in y do\n  --- @each left(x)\nend\n"
        found = sources(one=HEADER + text, policies__a=policy("left"))
        assert found.script("one", Kind(("a",))).source.count("local code") == 1

    @pytest.mark.parametrize(("fast", "kept"), [("yes", ["fast()"]), ("no", [])])
    def test_fast_paths_are_there_where_all_policies_allow_it(
        self, sources: Sources, fast: str, kept: list[str]
    ) -> None:
        text = "--- @fast\nfast()\n--- @end\n"
        two = {"policies__a": policy("left"), "policies__b": policy("left", 2, fast)}
        assert self.body(sources, text, "a", "b", **two) == kept

    def test_functions_of_includes_and_policies_are_fields_of_a_table(
        self, sources: Sources, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """There may be more of them than Lua has local variables."""
        monkeypatch.setattr(script_parts, "MANY", 3)
        text = (
            '--- @include "part"\n'
            "--- @hooks left\n"
            "local function own(job)\n"
            "  --- @each left(job)\n"
            "  return part_of({ part_of = job.part_of, other = 'part_of' .. part_of() })\n"
            "end\n"
        )
        left = policy("left").replace("local code", "local function a_left() return part_of() end")
        found = sources(
            one=HEADER + text,
            include__part="local function part_of() end\nlocal function my_code(my_code) end\n",
            policies__a=left,
        )
        written = found.script("one", Kind(("a",)))
        assert written.source.removeprefix(DRAGONFLY + "\n" + HEADER).splitlines() == [
            "local ONE_PARTS_0 = {}",
            "function ONE_PARTS_0.part_of() end",
            "local function my_code(my_code) end",
            "function ONE_PARTS_0.a_left() return ONE_PARTS_0.part_of() end",
            "local function own(job)",
            "  ONE_PARTS_0.a_left(job)",
            "  return ONE_PARTS_0.part_of("
            "{ part_of = job.part_of, other = 'part_of' .. ONE_PARTS_0.part_of() })",
            "end",
        ]
        assert written.locate("user_script:8: oh") == "lua/include/part.lua:1"

    def test_a_step_and_a_block_have_their_own_functions(
        self, sources: Sources, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(script_parts, "MANY", 1)
        scripts = sources(
            one=HEADER + '--- @include "a"\n--- @step "two"\nif x then\n  --- @include "b"\n'
            "  b_do()\nend\na_do()\n",
            two=HEADER + '--- @include "b"\n--- @each left(x)\nreturn a_do() or b_do()\n',
            include__a="local function a_do() end\n",
            include__b="local function b_do() end\n",
            policies__a=policy("left"),
        )
        code = scripts.script("one", Kind(("a",))).source.removeprefix(DRAGONFLY + "\n" + HEADER)
        assert [line for line in code.splitlines() if not line.startswith("--")] == [
            "local ONE_PARTS_0 = {}",
            "function ONE_PARTS_0.a_do() end",
            "local function two_step(KEYS, ARGV)",
            "local TWO_PARTS_1 = {}",
            "function TWO_PARTS_1.b_do() end",
            "local code",
            "a_left(x)",
            "return ONE_PARTS_0.a_do() or TWO_PARTS_1.b_do()",
            "end",
            "if x then",
            "local ONE_PARTS_2 = {}",
            "function ONE_PARTS_2.b_do() end",
            "  ONE_PARTS_2.b_do()",
            "end",
            "ONE_PARTS_0.a_do()",
        ]

    def test_the_stamp_is_that_of_the_kind(self, sources: Sources) -> None:
        text = "--- @stamp\n--- @each places(x)\n"
        assert self.body(sources, text, "levels", policies__levels=policy("rank")) == [
            "local STAMP = '1'"
        ]

    def test_what_is_the_same_for_all_kinds_has_no_stamp(self, sources: Sources) -> None:
        assert self.body(sources, "--- @stamp\n") == ["local STAMP = false"]

    @pytest.mark.parametrize(
        ("line", "says"),
        [
            ("--- @each nothing(x)", "no hook 'nothing'"),
            ("--- @if nothing", "no hook 'nothing'"),
            ("--- @each left", "malformed each"),
            ("--- @one left(x)", "malformed one"),
            ("--- @if left", "this has no @end"),
            ("--- @end", "@end of nothing"),
        ],
    )
    def test_malformed(self, sources: Sources, line: str, says: str) -> None:
        message = fault(sources(one=HEADER + line + "\n"), "one")
        assert message.startswith(f"lua/one.lua:6: {says}")

    @pytest.mark.parametrize(
        ("right", "wrong", "says"),
        [
            ("HOOKS: left", "HOOKS: nothing", ":2: no hook 'nothing'"),
            ("STORE: list", "STORE: heap", ":6: STORE is one of list, set"),
            ("ORDER: 1", "ORDER: first", ":7: ORDER is a number"),
            ("--- META: none\n", "", "section JOB where META is due"),
        ],
    )
    def test_a_policy_that_says_nonsense(
        self, sources: Sources, right: str, wrong: str, says: str
    ) -> None:
        scripts = sources(one=HEADER, policies__a=policy("left").replace(right, wrong))
        with pytest.raises(ScriptSourceError, match=re.escape(says)):
            scripts.script("one", Kind(("a",)))

    def test_a_policy_that_is_not_there(self, sources: Sources) -> None:
        with pytest.raises(ScriptSourceError, match="no policy 'b' in"):
            sources(one=HEADER, policies__a=policy("left")).script("one", Kind(("b",)))


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
