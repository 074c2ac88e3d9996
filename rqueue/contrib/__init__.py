"""Integrations, each an extra of its own: of web frameworks (`rqueue[django]`, `rqueue[flask]`,
`rqueue[fastapi]`), of databases (`rqueue[sqlalchemy]`), and of what watches jobs
(`rqueue[sentry]`, `rqueue[opentelemetry]`).

May import all of rqueue, and nothing imports them: what a web process loads of them loads no
command line, and no worker.
"""
