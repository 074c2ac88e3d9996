"""Floors: what bare Redis and CPython do, without rqueue or with its scripts alone."""
