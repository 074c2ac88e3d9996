"""The group itself: light, documented, and the same everywhere."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from rqueue.cli import cli
from rqueue.cli.exit_codes import (
    INTERRUPTED,
    MISSING,
    NEGATIVE,
    NOT_FOUND,
    NOT_YET,
    OK,
    SERVER,
    USAGE,
)
from rqueue.cli.reference import reference
from rqueue.cli.root import COMMANDS, EPILOG
from tests.support.command_line import program

DOCS = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
HEAVY = (
    "rich",
    "redis",
    "rqueue_workers",
    "rqueue.inspector",
    "rqueue.demo",
    "rqueue.embedded.server",
)

PROGRAM = """
import json, sys
sys.argv = ["rqueue", *sys.argv[1:]]
from rqueue.cli import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def commands(group: click.Group = cli, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        yield (*above, name)
        if isinstance(found, click.Group):
            yield from commands(found, (*above, name))


def find(path: tuple[str, ...]) -> click.Command:
    found: click.Command = cli
    for name in path:
        assert isinstance(found, click.Group)
        inner = found.get_command(click.Context(found), name)
        assert inner is not None
        found = inner
    return found


PATHS = sorted(commands())
LEAVES = [path for path in PATHS if not isinstance(find(path), click.Group)]


def loaded(*args: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *args], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stderr.splitlines()[-1]))


@pytest.mark.parametrize("args", [["--help"], ["worker", "--help"], ["jobs", "--help"]])
def test_help_loads_nothing_heavy(args: list[str]) -> None:
    before = set(json.loads(_modules_of_the_package()))
    assert [name for name in loaded(*args) - before if name.split(".")[0] in HEAVY] == []
    assert not {"rich", "rqueue_workers", "rqueue.inspector"} & loaded(*args)


def _modules_of_the_package() -> str:
    """What `import rqueue` itself brings along is the package's affair."""
    program = "import json, sys, rqueue; print(json.dumps(sorted(sys.modules)))"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout


def test_the_group_s_help_says_what_the_commands_say() -> None:
    for name, entry in COMMANDS.items():
        said = (find((name,)).help or "").partition("\n")[0]
        assert said.strip() == entry.help, name


def test_the_documentation_is_that_of_the_commands() -> None:
    assert DOCS.read_text(encoding="utf-8") == reference(), (
        "docs/cli.md is old: python -m rqueue.cli.reference > docs/cli.md"
    )


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_every_command_is_documented_with_its_options(path: tuple[str, ...]) -> None:
    text = DOCS.read_text(encoding="utf-8")
    head = f"{'#' * (2 + len(path))} rqueue {' '.join(path)}\n"
    assert text.count(head) == 1
    section = text[text.index(head) + len(head) :].split("\n### ")[0]
    for parameter in find(path).params:
        for name in parameter.opts if isinstance(parameter, click.Option) else ():
            assert f"`{name}" in section or f", {name}" in section, name


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_help_teaches(path: tuple[str, ...]) -> None:
    found = find(path)
    assert found.help and len(found.help.split()) > 10
    if path != ("demo",):
        assert "rqueue " + " ".join(path) in found.help, "an example"
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_that_meets_a_server_takes_a_url_and_gives_json(
    path: tuple[str, ...],
) -> None:
    options = {name for parameter in find(path).params for name in parameter.opts}
    if path not in {("demo",), ("dev",)}:
        assert {"--url", "--namespace"} <= options
    if path not in {("demo",), ("worker",)}:
        assert "--json" in options


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_a_queue_is_named_in_one_way(path: tuple[str, ...]) -> None:
    """First, where the command is about a queue, as all are that stand in groups; by an option
    where a job is found by its id, or a task says where its calls go."""
    found = find(path)
    options = {name for one in found.params for name in one.opts if isinstance(one, click.Option)}
    arguments = [str(one.name) for one in found.params if isinstance(one, click.Argument)]
    if path[0] == "pipeline":
        return  # of any number of queues
    if "--queue" in options:
        assert len(path) == 1 and arguments[0] in ("id", "ids", "task")
    elif len(path) > 1:
        assert arguments[0] == "queue"


DESTRUCTIVE = {
    ("copy",),  # of dead letters: they run again
    ("move",),
    ("expire",),
    ("cancel",),
    ("purge",),
    ("delete",),
    ("dead", "purge"),
    ("dead", "requeue"),
    ("shards", "forget"),
    ("doctor",),
    ("pipeline", "replay"),
}


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_destructive_commands_ask(path: tuple[str, ...]) -> None:
    options = {name for parameter in find(path).params for name in parameter.opts}
    assert ("--yes" in options) == (path in DESTRUCTIVE)


def test_exit_codes_are_listed() -> None:
    listed = {int(code) for code in re.findall(r"^ +(\d+) ", EPILOG, re.M)}
    assert listed == {*(OK, NEGATIVE, USAGE, NOT_FOUND, SERVER, NOT_YET, MISSING, INTERRUPTED)}


def test_help_and_version(run: Callable[..., Result]) -> None:
    said = run("--help", url=None).output
    assert "Exit codes:" in said
    assert all(name in said for name in COMMANDS)
    assert run("--version", url=None).output.startswith("rqueue 0.")
    assert run("-h", url=None).output == said
    assert "list, requeue" in run("dead", "--help").output.lower()


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("quues", "No such command 'quues'. Did you mean 'queues' or 'enqueue'?"),
        ("wroker app", "Did you mean 'worker'?"),
        ("dead lst", "Did you mean 'list'?"),
        ("pipeline reprot", "Did you mean 'report'?"),
        ("list", "Did you mean 'queues', or 'jobs QUEUE'?"),
        ("retry x", "Did you mean 'dead requeue QUEUE [ID]...'?"),
        ("xyzzy", "No such command 'xyzzy'."),
        ("queues --jsn", "No such option '--jsn'. Did you mean '--json'?"),
        ("doctor -q mail", "The queue stands without an option here: rqueue doctor QUEUE"),
        ("jobs --queue mail", "The queue stands without an option here: rqueue jobs QUEUE"),
        ("move -q a b", "The queue stands without an option here: rqueue move QUEUE"),
        ("cron list -q mail", "The queue stands without an option here: rqueue cron list QUEUE"),
        ("show j1 mail", "The queue is named by an option here: rqueue show -q QUEUE"),
        ("archive lake", "Did you mean 'pipeline archive'?"),
        ("report", "Did you mean 'pipeline report'?"),
        ("pipeline report lake", "by options here: rqueue pipeline report --lake FOLDER -q QUEUE"),
        ("worker -A app", "Modules are arguments here: rqueue worker app.tasks"),
        ("worker app --concurrency 4", "Did you mean --processes, or --threads?"),
        ("worker app --limit 1m", "'--time-limit'"),
        ("worker app --soft-limit 1m", "'--soft-time-limit'"),
        ("enqueue app.t --limit 1m", "'--time-limit'"),
        ("enqueue app.t --delay 10m", "It is called --in: rqueue enqueue TASK --in 10m"),
        ("enqueue app.t -5", "Numbers below zero stand at the end, behind '--'"),
        ("enqueue app.t -55.5", "behind '--': rqueue enqueue ... -- -1"),
        ("enqueue app.t -.5", "behind '--': rqueue enqueue ... -- -1"),
    ],
)
def test_wrong_usage_says_what_was_meant(run: Callable[..., Result], line: str, hint: str) -> None:
    said = run(*line.split(), code=2).stderr.splitlines()[-1]
    # click's own words, which have had quotes only since 8.2
    assert re.sub("['.:]", "", hint) in re.sub("['.:]", "", said)
    assert said.count("Did you mean") <= 1


def test_an_argument_that_begins_like_json_must_be_json(run: Callable[..., Result]) -> None:
    for broken in ('{"a": 1', "[1, 2", '"x'):
        said = run("enqueue", "app.t", broken, code=2).stderr
        assert "begins like JSON and is none" in said
        assert "--text" in said


@pytest.mark.parametrize("words", ["", "dead", "pipeline"])
def test_a_group_alone_prints_its_help(words: str) -> None:
    done = program(*words.split())
    said = done.stdout + done.stderr
    assert said.startswith(f"Usage: rqueue {words}".rstrip())
    assert "\n\n" in said and r"\n" not in said and "Error" not in said
