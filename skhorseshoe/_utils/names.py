"""Names of features."""

from collections import Counter
from collections.abc import Hashable
from difflib import get_close_matches
from numbers import Integral


def names_of(model):
    """Names of the features, x0, x1, ... where the data had none."""
    given = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if given is None else list(given)


def shorten(name, letters):
    """A name without its middle, where it has more letters than these."""
    tail = (letters - 1) // 2
    return name if len(name) <= letters else f"{name[: letters - 1 - tail]}…{name[len(name) - tail :]}"


def finder(known, things, otherwise="", numbered=False):
    """A function (name, where) that gives the index of a name among the known ones; a ValueError if it is not one.

    things : what is known, in words; where : what has the name. otherwise : the cure if no known name is similar.
    numbered : whether a number stands for the thing at its place, as in a list.
    """
    index, times, n = {name: j for j, name in enumerate(known)}, Counter(known), len(known)

    def find(name, where):
        if not isinstance(name, Hashable) or name not in index:
            is_number = numbered and isinstance(name, Integral) and not isinstance(name, bool)
            if is_number and -n <= name < n:
                return int(name) % n
            near = get_close_matches(str(name), map(str, known), n=3)
            hint = f" Did you mean {', '.join(map(repr, near))}?" if near else otherwise
            raise ValueError(f"{where}: there is no {name!r} among the {n} {things}.{hint}")
        if times[name] > 1:
            raise ValueError(f"{where}: {times[name]} {things} are called {name!r}. Rename them, or leave it out.")
        return index[name]

    return find
