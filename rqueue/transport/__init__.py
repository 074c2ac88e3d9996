"""The only sockets: connections, waiting for wake-ups, renewing leases, Sentinels, TLS.

Written twice, for threads and for asyncio, as that is what differs. The two of a pair have the same
methods, so that `rqueue.client._sync` can be made from `rqueue.client._async`:

| for threads | for asyncio | |
| --- | --- | --- |
| `thread_connections` | `task_connections` | the calls: run, run_then, begin, finish, close |
| `put_thread` | `put_task` | the engine of background puts: put, wait, finished, close |
| `connection` | `async_connection` | one connection |
| `wake_listener` | `async_wake_listener` | blocks on wake lists |
| `lease_renewer` | `async_lease_renewer` | renews a consumer's lease |

May import `rqueue.protocol` and what is below it.
"""
