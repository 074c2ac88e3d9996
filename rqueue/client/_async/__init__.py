"""The client for asyncio, from which `_sync` is made. `rqueue` exports its public names."""
