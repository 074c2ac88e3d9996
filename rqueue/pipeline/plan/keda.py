"""Numbers for an autoscaler, from a plan; and the rule for KEDA that holds them.

- A replica has `slots` workers. `most` replicas are what the busiest window needs (times the growth
  that is asked for), `least` what the quietest one needs, and never none: jobs that become due
  later (delays, retries) are made ready only by consumers that wait for jobs.
- Jobs in the system (ready and held), for each replica: by Little's law E[S]·λ are held and E[W]·λ
  wait when all goes as planned, before as many replicas as that takes; the smallest of the loads
  that were planned for, so that there are enough at each of them. An autoscaler with this target
  has as many replicas as the plan says.
- Jobs that wait, for each replica: with L jobs waiting and R replicas of s slots, the last of them
  waits about L·E[S]/(R·s); for that to be the target T, L/R = T·s/E[S]. For rules of one's own.

The rule reads three lengths of each queue straight from Redis (KEDA's scaler `redis`, which takes
hashes and sorted sets for lists), and needs no exporter: all jobs, less dead letters, less those of
the schedule, are the ready and the held ones. KEDA takes the largest of several triggers; its
formula adds them up to one number. A replica with a long job is not taken away for want of waiting
ones, for held ones count. One rule is for one Deployment, and for all queues that it serves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rqueue.errors import ConfigError
from rqueue.pipeline.plan.plan import Plan
from rqueue.pipeline.plan.queueing import mean_wait, workers_for
from rqueue.protocol.keys import QueueKeys

__all__ = ["Scaling", "keda_yaml", "kubernetes_name", "scaling"]


@dataclass(frozen=True, slots=True)
class Scaling:
    """Replicas at the least and the most, and the targets for each of them; see the module.

    `slots` workers in a replica; `polling_s`, `cooldown_s`: seconds between two looks, and of no
    work before replicas go."""

    slots: int
    least: int
    most: int
    waiting: int
    in_system: float
    polling_s: int
    cooldown_s: int


def scaling(plan: Plan, *, slots: int = 1, growth: float = 1.0) -> Scaling:
    """The numbers for replicas of `slots` workers each; growth: how many times the measured load is
    to be held. Raises ConfigError for a growth that the plan does not answer for."""
    if slots < 1:
        raise ConfigError("slots", f"{slots} workers in a replica are not at least one")
    if growth not in plan.by_load:
        known = ", ".join(f"{load:g}" for load in plan.by_load)
        raise ConfigError("growth", f"{growth:g} is not one of those simulated: {known}")
    load, goal = plan.measured.load, plan.goal
    most = math.ceil(plan.by_load[growth] / slots)
    share = min(1.0, plan.measured.quietest / load.erlangs)
    quiet = workers_for(load.times(share), goal.target, goal.quantile) if share > 0 else 0
    return Scaling(
        slots=slots,
        least=max(1, min(most, math.ceil(quiet / slots))),
        most=most,
        waiting=max(1, math.floor(goal.target * slots / load.run)),
        in_system=min(_in_system(plan, one, slots) for one in plan.by_load if one <= growth),
        polling_s=max(1, min(30, math.floor(goal.target / 2))),
        cooldown_s=max(60, round(plan.measured.window_s)),
    )


def _in_system(plan: Plan, times: float, slots: int) -> float:
    """Jobs in the system for each replica at a multiple of the load, when all goes as planned."""
    load, workers = plan.measured.load.times(times), plan.by_load[times]
    return load.rate * (load.run + mean_wait(load, workers)) / math.ceil(workers / slots)


def keda_yaml(
    plan: Plan,
    numbers: Scaling,
    *,
    address: str = "redis:6379",
    database: int = 0,
    namespace: str = "rqueue",
    cluster: bool = False,
    deployment: str = "rqueue-workers",
) -> str:
    """A ScaledObject of KEDA for these numbers. `address`: host:port of Redis, or of a node of a
    cluster, without credentials: KEDA takes those from a TriggerAuthentication. `deployment`: whose
    replicas serve these queues; a Deployment may have one ScaledObject only."""
    queues, goal = plan.measured.queues, plan.goal
    if cluster:
        kind, place = "redis-cluster", [f"        addresses: {_text(address)}"]
    else:
        kind = "redis"
        place = [f"        address: {_text(address)}", f'        databaseIndex: "{database}"']
    triggers, counts = [], []
    for number, queue in enumerate(queues):
        keys = QueueKeys(queue, namespace)
        for what, key in (("jobs", keys.jobs), ("dead", keys.dead), ("later", keys.scheduled)):
            triggers += [
                f"    - type: {kind}",
                f"      name: {what}_{number}",
                "      metadata:",
                *place,
                f"        listName: {_text(key)}",
                f'        listLength: "1"  # of {_text(queue)}; the formula decides',
            ]
        counts.append(f"jobs_{number} - dead_{number} - later_{number}")
    lines = [
        f"# {100 * goal.quantile:g} % of the waits within {goal.target:g} s:"
        f" {plan.workers} workers, {numbers.slots} in a replica, for {_text(', '.join(queues))}.",
        "apiVersion: keda.sh/v1alpha1",
        "kind: ScaledObject",
        "metadata:",
        f"  name: {_text('rqueue-' + kubernetes_name(queues))}",
        "spec:",
        "  scaleTargetRef:",
        f"    name: {_text(deployment)}  # the Deployment of these queues' workers, and of none"
        " else",
        f"  minReplicaCount: {numbers.least}  # never 0: a waiting worker makes due jobs ready",
        f"  maxReplicaCount: {numbers.most}",
        f"  pollingInterval: {numbers.polling_s}",
        f"  cooldownPeriod: {numbers.cooldown_s}",
        "  advanced:",
        "    scalingModifiers:",
        f'      target: "{numbers.in_system:.3g}"  # jobs ready and held, for each replica',
        f"      formula: {_text(' + '.join(counts))}",
        "    horizontalPodAutoscalerConfig:",
        "      behavior:",
        "        scaleUp:",
        "          stabilizationWindowSeconds: 0",
        "        scaleDown:",
        f"          stabilizationWindowSeconds: {min(numbers.cooldown_s, 3600)}",
        "  triggers:",
        *triggers,
    ]
    return "\n".join(lines) + "\n"


def kubernetes_name(queues: Sequence[str]) -> str:
    """Queues as a part of a name in Kubernetes."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in "-".join(queues).lower())
    return plain.strip("-")[:40].strip("-") or "queue"


def _text(text: str) -> str:
    """A text as YAML, which JSON's are."""
    return json.dumps(text, ensure_ascii=False)
