"""Numbers for an autoscaler, from a plan; and the rule for KEDA that holds them.

- A replica has `slots` workers. `most` replicas are what the busiest window needs (times the growth
  that is asked for), `least` what the quietest one needs.
- Jobs that wait, for each replica: with L jobs waiting and R replicas of s slots, the last of them
  waits about L·E[S]/(R·s); for that to be the target T, L/R = T·s/E[S]. An autoscaler with this
  target starts replicas as soon as the backlog would take longer than T.
- Jobs in the system (waiting and held), for each replica: by Little's law E[S]·λ are held and
  E[W]·λ wait when all goes as planned; divided by `most`. For rules on a metric that counts both.

The rule reads the length of the queue's ready lists, one for each level in use, straight from Redis
(KEDA's scaler `redis`), and needs no exporter. It counts waiting jobs only, so that `least` is what
keeps the wait short while nothing waits.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from rqueue.errors import ConfigError
from rqueue.keys import QueueKeys
from rqueue.pipeline.plan import Plan
from rqueue.pipeline.queueing import mean_wait, workers_for

__all__ = ["Scaling", "keda_yaml", "scaling"]


@dataclass(frozen=True, slots=True)
class Scaling:
    """Replicas at the least and the most, and the targets for each of them; see the module.

    `slots` workers in a replica; `polling_s`, `cooldown_s`: seconds between two looks, and of no
    work before replicas go."""

    queue: str
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
    workers = max(plan.by_load[growth], plan.workers if growth >= 1 else 0)
    most = math.ceil(workers / slots)
    share = min(1.0, plan.measured.quietest / load.erlangs)
    quiet = workers_for(load.times(share), goal.target, goal.quantile) if share > 0 else 0
    busy = load.times(growth)
    held = busy.rate * (busy.run + mean_wait(busy, workers))
    return Scaling(
        queue=plan.measured.queue,
        slots=slots,
        least=min(most, math.ceil(quiet / slots)),
        most=most,
        waiting=max(1, math.floor(goal.target * slots / load.run)),
        in_system=held / most,
        polling_s=max(1, min(30, math.floor(goal.target / 2))),
        cooldown_s=max(60, round(plan.measured.window_s)),
    )


def keda_yaml(
    plan: Plan,
    numbers: Scaling,
    *,
    address: str = "redis:6379",
    database: int = 0,
    namespace: str = "rqueue",
    cluster: bool = False,
) -> str:
    """A ScaledObject of KEDA for these numbers. `address`: host:port of Redis, or of a node of a
    cluster, without credentials: KEDA takes those from a TriggerAuthentication."""
    keys = QueueKeys(plan.measured.queue, namespace)
    goal = plan.goal
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in plan.measured.queue.lower())
    lines = [
        f"# {100 * goal.quantile:g} % of the waits within {goal.target:g} s:"
        f" {plan.workers} workers, {numbers.slots} in a replica.",
        "apiVersion: keda.sh/v1alpha1",
        "kind: ScaledObject",
        "metadata:",
        f"  name: {_text('rqueue-' + (name.strip('-') or 'queue'))}",
        "spec:",
        "  scaleTargetRef:",
        f"    name: {_text('rqueue-workers')}  # the Deployment of this queue's workers",
        f"  minReplicaCount: {numbers.least}",
        f"  maxReplicaCount: {numbers.most}",
        f"  pollingInterval: {numbers.polling_s}",
        f"  cooldownPeriod: {numbers.cooldown_s}",
        "  advanced:",
        "    horizontalPodAutoscalerConfig:",
        "      behavior:",
        "        scaleUp:",
        "          stabilizationWindowSeconds: 0",
        "        scaleDown:",
        f"          stabilizationWindowSeconds: {min(numbers.cooldown_s, 3600)}",
        "  triggers:",
    ]
    if cluster:
        kind, place = "redis-cluster", [f"        addresses: {_text(address)}"]
    else:
        kind = "redis"
        place = [f"        address: {_text(address)}", f'        databaseIndex: "{database}"']
    for level in plan.measured.levels:
        lines += [
            f"    - type: {kind}",
            "      metadata:",
            *place,
            f"        listName: {_text(keys.ready(level))}",
            f'        listLength: "{numbers.waiting}"  # waiting jobs for each replica',
            '        activationListLength: "0"',
        ]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """A text as YAML, which JSON's are."""
    return json.dumps(text, ensure_ascii=False)
