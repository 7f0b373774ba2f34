"""Names of features."""

from difflib import get_close_matches


def names_of(model):
    """Names of the features, x0, x1, ... where the data had none."""
    given = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(model.n_features_in_)] if given is None else list(given)


def did_you_mean(name, known):
    """A sentence with the names that are like one that is not known; nothing if none is."""
    near = get_close_matches(str(name), map(str, known), n=3)
    return f" Did you mean {', '.join(map(repr, near))}?" if near else ""
