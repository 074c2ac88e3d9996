"""Peers: other queues, each in an environment of its own and its recommended configuration."""
