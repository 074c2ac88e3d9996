"""The client for threads. `rqueue` exports its public names."""
