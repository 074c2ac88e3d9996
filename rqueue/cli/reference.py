"""The commands as Markdown, for `docs/cli.md`: `python -m rqueue.cli.reference > docs/cli.md`."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator

import click

from rqueue.cli.root import COMMANDS, EPILOG, cli

INTRO = """# The command line

`rqueue` runs the workers, enqueues jobs, shows what is there and what became of it, and steers and
checks queues. `python -m rqueue` is the same. This page is made of the commands' own `--help`
(by `python -m rqueue.cli.reference`).

## Where the server is

`--url`, before or behind the command, or `RQUEUE_URL`. Without either, every command but `worker`
uses the development server of the current folder, if `rqueue dev` keeps one running there, and
otherwise says what to set. `--namespace` or `RQUEUE_NAMESPACE` chooses among several applications
in one Redis. Users and passwords stand in the URL (`redis://user:password@host:6379/0`) and are
never shown.

## Where the queue is named

A command that is about a queue has it as its first argument: `rqueue cron list reports`,
`rqueue limits set mail crm 2`. Those that find a job by its id need none, and look into one with
`--queue`; `rqueue enqueue` puts a call where `--queue` says.

## Output

On a terminal listings are tables. In a pipe they are aligned text: the same columns, one line per
entry, no colours. Times are ages (`3m 20s`).

With `--json` every listing is one JSON document, and a stream (`--all`, `history`, `stats --watch`)
is one JSON document per line. Times are ISO 8601 in UTC, or `null` for never; fields whose name
ends in `_ms` are durations. The `at` of a job's `errors` and `cause` is as it was stored: ms since
1970. Notes and errors go to stderr.

Destructive commands ask. `--yes` answers; where there is no terminal and no `--yes`, they refuse
with exit code 2 and change nothing.

## Exit codes

"""


def paragraphs(text: str) -> str:
    """Click's help as Markdown: paragraphs wrapped anew, what is marked as it is becomes code."""
    parts = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if part.lstrip().startswith("\b"):
            lines = part.replace("\b", "").strip("\n").splitlines()
            if lines and lines[0].strip() in ("Examples:", "Example:"):
                parts.append("```sh\n" + "\n".join(line.strip() for line in lines[1:]) + "\n```")
            else:
                parts.append("```text\n" + "\n".join(lines).strip("\n") + "\n```")
        else:
            parts.append(fill(escape(" ".join(part.split()))))
    return "\n\n".join(parts)


def fill(text: str) -> str:
    """A paragraph in lines as long as those of the other pages."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def escape(text: str) -> str:
    """Text in which Markdown finds no markup."""
    return re.sub(r"([<>*_`\[\]|])", r"\\\1", text)


def document(name: str, command: click.Command, parent: click.Context, depth: int) -> Iterator[str]:
    """One command, and those in it."""
    context = click.Context(command, info_name=name, parent=parent)
    yield f"{'#' * depth} {context.command_path}"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.command_path} {usage}\n```"
    yield paragraphs(command.help or "")
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if isinstance(parameter, click.Option) and record and "--help" not in parameter.opts:
            rows.append(f"| `{record[0]}` | {escape(record[1])} |")
    if rows:
        yield "\n".join(["| option | meaning |", "| --- | --- |", *rows])
    if command.epilog:
        yield paragraphs(command.epilog)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            if found is not None:
                yield from document(inner, found, context, depth + 1)


def reference() -> str:
    """The whole page."""
    root = click.Context(cli, info_name="rqueue", **cli.context_settings)
    codes = [
        f"| {code} | {meaning} |" for code, meaning in re.findall(r"^ +(\d+) +(.+)$", EPILOG, re.M)
    ]
    parts = [INTRO.strip(), "\n".join(["| code | meaning |", "| --- | --- |", *codes])]
    parts.append("`rqueue worker` has codes of its own, listed below.")
    section = ""
    for name, entry in COMMANDS.items():
        if entry.section != section:
            section = entry.section
            parts.append(f"## {section}")
        command = cli.get_command(root, name)
        assert command is not None
        parts += document(name, command, root, 3)
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    click.echo(reference(), nl=False)
