"""How fast rqueue is, as ratios to what bare Redis and CPython do, and to its peers.

`python -m benchmarks --help`; `docs/performance.md` says what every row means.
"""
