"""Findings of a fit about its input, before it samples, each with its cure; ``warning_texts.py`` has the texts."""

import numpy as np

from .._data.column_checks import missing_codes
from .._data.input_table import MATCH_BY_LABEL
from .._data.missing_genotypes import missing_genotypes
from .._data.spanned import spanned
from .._mcmc.prior import PER_CONTRAST
from .._utils.warn import fold_of
from .findings import are_bound
from .warning_texts import Finding

_SCALE_RATIO = 1e3  # largest ratio of the standard deviations of two columns
_ROUNDING_ERROR = 1e-3  # largest rounding error of a column, in its standard deviations
EVIDENCE = 2.0  # nats, which a noise column exceeds by chance with probability 1 in 7
_LIGHT_SHARE, _LIGHT_ROWS = 0.1, 20  # weights are light that sum to less than this share of rows, and to so few rows
_EXCESS = 1.5  # excess of the weights from which on intervals are too narrow to be of use: 90 % ones cover 82 %
_MANY, _EVENTS_EACH = 5, 5  # unpenalized columns that are many, if the rarest class has fewer rows for each
_LIGHT_CLASS = 1  # with less weight in the rarest class, weights are light even if their sum is above ``_LIGHT_ROWS``


def about_order(data):
    """The findings about the index labels of pandas tables, and an ordered y. data : ``Data``."""
    findings, order, classes = [], data.order, data.classes.tolist()
    for name in data.reordered:
        findings.append(Finding("order of rows", [], MATCH_BY_LABEL.format(name=name), {"name": name}))
    if order and len(classes) > 2 and not data.levels:
        cure = 'HorseshoeProbitClassifier(ordered=True) takes it (user guide, "Ordered classes").'
        findings.append(Finding("order not used", [], cure, {"order": " < ".join(map(repr, order[:9]))}))
    elif order and order != classes and not data.levels:
        facts = {"low": order[0], "high": order[1], "classes": classes}
        findings.append(Finding("order of classes", [], f"Labels y == {order[1]!r} keep the order.", facts))
    return findings


def before_sampling(params, data, rows, seen):
    """The findings to warn of before sampling: light weights, codes for missing values, dependent columns, and
    coefficients without a bound.

    data : ``Data``. seen : ``Inspected``.
    """
    one_sided, dependent_sets, names = seen.one_sided, seen.sets.dependent, seen.names
    n, size = data.shape[0], rows.size()
    rarest = size * (min(rows.share(), 1 - rows.share()) if rows.likelihood.n_predictors == 1 else rows.shares().min())
    findings = []
    if data.weighted_by and size < _LIGHT_SHARE * n and (size < _LIGHT_ROWS or rarest < _LIGHT_CLASS):
        facts = {"by": data.weighted_by, "rows": n, "size": size}
        findings.append(Finding("light weights", [], "", facts))
    if data.excess.times > _EXCESS:
        which = "class_weight" if "class_weight" in data.weighted_by else "sample_weight"
        cure = f"Divide sample_weight by {data.excess.times:.4g}; counts of identical rows are right as they are."
        if data.excess.by_class:
            cure = f"Leave {which} out, and where an event must not be missed act from a lower probability on."
        findings.append(Finding("heavy weights", [], cure, {"by": data.weighted_by, "times": data.excess.times**0.5}))
    sample = rows.sampled()
    for kind, codes in (("missing codes", missing_codes(sample)), ("missing genotypes", missing_genotypes(sample))):
        if codes:
            ((first, values), *_), places = codes, [j for j, _ in codes]
            facts = {"values": ", ".join(map(str, values)), "first": names[first]}
            cure = "If they are, make NaN of them and impute (SimpleImputer in a Pipeline), or drop these rows."
            findings.append(Finding(kind, names[places], cure, facts))
    findings += _about_unpenalized(rows, names, sample, rows.stood_for(sample, n), rarest)
    if dependent_sets:
        more = f" (one of {len(dependent_sets)} such sets)" if len(dependent_sets) > 1 else ""
        findings.append(Finding("dependent", names[dependent_sets[0].columns], "", {"more": more}))
    columns, sided = rows.columns, one_sided.columns
    slab = f"slab_scale={PER_CONTRAST!r}"
    if params.slab_scale is None and columns.n_shrunk > n:
        return [*findings, Finding("wide", [], f"{slab} bounds them.", {"p": rows.shape[1], "n": n})]
    bound = are_bound(params.slab_scale, one_sided, rows) & ~columns.wide[sided]
    unbounded = names[sided[(one_sided.evidence >= EVIDENCE) & ~bound]]
    if len(unbounded) and not fold_of():  # a search warns of it after the fit
        free = columns.unpenalized[sided].any()
        cure = f"{'If it is not unpenalized, ' if free else ''}{slab} bounds it."
        findings.append(Finding("one-sided first", unbounded, cure, {}))
    return findings


def _about_unpenalized(rows, names, sample, n, rarest):
    """The findings about columns with the wide prior: components of the shrunk ones, or many for the rarest class,
    whose rows are ``rarest``. n : number of the user's rows that the sample stands for."""
    columns, findings = rows.columns, []
    free, shrunk = np.flatnonzero(columns.unpenalized & columns.wide), np.flatnonzero(~columns.unpenalized)
    shrunk = shrunk[np.isfinite(columns.unit[shrunk])]
    if len(among := spanned(sample, free, shrunk, columns.unit, n)):
        findings.append(Finding("components", names[among], "", {}))
    if len(free) >= _MANY and rarest < _EVENTS_EACH * len(free):
        findings.append(Finding("many unpenalized", [], "", {"free": len(free), "rows": rarest}))
    return findings


def weights_in_words(data, size):
    """What the weights make of the rows, for the header of a summary; None without weights. size : their sum."""
    if not data.weighted_by:
        return None
    words = f"{data.weighted_by}: {data.shape[0]} rows count as {size:.6g}"
    if data.excess.times <= _EXCESS:
        return words
    unless = "" if data.excess.by_class else ", unless these are counts of identical rows"
    return f"{words}; intervals are about {data.excess.times**0.5:.2g} times too narrow{unless}"


def of_columns(rows, rounded, names, standardize):
    """The findings about scales of columns. rounded : as in ``OneSidedColumns``. names : of X's columns, an array."""
    findings, columns, dtype = [], rows.columns, np.promote_types(rows.dtype, np.float32)  # dtype of the passes
    distance = rows.distance.copy()
    distance[rounded] = 1 / np.finfo(np.float64).eps
    far = np.flatnonzero(np.finfo(dtype).eps * distance > _ROUNDING_ERROR)
    if len(far):
        cure = f"Subtract the means before you fit{', or give X as float64' if dtype == np.float32 else ''}."
        findings.append(Finding("far from zero", names[far], cure, {"distance": distance.max(), "dtype": dtype}))
    out, usual = rows.far_out()
    if len(out):
        at = np.argmax(rows.spread[out] / usual)
        facts = {"worst": names[out[at]], "spread": rows.spread[out[at]], "usual": usual[at]}
        cure = "Clip them, or use the column's logarithm or quantiles (QuantileTransformer)."
        findings.append(Finding("far out", names[out], cure, facts))
    shrunk = np.setdiff1d(np.flatnonzero((columns.sd_of_X > 0) & ~columns.unpenalized), out)  # under the same prior
    spread = columns.sd_of_X[shrunk] * columns.prior_scale[shrunk]
    if not standardize and len(shrunk) > 1 and spread.max() > _SCALE_RATIO * spread.min():
        small, large = (names[shrunk[at(spread)]] for at in (np.argmin, np.argmax))
        facts = {"large": large, "most": spread.max(), "small": small, "least": spread.min()}
        facts["times"] = ", times its prior_scale," if columns.has_own_scale[shrunk].any() else ""
        findings.append(Finding("scales", [], "", facts, {"standardize": True}))
    return findings
