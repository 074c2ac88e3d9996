"""The plan: how many workers a queue needs, measured, simulated and drawn."""
