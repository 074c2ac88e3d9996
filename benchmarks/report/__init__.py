"""Results: a table, a JSON, a plot."""
