"""Groups: of the jobs of one group one is in flight at a time, in their order."""

from rqueue.protocol.policies.policy import Policy

POLICY = Policy("groups")
