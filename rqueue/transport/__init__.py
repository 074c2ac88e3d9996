"""The only sockets: connections, waiting for wake-ups, renewing leases, Sentinels, TLS.

Written twice, for threads and for asyncio, as that is what differs. May import `rqueue.protocol`
and what is below it.
"""
