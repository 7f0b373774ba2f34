"""Check that rows are those of the fit, by their number, weights and moments."""

import numpy as np
from scipy.sparse import issparse

from .._backends import device
from .._utils.names import names_of

_CLOSE = 1e-5  # relative difference of means and standard deviations: rounding to float32 is less, other rows are more
_CURE = (
    "For the log score of other rows take sklearn.metrics.log_loss(y, model.predict_proba(X)). sample_weight must be "
    "the weights of the fit, times its class weights."
)


def check_fitted_on(model, X, positive, weight):
    """Raise a ValueError unless X (n, p), labels positive (n,) bool and weights (n,) or None are those of the fit."""
    n, size, share = (model._fitted_rows[name] for name in ("n", "size", "share"))
    counts = np.ones(len(positive)) if weight is None else weight
    total = float(counts.sum())
    if (n_rows := int((counts > 0).sum())) != n:
        _refuse(f"{n_rows} rows, and the fit had {n}")
    if not np.isclose(total, size, rtol=_CLOSE):
        _refuse(f"they count as {total:.6g} by their weights, and in the fit as {size:.6g}")
    if not np.isclose(ones := counts @ positive / total, share, rtol=_CLOSE):
        _refuse(f"the share of {model.classes_.tolist()[1]!r} among them is {ones:.4g}, and was {share:.4g} in the fit")
    ops, name, _ = device.resolve(device.device_for("auto", X) if device.on_gpu(X) else "cpu", sparse=issparse(X))
    with ops.using(name):
        X, _, held = ops.hold(X, positive.astype(np.uint8), np.empty(0) if weight is None else weight)
        mean, variance = map(ops.to_host, ops.moments(X, held))
    near = _CLOSE * (model._column_sd + np.abs(model._column_means))
    differs = np.abs(mean - model._column_means) + np.abs(np.sqrt(np.maximum(variance, 0)) - model._column_sd) > near
    if differs.any():
        j = int(np.argmax(differs))
        _refuse(f"the mean of {names_of(model)[j]!r} is {mean[j]:.6g}, and was {model._column_means[j]:.6g} in the fit")


def _refuse(why):
    raise ValueError(f"The rows must be those that the model was fitted on, and these are others: {why}. {_CURE}")
