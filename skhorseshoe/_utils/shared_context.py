"""A context that many fits at once are in, and that belongs to the process."""

import os
import threading


class Shared:
    """The first user enters the context that ``make`` gives, the last one leaves it, and so does a child that is forked
    meanwhile: none of the threads that use it is in there."""

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
            if self.users == 0:  # forked by a user, in a child that goes on with what that one was doing
                return
            self.users -= 1
            if self.users == 0:
                self.context.__exit__(None, None, None)
