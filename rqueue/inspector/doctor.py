"""Doctor."""


class Doctor:
    """Doctor."""

    def __init__(self, *a: object, **k: object) -> None: ...
