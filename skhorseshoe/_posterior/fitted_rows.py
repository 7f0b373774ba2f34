"""Check that rows are those of the fit, by number, weights and moments, with its labels, offsets and groups."""

import numpy as np
from scipy.sparse import issparse

from .._backends import device
from .._data.factors import called
from .._data.row_pairs import facts_beside, times_label
from .._utils.names import names_of, plain
from .._utils.warn import warn
from .grouped_prediction import by_factor

_CLOSE = 1e-5  # relative difference of means and standard deviations: rounding to float32 is less, other rows are more
_CURE = (
    "For the log score of other rows take sklearn.metrics.log_loss(y, model.predict_proba(X)). sample_weight must be "
    "the weights of the fit, times its class weights, in the order of X."
)
_CROSS_FITTED = (
    " (If a TargetEncoder made it: transform gives other values than fit_transform gave in the fit: fit the classifier "
    "on what fit_transform gives, and ask it with these rows)"
)
_BY_CLASS = (
    " (The fit had class_weight={!r:.80}: multiply sample_weight, or 1 without any, by "
    "sklearn.utils.class_weight.compute_sample_weight(class_weight, y))"
)
_SIZES = (
    "Sizes of terms with several columns are by these rows, those of single columns by the rows of the fit, so they do "
    "not compare."
)
_REORDERED = (
    "The rows are those that the model was fitted on, but not what goes with each: in the fit y, the weights, the "
    "offset or the groups went with other rows of X. Give all of them in one order; with pandas, y.loc[X.index] is y "
    "in that of X."
)


def check_fitted_on(model, rows, place, weight):
    """Raise a ValueError unless ``GivenRows``, places of labels (n,) and weights (n,) or None are those of the fit,
    in any order that they have in common."""
    of_fit, X, offset = model._fitted_rows, rows.X, rows.offset
    if offset is not None and offset.ndim > 1:
        offset = offset @ model._likelihood_of_fit.contrasts.T
    counts = np.ones(len(place)) if weight is None else weight
    total, y = float(counts.sum()), place.astype(np.uint8)
    if why := _other_number(model, counts):
        _refuse(why)
    if not np.isclose(ones := counts @ (y > 0) / total, share := of_fit["share"], rtol=_CLOSE):
        which = f"{model.classes_.tolist()[1]!r}" if len(model.classes_) == 2 else "classes above the lowest"
        _refuse(f"the share of {which} among them is {ones:.4g}, and was {share:.4g} in the fit{_hint(model)}")
    if rows.codes is not None:
        _check_labels(model, rows.codes, counts)
    beside = {"offset": offset, "groups": rows.codes}
    beside = {name: values for name, values in beside.items() if of_fit.get(name) is not None}  # older models lack some
    given, paired = facts_beside(y, counts, **beside)
    for name in beside:
        _check_facts(name, given[name], of_fit[name])
    paired = times_label(counts if paired is None else paired, y)
    moments, (paired_means, _) = _moments(X, weight, paired)
    if why := _other_moments(model, *moments):
        _refuse(why)
    if (np.abs(paired_means - of_fit.get("paired_means", paired_means)) > _near(model)).any():  # older models lack it
        raise ValueError(_REORDERED)


def warn_of_other_rows(model, X, weight, so=_SIZES):
    """Warn if rows X (n, p) with weights (n,), (0,) or None are not those of the fit. so : what follows, a sentence."""
    counts = np.ones(X.shape[0]) if weight is None or not len(weight) else weight
    if why := _other_number(model, counts) or _other_moments(model, *_moments(X, weight)[0]):
        warn(f"X and sample_weight must be those of the fit, and these are others: {why}. {so}")


def warn_of_seen_rows(model, X, counts):
    """Warn if rows with counts (n,), as ``predict_proba`` takes them, are those of the fit."""
    counts = counts.astype(np.float64)
    if not (_other_number(model, counts) or _other_moments(model, *_moments(model._check_rows(X), counts)[0])):
        warn(
            "These are the rows that the model was fitted on. Its probabilities suit them better than rows that it has "
            "not seen: to judge it, hold rows out of the fit, as by train_test_split."
        )


def _other_number(model, counts):
    """What tells rows with these weights (n,) from those of the fit, in words; or None."""
    of_fit = model._fitted_rows
    if (n_rows := int((counts > 0).sum())) != of_fit["n"]:
        return f"{n_rows} rows, and the fit had {of_fit['n']}"
    if not np.isclose(total := float(counts.sum()), size := of_fit["size"], rtol=_CLOSE):
        return f"they count as {total:.6g} by their weights, and in the fit as {size:.6g}{_hint(model)}"
    return None


def _moments(X, weight, *others):
    """The means and variances (p,) of the columns, where X is: with weights (n,) or None, and with each of others."""
    ops, name, _ = device.resolve(device.device_for("auto", X) if device.on_gpu(X) else "cpu", sparse=issparse(X))
    with ops.using(name):
        X, _, weight = ops.hold(X, np.zeros(X.shape[0], np.uint8), np.empty(0) if weight is None else weight)
        weights = weight, *map(ops.to_device, others)
        return [tuple(map(ops.to_host, ops.moments(X, each))) for each in weights]


def _other_moments(model, mean, variance):
    """The same of the columns, by their means and variances (p,)."""
    sd = np.sqrt(np.maximum(variance, 0))
    differs = np.abs(mean - model._column_means) + np.abs(sd - model._column_sd) > _near(model)
    if not differs.any():
        return None
    name, one, other = names_of(model)[j := int(np.argmax(differs))], mean[j], model._column_means[j]
    what = "mean"
    if f"{one:.6g}" == f"{other:.6g}":
        what, one, other = "standard deviation", sd[j], model._column_sd[j]
    return f"the {what} of {name!r} is {one:.6g}, and was {other:.6g} in the fit{_hint(model, _CROSS_FITTED)}"


def _hint(model, otherwise=""):
    """What may make the rows others: the weights of classes, if the fit had them."""
    class_weight = model._fit_facts["class_weight"]
    return otherwise if class_weight is None else _BY_CLASS.format(class_weight)


def _near(model):
    """Differences (p,) of means that rounding explains."""
    return _CLOSE * (model._column_sd + np.abs(model._column_means))


def _check_labels(model, codes, counts):
    """Raise a ValueError unless rows that count have the labels of the fit, all of these and no others."""
    for (name, labels), own in zip(by_factor(model, "groups_").items(), codes.T, strict=True):
        unknown, left = np.flatnonzero((own < 0) & (counts > 0)), np.setdiff1d(np.arange(len(labels)), own[counts > 0])
        if len(unknown) or len(left):
            why = f"no row has {plain(labels[left[0]])!r}" if len(left) else f"that of row {unknown[0]} is new"
            raise ValueError(f"{called(name)} must be those of the fit, a label for each row: {why}.")


def _check_facts(name, given, of_fit):
    """Raise a ValueError unless facts of ``facts_beside`` are those of the fit."""
    differs = np.abs(given - of_fit) > _CLOSE * (of_fit[1] + np.abs(of_fit[0]))
    if name == "offset" and differs[:2].any():
        mean, sd = (f"{a:.6g}, in the fit {b:.6g}" for a, b in zip(given[:2], of_fit[:2], strict=True))
        raise ValueError(
            "The offset must be that of the fit, with the weights that it had there, and this is another: its mean is "
            f"{mean}; its standard deviation is {sd}."
        )
    if differs.any():
        raise ValueError(_REORDERED)


def _refuse(why):
    raise ValueError(f"The rows must be those that the model was fitted on, and these are others: {why}. {_CURE}")
