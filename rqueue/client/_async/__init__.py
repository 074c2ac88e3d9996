"""The client for asyncio. `rqueue` exports its public names."""
