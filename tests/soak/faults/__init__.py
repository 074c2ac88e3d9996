"""The faults that a soak injects, by what they hit; `catalogue` lists them all."""
