"""What comes out: a table, a JSON, a plot."""
