"""`rqueue limits`: how many jobs that name a limit run at a time, or in a time."""

from __future__ import annotations

from difflib import get_close_matches

import click

from rqueue.cli.failures import say
from rqueue.cli.filled import filled
from rqueue.cli.output import Column, echo, iso, json_option, print_json, print_table
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.model.job_limit import JobLimit
from rqueue.protocol.commands.limits import LimitInfo

_KEY = click.option("--key", type=filled, metavar="KEY", help="Of this key; *: of all keys.")


@click.group(no_args_is_help=True)
def limits() -> None:
    """Show and set limits and rates of jobs.

    A task names its limits: @task(limit=Concurrency(5, key="tenant")), or Rate(100, per="1m"). What
    is set here goes before that, until it is reset.
    """


@limits.command("list")
@click.argument("queue")
@json_option
@connection_options
@pass_target
def list_(target: Target, /, queue: str, as_json: bool) -> None:
    """List a queue's limits.

    'out' are jobs that may be taken or run, of a rate the tokens of those that may be taken;
    'waiting' those that wait for a permit, or tokens. 'most' is what was set here; without it each
    job says how many. 'next' says when the first that waits for a rate gets its tokens.

    \b
    Example:
      rqueue limits list mail
    """  # noqa: D301
    with target.queue(queue) as (client, inspector):
        inspector.require_queue(queue)
        found = client.limits.list()
    if as_json:
        print_json([one._asdict() for one in found])
        return
    print_table(
        [
            Column("kind"),
            Column("limit"),
            Column("key"),
            Column("most", right=True),
            Column("out", right=True),
            Column("waiting", right=True),
            Column("next"),
        ],
        [
            (
                "rate" if one.rate else "limit",
                *(one.name, one.key, _allowed(one), one.out, one.waiting),
                iso(one.next_ms) or "",
            )
            for one in found
        ],
        empty=f"no limits in queue '{queue}'",
    )


def _allowed(limit: LimitInfo) -> str:
    if limit.most is None:
        return ""
    return JobLimit(limit.name, limit.most, "", limit.per_ms, limit.burst).allows


@limits.command("set")
@click.argument("queue")
@click.argument("name")
@click.argument("most")
@click.option("--burst", metavar="N", type=int, help="Of a rate: so many at once; default MOST.")
@_KEY
@json_option
@connection_options
@pass_target
def set_(
    target: Target,
    /,
    queue: str,
    name: str,
    most: str,
    burst: int | None,
    key: str | None,
    as_json: bool,
) -> None:
    """Let a limit allow MOST jobs at a time, or a rate, 100/1m, in a time; 0: none.

    What runs goes on where the limit is lower; jobs that wait get their permits at once where it is
    higher.

    \b
    Examples:
      rqueue limits set mail crm 2
      rqueue limits set mail crm 20 --key acme
      rqueue limits set mail crm 5 --key '*'
      rqueue limits set mail crm 100/1m --burst 10
    """  # noqa: D301
    from rqueue.errors import UnknownQueue

    number, slash, per = most.partition("/")
    if not number.isdecimal():
        raise click.BadParameter(f"{most!r} is no number, nor like 100/1m", param_hint="MOST")
    with target.queue(queue) as (client, inspector):
        try:
            inspector.part(queue)
        except UnknownQueue:
            known = None
        else:
            known = client.limits.list()
        client.limits.set(name, int(number), per=per if slash else None, burst=burst, key=key or "")
    _say(as_json, queue, name, key, most if slash else int(number))
    if doubt := _doubt(known, queue, name, number, rate=bool(slash), keyed=key is not None):
        say(doubt)


def _doubt(
    known: list[LimitInfo] | None, queue: str, name: str, number: str, *, rate: bool, keyed: bool
) -> str:
    """What is probably a mistake in what was set; "" if nothing is."""
    if known is None:
        return f"there is no queue '{queue}' yet: what is set is for the jobs that come"
    same = [one.rate for one in known if one.name == name]
    if rate in same:
        kin = [bool(one.key) for one in known if one.name == name and one.rate == rate]
        if keyed or not all(kin):
            return ""
        return f"'{name}' has keys here, whose numbers stay: --key '*' is for all of them"
    if same:
        return (
            f"'{name}' is a limit here, of jobs at a time: write {number}"
            if rate
            else f"'{name}' is a rate here: write {number}/1m"
        )
    near = get_close_matches(name, {one.name for one in known}, 1)
    hint = f"did you mean '{near[0]}'?" if near else "what is set is for those that come"
    return f"no job in queue '{queue}' names a limit '{name}' now: {hint}"


@limits.command()
@click.argument("queue")
@click.argument("name")
@_KEY
@json_option
@connection_options
@pass_target
def reset(target: Target, /, queue: str, name: str, key: str | None, as_json: bool) -> None:
    """Forget what was set for a limit, and for the rate of that name: jobs say how many.

    \b
    Example:
      rqueue limits reset mail crm --key acme
    """  # noqa: D301
    with target.queue(queue) as (client, inspector):
        inspector.require_queue(queue)
        client.limits.reset(name, key=key or "")
    _say(as_json, queue, name, key, None)


def _say(as_json: bool, queue: str, name: str, key: str | None, most: str | int | None) -> None:
    if as_json:
        print_json({"queue": queue, "limit": name, "key": key or "", "most": most})
        return
    of = f"limit '{name}' of key '{key}'" if key else f"limit '{name}'"
    says = "allows what its jobs say" if most is None else f"allows {most}"
    echo(f"{of} in queue '{queue}' {says}")
