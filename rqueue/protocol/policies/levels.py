"""Levels: a job of a higher priority goes first, jobs of one level in order of position."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("levels", options=(("priorities", 1, 10),))
