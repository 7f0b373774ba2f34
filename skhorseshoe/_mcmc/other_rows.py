"""Rows as some chains see them."""


class OtherRows:
    """Stands before ``rows``: what a class does not have is theirs, and its methods are as of ``Rows``."""

    def __init__(self, rows):
        self.rows = rows

    def __getattr__(self, name):
        return getattr(self.rows, name)

    @property
    def quick(self):
        return self
