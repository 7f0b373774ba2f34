"""A context of the process that fits in several threads share."""

import os
import threading


class Shared:
    """The first user enters the context that ``make`` returns, and the last one leaves it. A child that is forked
    meanwhile leaves it too, since it has none of the threads that use it."""

    def __init__(self, make):
        self.make = make
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_in_child)

    def _begin(self):
        self.lock, self.users, self.context = threading.Lock(), 0, None

    def _leave_in_child(self):
        context = self.context if self.users else None
        self._begin()
        if context is not None:
            context.__exit__(None, None, None)

    def __enter__(self):
        with self.lock:
            if self.users == 0:
                self.context = self.make()
                self.value = self.context.__enter__()
            self.users += 1
            return self.value

    def __exit__(self, *error):
        with self.lock:
            if self.users == 0:  # in a child that was forked within the context
                return
            self.users -= 1
            if self.users == 0:
                self.context.__exit__(None, None, None)
