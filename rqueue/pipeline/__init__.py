"""The data pipeline on Spark: archive, report, replay, plan and load, as plain functions.

`rqueue pipeline` calls them; one's own Spark jobs may too. Nothing here knows the command line.
"""
