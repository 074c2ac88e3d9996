"""`python -m tests.soak`: run a soak; exit code 0 right, 1 wrong, 2 usage."""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from tests.soak.faults.catalogue import CATALOGUE, select
from tests.soak.field import LEASE_S, RATE
from tests.soak.report import as_json, print_report
from tests.soak.scenarios import SCENARIOS
from tests.soak.scenarios import choose as choose_scenarios
from tests.soak.servers import choose
from tests.soak.soak import Soak
from tests.support.redis_server import MissingServer, binaries


def main() -> int:
    """Run a soak; its exit code."""
    options = _parser().parse_args()
    # so that a signal that ends it leaves no process behind
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console(stderr=options.json)
    try:
        binary = choose(options.server)
        faults = select(_names(options.faults), _names(options.without))
        scenarios = choose_scenarios(_names(options.scenarios))
    except (MissingServer, ValueError) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    soak = Soak(
        binary,
        folder,
        options.minutes * 60,
        seed,
        faults,
        scenarios,
        rate=options.rate,
        pressure=options.pressure,
        lease=options.lease,
    )
    console.print(f"seed {seed}, records and logs in {folder}", highlight=False)
    verdict, evidence = soak.run(lambda said: console.print(said, highlight=False))
    about = {"server": str(binary), "seed": seed, "minutes": options.minutes, "folder": str(folder)}
    if options.json:
        print(as_json(verdict, evidence, about))
    else:
        print_report(console, verdict, evidence, about)
    return 0 if verdict.right else 1


def _names(given: str) -> list[str]:
    return [name for name in given.split(",") if name]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description="Real pools, producers and consumers on a real Redis, faults all the time, "
        "and a verdict by records kept outside Redis.",
        epilog=f"servers here: {', '.join(sorted(binaries()))}. scenarios: "
        f"{', '.join(SCENARIOS)}. faults: {', '.join(CATALOGUE)}",
    )
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of the schedule; default: a new one")
    parser.add_argument("--server", default="newest", help="a name, or a path")
    parser.add_argument(
        "--faults", default="", help="a,b=2,net-: only these, with weights; a- is a prefix"
    )
    parser.add_argument("--without", default="", help="a,b-: all but these")
    parser.add_argument("--scenarios", default="", help="a,b: only these; default: all")
    parser.add_argument("--rate", type=float, default=RATE, help="jobs a second and producer")
    parser.add_argument("--pressure", type=float, default=1.0, help="factor of the faults' rate")
    parser.add_argument("--lease", type=float, default=LEASE_S, help="seconds")
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
