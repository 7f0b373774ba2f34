"""What a fit is given, checked: rows, labels, and what goes with each row."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_consistent_length

from .._data.factors import Factors, check_factors, encode_factors
from .._data.input_table import example_for_fit, is_dask, read_X, refuse_dask, reordered
from .._data.labels import in_order, levels_of, order_of
from .._data.row_groups import check_offset
from .._data.slopes import with_slopes
from .._data.validation import check_y, numbers
from .._data.weights import Excess, is_whole, is_wide, rows_that_count, weigh
from .._model import likelihood_of
from .._model.multinomial_probit import simplex
from .._utils.names import names_of
from . import parameters

_FACTS_ABOUT_COLUMNS = "n_features_in_", "feature_names_in_", "_column_labels"


class RowArguments(NamedTuple):
    """What is given beside X, as a user has it: an entry for each row, or None."""

    y: Any
    sample_weight: Any
    groups: Any
    offset: Any


class Data(NamedTuple):
    """Checked rows and labels, in memory or on a cluster."""

    columns: dict  # attributes of a fitted model about the columns: their number, and names if there are any
    unpenalized: np.ndarray  # (p,) bool
    prior_scale: np.ndarray  # (p,), of ``scales_of_prior``
    weighted_by: str  # in words, "" if the rows have no weights
    reordered: list  # arguments with the index labels of X in another order
    order: list  # labels of y in the order that its type says; empty if it says none
    levels: list  # the classes from lowest to highest, if these are more than two
    shape: tuple  # of X
    classes: np.ndarray
    excess: Excess  # of the weights
    # X, y as 0 and 1, weights, codes of groups (of several factors of combinations) and offsets, the last three or
    # None; None on a cluster.
    rows: tuple | None = None
    whole_weights: bool = True  # whether rows can be repeated in place of their weights
    expansion: float = 1.0  # row count after that, as a multiple
    more_columns: bool = False  # whether X has clearly more columns than rows
    groups: Factors | None = None
    has_offset: bool = False
    original_X: Any = None  # X before the checks, which may have made a copy
    open_on_cluster: Any = None  # function that returns a context with ``DaskRows``, see ``dask_input.prepare``

    @property
    def outnumber(self):
        """Whether X has more columns than rows that were observed."""
        return self.shape[1] > self.excess.observed

    @property
    def extras(self):
        """Which of groups and offset rows have, in words."""
        has = {"groups": self.groups is not None, "offset": self.has_offset}
        return " and ".join(name for name in has if has[name])

    @property
    def known(self):
        """Attributes of a fitted model that the data tell."""
        groups = {} if self.groups is None else {"groups_": self.groups.as_attribute}
        offset = {"_has_offset": True} if self.has_offset else {}
        ordered = {"ordered_classes_": np.array(self.levels, self.classes.dtype)} if self.levels else {}
        return {**self.columns, "classes_": self.classes, **ordered, **groups, **offset}

    def likelihood(self, of_two):
        """The likelihood of these classes. of_two : that of two classes."""
        return likelihood_of(of_two, len(self.classes), bool(self.levels))


def checked(model, params, X, by_row):
    """``Data``; a ValueError, TypeError or MemoryError that names what cannot be used. ``model`` stays as it is."""
    y, sample_weight, groups, offset = by_row
    if groups is None and params.group_slopes is not None:
        raise ValueError(f"group_slopes is {params.group_slopes!r:.80}, and fit has no groups: give groups=, by name.")
    in_another_order = [*reordered(X, by_row._asdict())]
    learner = object.__new__(type(model))  # scikit-learn's checks write to an estimator
    own = {name: value for name, value in vars(model).items() if name not in _FACTS_ABOUT_COLUMNS}
    vars(learner).update(own | vars(params))
    is_on_cluster = is_dask(X, *by_row)
    if is_on_cluster:
        refuse_dask(X, groups=groups, offset=offset)
        rows = example_for_fit(X)
    else:
        rows, y = X, check_y(learner, y)
    table = read_X(rows)
    values = numbers(table, learner, reset=True)
    if is_on_cluster:
        from .._data.dask_input import prepare  # imports Dask

        facts, levels = prepare(learner, X, y, sample_weight, values.dtype)
        facts["whole_weights"] = sample_weight is None and params.class_weight is None
    else:
        levels = levels_of(params.ordered, by_row.y, y)
        facts = {**_in_memory(values, y, by_row, params, levels, names_of(learner)), "original_X": X}
    by = [] if params.class_weight is None else [f"class_weight={params.class_weight!r}"]
    by += [] if sample_weight is None else ["sample_weight"]
    columns = {name: getattr(learner, name) for name in _FACTS_ABOUT_COLUMNS if hasattr(learner, name)}
    unpenalized = parameters.column_mask(params.unpenalized, names := names_of(learner))
    prior_scale = parameters.scales_of_prior(params.prior_scale, names, unpenalized)
    order = in_order(levels or order_of(getattr(by_row.y, "_meta", by_row.y)) or (), facts["classes"])
    held = order if levels and len(order) > 2 else []
    return Data(columns, unpenalized, prior_scale, " and ".join(by), in_another_order, order, held, **facts)


def _in_memory(X, y, by_row, params, levels, names):
    """The facts of ``Data`` about rows in memory or on disk, whose numbers and labels are checked."""
    check_consistent_length(X, y)
    labels = {} if by_row.groups is None else check_factors(by_row.groups, len(y), params.group_slopes is not None)
    n = len(y)
    counts, y, weight, classes, excess = weigh(y, by_row.sample_weight, params.class_weight, levels)
    offset = None
    if by_row.offset is not None:
        has_utilities = len(classes) > 2 and not levels
        offset = check_offset(by_row.offset, n, classes if has_utilities else ())
        offset = offset @ simplex(len(classes)).T if has_utilities else offset
    X, offset, *by_factor = rows_that_count(counts, X, offset, *labels.values())
    groups, codes, whole = None, None, is_whole(weight)
    if labels:
        has_slopes = params.group_slopes is not None
        groups, codes = encode_factors(dict(zip(labels, by_factor, strict=True)), weight, has_slopes)
        groups = groups._replace(scale=parameters.scales_of_groups(params.group_scale, groups.labels))
        groups = with_slopes(groups, params.group_slopes, X, codes, names) if has_slopes else groups
    facts = {"shape": X.shape, "classes": classes, "excess": excess, "groups": groups, "has_offset": offset is not None}
    facts |= {"whole_weights": whole, "expansion": 1 if weight is None or not whole else weight.sum() / len(weight)}
    return {**facts, "more_columns": is_wide(X, weight), "rows": (X, y, weight, codes, offset)}
