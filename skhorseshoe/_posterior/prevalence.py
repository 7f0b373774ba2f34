"""The model of a population with another share of events than the rows of a fit."""

from copy import copy

from .claim_errors import check_share
from .classes import has_classes, needs_two
from .grouped_prediction import is_grouped


def with_share(model, share):
    """See ``inspection.with_prevalence``, of a classifier."""
    if has_classes(model):
        raise needs_two(model, "with_prevalence")
    if is_grouped(model):
        raise ValueError(
            "with_prevalence takes no model that was fitted with groups: rows that are drawn by their label hide how "
            "groups differ. Draw whole groups, or fit without groups one row of each."
        )
    if hasattr(model, "_derived") and not hasattr(model, "_odds_factor"):
        raise ValueError(f"This is the model {model._derived}: with_prevalence takes one that was fitted.")
    share, in_fit, label = check_share("share", share), model._fitted_rows["share"], model.classes_.tolist()[1]
    corrected = copy(model)
    corrected._odds_factor = float(share / (1 - share) * (1 - in_fit) / in_fit)
    corrected._derived = f"of a population in which a share of {share:g} is {label!r}, {in_fit:.3g} in the fit"
    corrected._saved_run = None
    return corrected
