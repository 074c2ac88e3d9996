"""All pages: marked blocks run as they are written, and each command that prose names exists."""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import click
import pytest

from rqueue.cli import cli
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.tasks.registry import registry
from tests.client.test_documents import worker
from tests.support.pages import DOCS

RUN = "<!-- run -->\n```python\n"
PAGES = [DOCS.parent / "README.md", DOCS.parent / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
NAMES = [str(page.relative_to(DOCS.parent)) for page in PAGES]
MARKED = [name for name, page in zip(NAMES, PAGES, strict=True) if RUN in page.read_text()]


@pytest.mark.parametrize("name", MARKED)
def test_marked_blocks_run(
    name: str, no_defaults: Any, private_server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other in one program, beside workers of the queues that pages enqueue into."""
    monkeypatch.setenv("RQUEUE_URL", private_server.url)
    monkeypatch.setattr(registry, "_tasks", {})
    text = (DOCS.parent / name).read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "page"}
    with (
        Queue("default", private_server.url) as queue,
        worker(queue),
        worker(queue.at("crawl")),
    ):
        for before, block in _cut(text):
            code = "\n" * before.count("\n") + block
            exec(compile(code, name, "exec"), names)


def _cut(text: str) -> Iterator[tuple[str, str]]:
    """Each marked block, and the text before it."""
    at = 0
    while (found := text.find(RUN, at)) >= 0:
        start = found + len(RUN)
        at = text.index("```", start)
        yield text[:start], text[start:at]


SPAN = re.compile(r"`((?:[A-Z_]+=\S+ )*rqueue [^`\n]+)`|^\$ ((?:[A-Z_]+=\S+ )*rqueue .+)$", re.M)
LINE = re.compile(r"^(?:\$ )?(rqueue [a-z].*)$", re.M)
OF_A_SHELL = re.compile(r"\s*(?:\||&&|;|>|<|&$|  #|\$\().*")


def commands_in(text: str) -> Iterator[str]:
    """The command lines of a page, in its prose and in its blocks for a shell."""
    for found in SPAN.finditer(text):
        yield found[1] or found[2]
    for block in re.findall(r"^```(?:console|sh|bash|shell)\n(.*?)^```", text, re.M | re.S):
        yield from LINE.findall(block.replace("\\\n", " "))


def wrong_with(line: str) -> str:
    """Why the command line cannot be one; "" if it can."""
    bare = re.sub(r"'[^']*'?|\"[^\"]*\"?", "quoted", line)
    words = OF_A_SHELL.sub("", bare).split()
    words = words[words.index("rqueue") + 1 :]
    command: click.Command = cli
    context = click.Context(cli, info_name="rqueue")
    known = {"--help", "--version"}
    for word in takewhile(lambda word: word != "--", words):
        if word.startswith("-"):
            known.update(
                option for one in command.params for option in (*one.opts, *one.secondary_opts)
            )
            option = word.partition("=")[0]
            short = re.fullmatch(r"-[a-z]", option[:2]) is not None and option[:2] in known
            if (option.startswith("--") and option not in known) or not (short or option in known):
                return f"{' '.join([*context.command_path.split()])} has no {option}"
        elif isinstance(command, click.Group):
            found = command.get_command(context, word)
            if found is None:
                # a word of prose such as NAME, or several commands: `rqueue queues|stats`
                return f"no command '{word}'" if re.fullmatch(r"[a-z][a-z-]*", word) else ""
            known.update(
                option for one in command.params for option in (*one.opts, *one.secondary_opts)
            )
            context = click.Context(found, parent=context, info_name=word)
            command = found
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_named_commands_exist(name: str) -> None:
    text = (DOCS.parent / name).read_text(encoding="utf-8")
    wrong = {line: said for line in commands_in(text) if (said := wrong_with(line))}
    assert wrong == {}


def test_a_command_that_is_not_there_is_found() -> None:
    assert wrong_with("rqueue pipeline compact") == "no command 'compact'"
    assert wrong_with("rqueue queues --colour") == "rqueue queues has no --colour"
    assert wrong_with("rqueue worker app.tasks mail --processes 4 | tee log") == ""
    text = "`rqueue nothing`\n```console\n$ rqueue nowhere\n```\n"
    assert [wrong_with(line) for line in commands_in(text)][:2] == [
        "no command 'nothing'", "no command 'nowhere'",
    ]  # fmt: skip
