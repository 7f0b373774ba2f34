"""Slice steps along lines of the law of effects, which the effects follow (``exports/group_lines.cpp``)."""

import numpy as np

from .library import function, record
from .row_groups import given_of_chains

_hold, _next_step = function("hold_residuals"), function("next_step_along_line")
_all_steps = function("all_steps_along_line")
_OF_STEPS = "factor", "others", "uniform", "level", "density", "loglik", "taken", "open"


class _Lines:
    """Lines of one kind, a field of ``EffectLine``. row_groups : ``RowGroups``. n_chains, n_steps : chains, and numbers
    of a line. name, fields : of the record of this kind, but for its ``LineSteps``."""

    def __init__(self, row_groups, n_chains, n_steps, kind, name, fields):
        self.row_groups = row_groups
        self.factor, self.others = np.empty((2, n_steps, n_chains))
        self.uniform, self.level, self.density, self.loglik = np.empty((4, n_chains))
        self.taken, self.open = np.zeros(n_chains, np.int64), np.zeros(n_chains, bool)
        steps = {field: getattr(self, field) for field in _OF_STEPS} | {"n_chains": n_chains, "n_steps": n_steps}
        kinds = {"scale": None, "covariance": None, kind: record(name, {"steps": steps, **fields})}
        self.line = record("EffectLine", kinds)

    def step(self, given, along, factor, others, uniform, effects, loglik=None):
        """The number of the step that each chain takes, 0 for none, and the log-likelihoods there; effects become those
        of that step. given : ``known_predictors.Given`` of rows without effects. along, factor, others : (..., n_steps,
        n_chains) the parameters, c and other terms of the log-density of where chains are and of the proposals.
        uniform : (n_chains,) of the level. loglik : the log-likelihoods where chains are, or None."""
        self.along[...], self.factor[...], self.others[...], self.uniform[...] = along, factor, others, uniform
        groups, line, logliks, k = self.row_groups, self.line, loglik, 0
        if len(groups.bounds) == 2:  # no threads share the rows
            _all_steps(line, groups.record, given_of_chains(given), groups.bounds, loglik, effects)
            return self.taken, self.loglik
        while _next_step(line, k, logliks, effects):
            if k or loglik is None:
                logliks = groups.logliks(given.times(self.factor[k]), effects, self.open)
            k += 1
        return self.taken, self.loglik


class ScaleLines(_Lines):
    """Along s. laws : fields of ``EffectLaws``."""

    def __init__(self, row_groups, laws, n_chains, n_steps):
        self.linear, self.held, self.standard = np.empty((3, row_groups.n, n_chains))
        self.slope, self.along = np.empty((row_groups.n, 1)), np.empty((n_steps, n_chains))
        fields = {name: getattr(self, name) for name in ("linear", "held", "slope", "standard")}
        fields |= {"laws": laws, "n_groups": row_groups.n, "scale": self.along}
        super().__init__(row_groups, n_chains, n_steps, "scale", "ScaleLine", fields)

    def hold(self, followed, effects, scale):
        """Hold the residuals of these effects. followed : ``group_map.Followed``."""
        self.linear[...], self.held[...], self.slope[...] = followed
        self.along[0], self.factor[0] = scale, 1.0
        _hold(self.line, effects)


class CovarianceLines(_Lines):
    """Along R^-1, Sigma = R R' the covariance of the q effects of a group."""

    def __init__(self, row_groups, q, n_chains, n_steps):
        n = row_groups.n
        self.linear, self.information, self.weighed = np.empty((q, n)), np.empty((q, q, n)), np.empty((q, n, n_chains))
        self.along, self.standard = np.empty((q, q, n_steps, n_chains)), np.empty((q, n, n_chains))
        fields = {name: getattr(self, name) for name in ("linear", "information", "weighed", "standard")}
        fields |= {"n_groups": n, "q": q, "inverse_root": self.along}
        super().__init__(row_groups, n_chains, n_steps, "covariance", "CovarianceLine", fields)

    def hold(self, gaussian, effects, inverse_root):
        """Hold the residuals of effects (q, n_groups, n_chains), until a line multiplies beta. gaussian : l_g, H_g and
        the sums of w_i x~_i eta_i. inverse_root : (q, q, n_chains)."""
        self.linear[...], self.information[...], self.weighed[...] = gaussian
        self.along[:, :, 0], self.factor[0] = inverse_root, 1.0
        _hold(self.line, effects)
