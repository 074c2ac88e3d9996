"""One small file for each peer; run in its own environment, see `benchmarks.peers.adapter`."""
