"""The client for threads, made from `_async`. `rqueue` exports its public names."""
