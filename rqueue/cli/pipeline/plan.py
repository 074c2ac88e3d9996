"""`rqueue pipeline plan`: how many workers hold a wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rqueue.cli.exit_codes import Failure
from rqueue.cli.output import (
    Column,
    echo,
    iso,
    json_option,
    print_facts,
    print_json,
    print_table,
    rate,
    span,
)
from rqueue.cli.pipeline.history_options import (
    cluster_option,
    history_table,
    lake_option,
    queue_option,
    range_options,
    spark_options,
)
from rqueue.cli.pipeline.inputs import check_output, write_output
from rqueue.cli.pipeline.meter import Meter
from rqueue.cli.target import Target, connection_options, pass_target
from rqueue.text.numbers import many

if TYPE_CHECKING:
    from rqueue.pipeline.plan.keda import Scaling
    from rqueue.pipeline.plan.plan import Plan, Point, Simulated


@click.command()
@click.option(
    "--target",
    "goal",
    default="5s",
    show_default=True,
    metavar="DURATION",
    help="The wait that is to hold.",
)
@click.option(
    "--percentile", default=95.0, show_default=True, metavar="P", help="For so many % of the jobs."
)
@queue_option
@lake_option
@range_options
@click.option(
    "--window",
    default="10m",
    show_default=True,
    metavar="DURATION",
    help="The busiest stretch of this length is what counts.",
)
@click.option(
    "--growth", default=1.0, show_default=True, metavar="X", help="Plan for X times the load."
)
@click.option(
    "--slots", default=1, show_default=True, metavar="N", help="Workers in one replica (pod)."
)
@click.option("--plot", metavar="FILE", help="Write the plot there, as SVG.")
@click.option("--keda", is_flag=True, help="Print a KEDA rule (YAML) and nothing else.")
@click.option(
    "--repetitions",
    default=50,
    show_default=True,
    metavar="N",
    help="Simulations of each set of parameters.",
)
@click.option(
    "--jobs", default=20_000, show_default=True, metavar="N", help="Jobs of one simulation."
)
@click.option("--seed", default=1, show_default=True, metavar="N", help="Of the random numbers.")
@cluster_option
@spark_options
@json_option
@connection_options
@pass_target
def plan(
    target: Target,
    /,
    goal: str,
    percentile: float,
    queues: tuple[str, ...],
    lake: str | None,
    since: str | None,
    until: str | None,
    window: str,
    growth: float,
    slots: int,
    plot: str | None,
    keda: bool,
    repetitions: int,
    jobs: int,
    seed: int,
    cluster: bool,
    master: str | None,
    conf: tuple[str, ...],
    as_json: bool,
) -> None:
    """Find how many workers hold a wait.

    Measures arrivals and run times in the history that Redis keeps, or in a lake, and takes the
    busiest window of it. A queueing model (Allen-Cunneen) proposes a number of workers; a
    simulation of thousands of parameter sets, run in Spark, decides. A worker is a slot that runs
    one job at a time. Prints the numbers for an autoscaler too.

    Queues that the same workers served are planned together: one pool, one answer. With the workers
    that there were the model has to say what was measured; where it says something else (workers
    that crash, a pool that was held up by something else), the plan says that it is not to be
    trusted, the exit code is 1, and --keda prints no rule.

    \b
    Examples:
      rqueue pipeline plan --queue mail --target 5s
      rqueue pipeline plan --lake /data/lake --from 7d --target 30s --slots 8 --plot plan.svg
      rqueue pipeline plan --queue mail --target 5s --growth 1.5 --slots 4 --keda > mail.yaml
    """  # noqa: D301
    from rqueue.model.times import parse_duration

    seconds = parse_duration(goal, "target")
    width = parse_duration(window, "window")
    if slots < 1:
        raise click.UsageError("--slots is at least 1")
    if keda and as_json:
        raise click.UsageError("--keda or --json, not both")
    check_output(plot, "--plot")
    from rqueue.pipeline.plan.plan import LOADS, Goal

    wanted = Goal(
        seconds,
        percentile / 100,
        repetitions,
        jobs,
        seed,
        tuple(sorted({*LOADS, growth})),
    )
    # of all queues: some may share their workers with those that are asked for
    with history_table(target, cluster, lake, since, until, master, conf) as (
        spark,
        history,
        lacking,
    ):
        from rqueue.pipeline.plan.plan import plan as make

        with Meter("parameter sets", quiet=as_json or keda) as meter:
            plans = make(
                spark,
                history,
                wanted,
                window_s=width,
                queues=queues,
                progress=lambda _queue, done, total: meter.update(done, total),
            )
    from rqueue.pipeline.plan.keda import scaling

    planned = {queue for one in plans for queue in one.measured.queues}
    for gap in lacking:
        if gap.queue in planned:
            echo(f"warning: {gap}", err=True)
    numbers = [scaling(one, slots=slots, growth=growth) for one in plans]
    if plot is not None:
        from rqueue.pipeline.plan.plot import plan_svg

        write_output(plot, plan_svg(plans))
    doubtful = [one for one in plans if not one.trusted]
    if keda and doubtful:
        pass
    elif keda:
        click.echo("---\n".join(rules(target, cluster, plans, numbers)), nl=False)
    elif as_json:
        print_json([document(*pair) for pair in zip(plans, numbers, strict=True)])
    else:
        for index, pair in enumerate(zip(plans, numbers, strict=True)):
            if index:
                echo()
            _show(*pair, growth)
    if doubtful:
        raise Failure(
            "; ".join(f"{contradiction(one)}: do not trust this plan" for one in doubtful)
        )


def contradiction(one: Plan) -> str:
    """The model's figures for the past, and the past's own."""
    found = one.check
    assert found is not None
    return (
        f"queues {one.measured.name}: with the {many(found.slots, 'worker')} there were the model"
        f" says p{one.goal.quantile * 100:g} of the wait was {span(found.model_s * 1000)}, measured"
        f" was {span(found.measured_s * 1000)}"
    )


def rules(target: Target, cluster: bool, plans: list[Plan], numbers: list[Scaling]) -> list[str]:
    """A KEDA rule for each plan, for the server of the command line where there is one."""
    from urllib.parse import urlsplit

    from rqueue.model.server_url import cluster_url, is_cluster_url
    from rqueue.pipeline.plan.keda import keda_yaml, kubernetes_name
    from rqueue.settings import Settings

    settings = Settings.load(url=target.url, namespace=target.namespace)
    of_cluster = is_cluster_url(settings.url or "")
    where: dict[str, Any] = {"namespace": settings.namespace, "cluster": cluster or of_cluster}
    parts = urlsplit(settings.url or "")
    if of_cluster:
        where["address"] = ",".join(f"{h}:{p}" for h, p in cluster_url(settings.url or "").nodes)
    elif parts.hostname:
        where["address"] = f"{parts.hostname}:{parts.port or 6379}"
        where["database"] = int(parts.path.strip("/") or 0)
    found = []
    for one, its in zip(plans, numbers, strict=True):
        if len(plans) > 1:  # a Deployment for each pool
            where["deployment"] = f"rqueue-workers-{kubernetes_name(one.measured.queues)}"
        found.append(keda_yaml(one, its, **where))
    return found


def document(one: Plan, numbers: Scaling) -> dict[str, Any]:
    """A plan as JSON."""
    measured, load = one.measured, one.measured.load
    return {
        "queues": list(measured.queues),
        "trusted": one.trusted,
        "check": None
        if one.check is None
        else {
            "workers": one.check.slots,
            "model_wait_ms": _ms(one.check.model_s),
            "measured_wait_ms": _ms(one.check.measured_s),
        },
        "target_ms": _ms(one.goal.target),
        "percentile": round(one.goal.quantile * 100, 3),
        "workers": one.workers,
        "workers_of_model": one.model_workers,
        "busy": round(one.busy, 4),
        "measured": {
            "from": iso(measured.first_ms),
            "to": iso(measured.last_ms),
            "runs": measured.visits,
            "jobs": measured.jobs,
            "untimed": measured.untimed,
            "wait_ms": _ms(measured.wait_s),
            "average_erlangs": round(measured.average, 4),
            "quietest_erlangs": round(measured.quietest, 4),
            "busiest": {
                "from": iso(measured.busiest_ms),
                "seconds": round(measured.window_s, 3),
                "rate_per_s": round(load.rate, 4),
                "run_ms": _ms(load.run),
                "arrivals_cv2": round(load.arrivals_cv2, 4),
                "runs_cv2": round(load.runs_cv2, 4),
                "erlangs": round(load.erlangs, 4),
            },
        },
        "workers_by_load": {f"{load:g}": workers for load, workers in one.by_load.items()},
        "simulated_sets": one.sets,
        "error_of_model": None if one.error is None else round(one.error, 4),
        "points": [_point(point) for point in one.points],
        "scaling": {
            "slots": numbers.slots,
            "min_replicas": numbers.least,
            "max_replicas": numbers.most,
            "waiting_jobs_per_replica": numbers.waiting,
            "jobs_in_system_per_replica": round(numbers.in_system, 3),
            "polling_s": numbers.polling_s,
            "cooldown_s": numbers.cooldown_s,
        },
    }


def _point(point: Point) -> dict[str, Any]:
    def simulated(one: Simulated | None) -> dict[str, float | None] | None:
        if one is None:
            return None
        return {"wait_ms": _ms(one.wait), "margin_ms": _ms(one.margin)}

    return {
        "load": point.load,
        "workers": point.workers,
        "busy": round(point.busy, 4),
        "model_ms": _ms(point.model),
        "fitted": simulated(point.fitted),
        "measured": simulated(point.measured),
    }


def _ms(seconds: float) -> float | None:
    return None if seconds == float("inf") else round(seconds * 1000, 3)


def _show(one: Plan, numbers: Scaling, growth: float) -> None:
    measured, load = one.measured, one.measured.load
    share = f"p{one.goal.quantile * 100:g}"
    queues = f"{'queues' if len(measured.queues) > 1 else 'queue'} {measured.name}"
    echo(
        f"{queues}: {many(one.workers, 'worker')} {'holds' if one.workers == 1 else 'hold'} {share}"
        f" of the wait within {span(one.goal.target * 1000)}"
        + (f"; {one.by_load[growth]} at {growth:g} times the load" if growth != 1 else "")
    )
    print_facts(
        {
            "measured": f"{many(measured.visits, 'run')} of {many(measured.jobs, 'job')} from"
            f" {iso(measured.first_ms)} to {iso(measured.last_ms)},"
            f" {share} of the wait {span(measured.wait_s * 1000)}",
            "busiest window": f"{span(measured.window_s * 1000)} from {iso(measured.busiest_ms)}",
            "arrivals": f"{rate(load.rate)}, ca² {load.arrivals_cv2:.2f} (1 = at random, more ="
            " bursts)",
            "runs": f"{span(load.run * 1000)} on average, cs² {load.runs_cv2:.2f}",
            "load": f"{load.erlangs:.2f} workers busy on average; {measured.average:.2f} over the"
            f" whole range, {measured.quietest:.2f} in the quietest window",
            "check": _checked(one),
            "left out": f"{many(measured.untimed, 'run')} of unknown length"
            if measured.untimed
            else "",
            "model": f"{many(one.model_workers, 'worker')}"
            + ("" if one.error is None else f"; its waits are {one.error:.0%} off (median)"),
            "simulation": f"{many(one.sets, 'parameter set')} of {one.goal.jobs:,} jobs",
        },
        indent="  ",
    )
    columns = [
        Column("workers", True),
        Column("busy", True),
        Column("model", True),
        Column("simulated", True),
        Column("with measured arrivals", True),
        Column("holds"),
    ]
    print_table(
        columns,
        [
            (
                point.workers,
                f"{point.busy:.0%}",
                "never" if point.model == float("inf") else span(point.model * 1000),
                _with_margin(point.fitted),
                _with_margin(point.measured),
                point.holds(one.goal.target),
            )
            for point in one.curve()
        ],
    )
    echo(
        "workers at the load times "
        + ", ".join(f"{load:g}: {workers}" for load, workers in one.by_load.items())
    )
    echo(
        f"autoscaler ({many(numbers.slots, 'worker')} a replica): {numbers.least} to"
        f" {many(numbers.most, 'replica')}, target {many(numbers.waiting, 'waiting job')} or"
        f" {numbers.in_system:.1f} jobs in the system for each; the rule: --keda"
    )


def _checked(one: Plan) -> str:
    if one.check is None:
        return "none: history does not say which workers there were"
    return (
        f"with the {many(one.check.slots, 'worker')} there were, {span(one.check.model_s * 1000)}"
        f" says the model, {span(one.check.measured_s * 1000)} was measured"
    )


def _with_margin(one: Simulated | None) -> str:
    return "" if one is None else f"{span(one.wait * 1000)} ± {span(one.margin * 1000)}"
