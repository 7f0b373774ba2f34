"""A context that many fits at once are in, and that belongs to the process."""

import os
import threading


class Shared:
    """The first user enters the context that ``make`` gives, the last one leaves it."""

    def __init__(self, make):
        self.make = make
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self):
        self.lock, self.users, self.context = threading.Lock(), 0, None

    def __enter__(self):
        with self.lock:
            if self.users == 0:
                self.context = self.make()
                self.context.__enter__()
            self.users += 1

    def __exit__(self, *error):
        with self.lock:
            self.users -= 1
            if self.users == 0:
                self.context.__exit__(None, None, None)
