"""The output of commands: tables for people, aligned text for pipes, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import click
import orjson

from rqueue.text.escape import escaped, escaped_json

F = TypeVar("F", bound=Callable[..., Any])


def json_option(command: F) -> F:
    """Add --json."""
    decorate: Callable[[F], F] = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON instead, with ISO times."
    )
    return decorate(command)


def yes_option(command: F) -> F:
    """Add --yes."""
    decorate: Callable[[F], F] = click.option(
        "--yes", "-y", is_flag=True, help="Do not ask. Needed where there is no terminal."
    )
    return decorate(command)


# Text from jobs and Redis shall steer no terminal: only these three functions print.


def echo(
    line: str = "", *, err: bool = False, bold: bool = False, head: str = "", color: str = ""
) -> None:
    """One line of text. `head`: a word before it that stands out, in a `color`."""
    text = escaped(line)
    before = click.style(head, bold=True, fg=color or None) if head else ""
    click.echo(before + (click.style(text, bold=True) if bold else text), err=err)


def print_json(document: Any, *, indent: bool | None = None) -> None:
    """One JSON document: indented for a terminal (or if asked for), one line for a pipe."""
    option = orjson.OPT_INDENT_2 if indent or (indent is None and sys.stdout.isatty()) else 0
    click.echo(escaped_json(orjson.dumps(document, option=option | orjson.OPT_NON_STR_KEYS)))


def print_line(document: Any) -> None:
    """One line of JSON of a stream."""
    click.echo(escaped_json(orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)))
    sys.stdout.flush()


# -- values ----------------------------------------------------------------------------------------


def iso(ms: float) -> str | None:
    """ISO 8601 in UTC of ms since the epoch, with ms; None for 0, which means never."""
    if not ms:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def clock(ms: float) -> str:
    """The local time of day, for people; the date too where it is another day."""
    if not ms:
        return ""
    when = datetime.fromtimestamp(ms / 1000).astimezone()
    today = datetime.now().astimezone().date()
    return when.strftime("%H:%M:%S" if when.date() == today else "%Y-%m-%d %H:%M:%S")


def span(ms: float) -> str:
    """A time for people: 0.4ms, 250ms, 3.2s, 45s, 3m 20s, 2h 5m, 3d 4h."""
    if ms < 0:
        return f"-{span(-ms)}"
    if ms < 10 and ms != int(ms):
        return f"{ms:.1f}ms"
    if ms < 1000:
        return f"{ms:.0f}ms"
    seconds = ms / 1000
    if seconds < 10:
        return f"{seconds:.1f}s"
    if round(seconds) < 60:
        return f"{seconds:.0f}s"
    whole = round(seconds)
    for size, unit, smaller, name in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "m"),
        (60, "m", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit} {rest}{name}" if rest else f"{whole // size}{unit}"
    return f"{whole}s"


def age(ms: float, now: float) -> str:
    """How long ago, for people; "in 5s" for what is to come; "" for never."""
    if not ms:
        return ""
    return span(now - ms) if now >= ms else f"in {span(ms - now)}"


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.0f}{unit}" if unit == "B" or count >= 10 else f"{count:.1f}{unit}"
        count /= 1024
    return f"{count:.1f}TB"


def rate(per_second: float) -> str:
    """A rate for people."""
    if per_second and abs(per_second) < 10:
        return f"{per_second:.1f}/s"
    return f"{per_second:,.0f}/s"


def shorten(text: str, width: int) -> str:
    """One line of at most `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


# -- tables ----------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column: its head, and whether it holds numbers (aligned to the right)."""

    head: str
    right: bool = False


def print_table(
    columns: Sequence[Column], rows: Iterable[Sequence[object]], *, empty: str = "nothing"
) -> None:
    """A table: by rich on a terminal, as aligned text otherwise. `empty` is said of no rows."""
    cells = [[_plain(value) for value in row] for row in rows]
    if not cells:
        echo(empty, err=not sys.stdout.isatty())
        return
    widths = [
        max(len(column.head), *(len(row[i]) for row in cells)) for i, column in enumerate(columns)
    ]
    if sys.stdout.isatty():
        screen = console()
        narrowest = sum(
            2 + (width if column.right else min(width, 12))
            for column, width in zip(columns, widths, strict=True)
        )
        if narrowest <= screen.width:
            screen.print(rich_table(columns, cells))
            return
        heads = [column.head for column in columns]
        for number, row in enumerate(cells):
            # too narrow for a table: below each other
            if number:
                echo()
            print_facts(dict(zip(heads, row, strict=True)))
        return
    for line in ([column.head for column in columns], *cells):
        parts = [
            text.rjust(width) if column.right else text.ljust(width)
            for text, width, column in zip(line, widths, columns, strict=True)
        ]
        echo("  ".join(parts).rstrip())


def rich_table(columns: Sequence[Column], cells: Iterable[Sequence[object]]) -> Any:
    """The table as rich draws it."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = [[_plain(value) for value in row] for row in cells]
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=True,
        header_style="bold",
    )
    for i, column in enumerate(columns):
        # numbers are never cut; words may be folded, down to some width
        widest = max((len(row[i]) for row in rows), default=0)
        table.add_column(
            column.head,
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=column.right,
            min_width=max(len(column.head), min(widest, 12)),
        )
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def console() -> Any:
    """Rich's console on stdout."""
    from rich.console import Console

    return Console(highlight=False)


def print_facts(facts: Mapping[str, object], *, indent: str = "") -> None:
    """Names and values below each other; empty values are left out."""
    shown = {name: _plain(value) for name, value in facts.items() if _plain(value)}
    width = max((len(name) for name in shown), default=0)
    for name, value in shown.items():
        click.echo(f"{indent}{click.style(name.ljust(width), bold=True)}  {value}")


def _plain(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 100_000 else str(value)
    return escaped(str(value))
