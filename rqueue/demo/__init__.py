"""`rqueue demo`: the whole system on real input, with a worker killed half way, on one machine."""

from rqueue.demo.show import run

__all__ = ["run"]
