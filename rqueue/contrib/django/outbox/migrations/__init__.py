"""The tables of the outbox."""
