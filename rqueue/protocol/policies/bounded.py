"""Bounded: a queue with a greatest number of jobs that wait (Q-67, X-16); that of bytes is a policy
of its own."""

from rqueue.protocol.policies.policy import Policy

MOST_JOBS = 1_000_000_000
"""The greatest limit."""

POLICY = Policy(
    "bounded",
    options=(
        ("max_jobs", 0, MOST_JOBS),
        ("overflow", 0, 1),
        ("resume", 1, 100),
        ("count_held", 0, 1),
    ),
)
"""Its options: `max_jobs` 0 is no limit; `overflow`: whether producers wait for room (1) or are
refused; `resume`: percent of the limit to which the queue falls before they go on; `count_held`:
whether the limit counts jobs that consumers hold too."""
