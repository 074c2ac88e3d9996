"""Integrations of web frameworks, each an extra of its own (`rqueue[django]`, `rqueue[flask]`,
`rqueue[fastapi]`).

May import all of rqueue, and nothing imports them: what a web process loads of them loads no
command line, and no worker.
"""
