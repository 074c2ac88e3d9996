"""Policies say what they are; a plain queue's scripts have no line of any but `levels`, and send
what they always sent."""

import re
from pathlib import Path

import pytest
import redis

from rqueue.embedded.server import EmbeddedRedis
from rqueue.protocol.lua_folder import find_lua
from rqueue.protocol.policies import PLAIN, POLICIES, ExcludedPolicies, Kind
from rqueue.protocol.script_header import HOOKS
from rqueue.protocol.scripts import SCRIPTS, script
from tests.lua import plain_commands
from tests.lua.test_contract import without_comments
from tests.property.sources import sound
from tests.support.profiles import examples
from tests.support.run_script import run
from tools import hook_table, kind_table, kinds

NAMES = SCRIPTS.names()
POLICY_NAMES = SCRIPTS.policies()
FUNCTION = re.compile(r"^local function (\w+)", re.M)
STEP = re.compile(r"^local function \w+_step\(KEYS, ARGV\)\n", re.M)


def texts(policy: str) -> dict[str, str]:
    """The files of a policy, by their path."""
    root = Path(str(find_lua() / "policies"))
    files = [root / f"{policy}.lua", *sorted((root / policy).glob("*.lua"))]
    return {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}


def test_lua_and_python_know_the_same_policies_in_the_same_order() -> None:
    headers = sorted(map(SCRIPTS.policy, POLICY_NAMES), key=lambda policy: policy.order)
    assert [policy.name for policy in headers] == list(POLICIES)
    assert len({policy.order for policy in headers}) == len(headers)


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_policy_defines_the_hooks_that_it_names(name: str) -> None:
    """And its other functions begin with its name too."""
    defined = [found for text in texts(name).values() for found in FUNCTION.findall(text)]
    assert [its for its in defined if not its.startswith(f"{name}_")] == []
    hooks = [its for its in HOOKS if f"{name}_{its}" in defined]
    assert sorted(hooks) == sorted(SCRIPTS.policy(name).hooks)
    for path in texts(name):
        if "/" in path:
            assert Path(path).stem in SCRIPTS.policy(name).hooks


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_policy_touches_no_other_s_keys_and_fields(name: str) -> None:
    code = without_comments("\n".join(texts(name).values()))
    its = SCRIPTS.policy(name)
    others = [
        SCRIPTS.policy(other)
        for other in POLICY_NAMES
        # who is never in one queue with it may keep its own under the same names
        if other != name and other not in its.excludes
    ]
    foreign = {word for policy in others for word in (*policy.keys, *policy.meta)}
    # where jobs of several stand, and what counts them
    foreign = {word.partition("<")[0] for word in foreign} - {"heads", "blocked", "group:"}
    assert {word for word in foreign if f"'{word}" in code} == set()


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_policy_excludes_what_excludes_it(name: str) -> None:
    for other in SCRIPTS.policy(name).excludes:
        assert name in SCRIPTS.policy(other).excludes


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_each_hook_of_a_policy_is_asked(name: str) -> None:
    asked = {hook for hook in HOOKS if kinds.asking(hook)}
    assert set(SCRIPTS.policy(name).hooks) - asked == set()


def test_what_is_asked_is_answered_by_some_policy() -> None:
    asked = {hook for hook in HOOKS if kinds.asking(hook)}
    answered = {hook for name in POLICY_NAMES for hook in SCRIPTS.policy(name).hooks}
    assert asked - answered == set()


@pytest.mark.parametrize("name", NAMES)
def test_a_plain_queue_s_script_has_no_other_policy_s_line(name: str) -> None:
    """C-32."""
    plain = script(name)
    from_policies = {file for file, _ in plain.origins if file.startswith("lua/policies/")}
    assert from_policies <= {"lua/policies/levels.lua"}
    code = without_comments(plain.source)
    for other in POLICY_NAMES:
        if other != "levels":
            assert not re.search(rf"\b{other}_", code)


COMPARE = {"busy", "claim", "displace", "done", "instead", "pass", "shelf", "trim", "unblock"}
"""Hooks that compare jobs, or pass on what they had."""
LOOK = {"await_result", "watch"}
"""Scripts that say what is true of a job and change nothing."""
ONLY_CHECK = {"declare_schedule", "set_schedule"}
"""Scripts that enqueue nothing: they read the terms of jobs to come."""
DEAD_ONLY = {"purge_dead"}
"""Dead letters have no turn, no permit and no key to pass on."""


@pytest.mark.parametrize("name", NAMES)
def test_a_step_that_compares_jobs_makes_ready_first_what_is_due(name: str) -> None:
    """But the doctor, which mends one place at a time."""
    asked = {hook for kind in kinds.KINDS for hook in script(name, kind).asks}
    if name in LOOK | ONLY_CHECK | DEAD_ONLY or name.startswith("repair_"):
        assert "ripen" not in asked
    else:
        assert bool(asked & COMPARE) == ("ripen" in asked)


@pytest.mark.parametrize("name", NAMES)
def test_a_script_that_asks_nobody_is_the_same_for_all_kinds(name: str) -> None:
    others = [kind for kind in kinds.KINDS if kind != PLAIN]
    same = [script(name) == script(name, kind) for kind in others]
    assert same == [not script(name).composed] * len(others)


def test_policies_that_exclude_each_other_make_no_kind() -> None:
    """What excludes what stands in Lua alone, where each of two names the other."""
    assert POLICIES["groups"].excludes == SCRIPTS.policy("groups").excludes != ()
    for name in POLICY_NAMES:
        for other in POLICIES[name].excludes:
            with pytest.raises(ExcludedPolicies, match="not both"):
                Kind.of([name, other])


ROOM = 60
"""Of the 200 local variables of a function of Lua so many are left in each script."""


@pytest.mark.parametrize("kind", [PLAIN, *kinds.GREATEST[:: examples(1, 1, brief=6)]], ids=str)
def test_scripts_of_kinds_with_many_policies_can_be_loaded_and_have_room(
    private_server: EmbeddedRedis, kind: Kind
) -> None:
    """Variables are short in the script itself, and in the steps that it is made of."""
    more = f"local {', '.join(f'room_{number}' for number in range(ROOM))}\n"
    with redis.Redis.from_url(private_server.url) as client:
        for name in NAMES:
            source = script(name, kind).source
            client.script_load(more + STEP.sub(lambda found: found[0] + more, source))


def test_the_page_of_kinds_says_which_go_together() -> None:
    """Else: `python -m tools.kind_table`."""
    text = kind_table.PAGE.read_text(encoding="utf-8")
    assert kind_table.table() in text
    assert kind_table.written(text) == text
    assert [name for name in POLICIES if f"`{name}`" not in text] == [*kind_table.INSIDE]


def test_the_table_in_the_readme_is_that_of_the_sources() -> None:
    """Else: `python -m tools.hook_table`."""
    text = hook_table.README.read_text(encoding="utf-8")
    assert hook_table.table() in text
    assert hook_table.written(text) == text


def test_a_plain_queue_sends_what_it_always_sent(private_server: EmbeddedRedis) -> None:
    """Else, where it is meant: `python -m tests.lua.plain_commands`."""
    with redis.Redis.from_url(private_server.url) as client:
        sent = plain_commands.sent(client, sound())
    assert sent == plain_commands.NOTED.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", [name for name in NAMES if script(name).composed])
def test_a_script_of_another_kind_says_so_and_changes_nothing(
    name: str, client: redis.Redis
) -> None:
    keys = plain_commands.KEYS
    client.hset(keys.meta, mapping={"v": "1 other levels", "seq": "7"})
    try:
        code = script(name)
        argv = ["x"] * len(code.header.argv) + ["y", "z"] * (code.header.rest is not None)
        if name == "enqueue":
            argv[:2] = ["0", "4,,0,1"]
        with pytest.raises(redis.ResponseError, match=r"^KIND 1 other levels$"):
            run(client, code, [keys.meta, keys.meta[:-4] + "guard"], argv)
        assert client.keys(keys.base + "*") == [keys.meta.encode()]
        assert client.hgetall(keys.meta) == {b"v": b"1 other levels", b"seq": b"7"}
    finally:
        client.delete(keys.meta)


def test_the_version_of_the_schema_comes_first(client: redis.Redis) -> None:
    keys = plain_commands.KEYS
    client.hset(keys.meta, "v", "2 other levels")
    try:
        with pytest.raises(redis.ResponseError, match=r"^SCHEMA"):
            run(client, script("pause"), [keys.meta, keys.meta[:-4] + "guard"])
    finally:
        client.delete(keys.meta)
