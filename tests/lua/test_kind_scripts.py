"""The loader puts together the script of a kind from its source and the policies of the kind."""

import re

import pytest

from rqueue.errors import ScriptSourceError
from rqueue.protocol import script_parts
from rqueue.protocol.policies import Kind
from rqueue.protocol.scripts import DRAGONFLY
from tests.support import lua_sources
from tests.support.lua_sources import HEADER, Sources, fault, policy

sources = lua_sources.sources


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
