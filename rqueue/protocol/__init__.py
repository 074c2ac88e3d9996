"""What is said to Redis and what its answers mean: calls, keys, credit, a consumer's state.

Opens no socket and starts no thread, so that clients, asyncio clients and workers share it. May
import `rqueue.tasks`, `rqueue.model`, `rqueue.settings` and what is below them.
"""
