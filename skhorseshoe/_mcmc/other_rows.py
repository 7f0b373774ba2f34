"""Rows as some chains see them."""


class OtherRows:
    """What stands before ``rows``. What a class does not have is theirs, and what it has is as of ``Rows``, unless it
    says otherwise."""

    def __init__(self, rows):
        self.rows = rows

    def __getattr__(self, name):
        return getattr(self.rows, name)

    @property
    def quick(self):
        return self
