"""The tasks and programs inside the workers that are measured."""
