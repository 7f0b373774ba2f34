"""A factor with slopes: the effects b_g of a group are an intercept and slopes of columns, with one covariance Sigma.

    z_i = ... + x~_i' b_g(i) + e_i,   b_g ~ N(0, Sigma),   x~_i = 1 and the columns, at their means 0, of deviation 1

Each of the q effects is a component, a ``Factor`` with ``slope`` x~_ik: rows and the map see components as factors.
Moves of a factor with slopes, and how components depend on one another, are here.

    b_g          a slice step along each of q directions d_g, in which the law of b_g is nearly round: those of the
                 Cholesky factor of H_g + Sigma_0^-1, H_g = sum w_i x~_i x~_i', frozen by burn-in
    Sigma        given b (``group_covariance.py``)
    Sigma, b     slice steps on r with L_g' (b_g - m_g) held, that change the root R of Sigma = R R', lower triangular:
                 e^r times row k, e^r R_kk, and r times row k added to row j > k
    Sigma, b, beta, tau  the same with e^r R, c beta and c tau (``group_moves.py``), c^2 = (1 + e^2r v) / (1 + v), v the
                 mean of x~' Sigma x~ over rows

m_g and L_g L_g' are mean and precision of b_g given Sigma and the rest, as burn-in has approximated them by a Gaussian:
H_g + Sigma^-1 and its solution of l_g - sum w_i x~_i eta_i, eta_i the rest of the predictor. As far as they are right,
Sigma moves as if b were integrated out; far out they are wrong, and one line of each sweep takes the prior in their
place, as does the line with beta in every other sweep. Added to the log-density are -sum_g log |L_g| and the logarithm
of the Jacobian of Sigma: d Sigma is prop. to prod_k R_kk^(q - k) d R, k = 0 to q - 1.
"""

import numpy as np

from .._backends import GROUP_LINE_PURPOSE
from .._backends.constants import LINE_PROPOSALS
from .._backends.line_moves import N_UNIFORMS
from .._utils.errstate import guarded
from .group_covariance import (
    cholesky,
    draw_root,
    inverse,
    log_determinant,
    log_prior,
    product,
    solve_transposed,
    squared,
)
from .group_moves import FEWEST_TUNING_STEPS, BetaAndOthers, first_widths, tuned_widths

_WIDTH_IN_DEVIATIONS = 5.0  # width of slices, as ``tuned_widths`` takes it
_SAVED = "root", "widths", "steps", "linear", "information", "weight", "directions"


class SlopesOfFactor:
    """A factor with slopes; what has no docstring is as of ``Factor``. components : its ``Factor``s, whose parts of
    effects follow one another. rows : ``Rows``. key : of its random numbers."""

    def __init__(self, components, rows, n_chains, key):
        self.components, self.key, self.n_chains = components, key, n_chains
        first, last, self.q = components[0], components[-1], len(components)
        self.n, self.codes, self.number = first.n, first.row_groups.codes, first.number
        self.part, numbers = slice(first.part.start, last.part.stop), [one.number for one in components]
        self.among_factors = np.ix_(numbers, numbers)  # of a matrix (n_factors, n_factors)
        self.prior_scales = np.array([one.prior_scale for one in components])
        self.values = np.stack([one.times_slope(np.ones(rows.n)) for one in components])  # x~ (q, n)
        *_, weight = rows.held
        weight = weight if len(weight) else np.ones(rows.n)
        self.mean_square = (weight * self.values) @ self.values.T / weight.sum()  # of x~ x~' over rows
        self.rows, self.along = first.make_row_groups, None
        self.row_groups = self.rows(self.values, self.codes, self.n)
        self.lines = rows.ops.CovarianceLines(self.row_groups, self.q, n_chains, 1 + LINE_PROPOSALS)
        lower = [(j, k) for k in range(self.q) for j in range(k, self.q)]
        self.kinds = [*(("row", k, k) for k in range(self.q)), *(("entry", j, k) for j, k in lower[1:]), ("all", 0, 0)]
        self.widths = np.tile(first_widths(len(self.kinds), self.n), (2, 1))  # by the Gaussian, and by the prior alone
        self.steps = np.zeros((2, 2, len(self.kinds)))  # their number, and sums of their squares
        self.root = np.zeros((self.q, self.q, n_chains))  # lower triangular, Sigma = root root'
        self.forget()

    def start(self):
        """Begin with the scales of the components, without correlations."""
        for k, one in enumerate(self.components):
            self.root[k, k] = one.scale
            one.family = self
        self._tell()

    def _tell(self):
        """Tell components their scale given the others."""
        self.precision = squared(inverse(self.root))  # Sigma^-1 (q, q, n_chains)
        for k, one in enumerate(self.components):
            one.scale = self.precision[k, k] ** -0.5

    # How components depend on one another.

    def partial(self):
        """Sigma^-1 with a diagonal of ones (q, q, n_chains)."""
        scales = np.stack([one.scale for one in self.components])
        return self.precision * scales[:, None] * scales

    def across(self, effects):
        """The product of Sigma^-1, without its diagonal, and effects (n_effects, m), as in ``GroupEffects.at``."""
        own, m = self.of(effects), effects.shape[1]
        partial, logs = self.partial(), np.log(np.stack([one.scale for one in self.components]))
        if m == 1:
            partial, logs = partial.mean(axis=2, keepdims=True), logs.mean(axis=1, keepdims=True)
        else:
            partial, logs = (np.tile(values, m // self.n_chains) for values in (partial, logs))
        between = partial * (1.0 - np.eye(self.q))[..., None] * np.exp(-logs[:, None] - logs)
        return np.einsum("ijc,jnc->inc", between, own).reshape(-1, m)

    def of(self, effects):
        """Effects (n_effects, m) of all factors as those of this one, by component; (q, n, m)."""
        return effects[self.part].reshape(self.q, self.n, -1)

    def at_levels(self, effects, levels):
        return self.in_rows(effects.reshape(self.q, self.n, -1))

    def in_rows(self, own):
        """What effects (q, n, m) add to the predictors of rows; (n_rows, m)."""
        return self.row_groups.in_rows(np.ascontiguousarray(own))

    def rooted(self, averages):
        """x~ times a root of the covariance by ``MapAverages``; (n_rows, q)."""
        return self.values.T @ np.linalg.cholesky(np.linalg.inv(averages.precision(self)))

    # What burn-in learns.

    def tune(self):
        """Tune the widths of slices to their steps so far, of which lines by the prior have few in a phase."""
        self.widths = tuned_widths(self.widths, *self.steps, _WIDTH_IN_DEVIATIONS)
        self.steps[:, self.steps[0] >= FEWEST_TUNING_STEPS] = 0.0

    def forget(self):
        """Know no more of effects than their prior."""
        self.linear, self.information = np.zeros((self.q, self.n, 1)), np.zeros((self.q, self.q, self.n, 1))
        self.weight = None  # w (n_rows,)
        self._set_directions(np.tile(np.eye(self.q)[:, :, None], self.n))

    def freeze(self, weight, given, centre, precision):
        """Take the Gaussian about effects ``centre`` (n_effects,). weight : (n_rows,). given : ``Given`` of a point,
        without effects of this factor. precision : Sigma_0^-1 (q, q)."""
        own, self.weight, predictors = self.of(centre[:, None]), weight, given.values
        self.information = np.array(
            [[np.bincount(self.codes, weight * a * b, self.n)[:, None] for a in self.values] for b in self.values]
        )
        score = []
        for k, one in enumerate(self.components):
            others = own.copy()
            others[k] = 0.0
            at = np.ascontiguousarray(predictors + self.in_rows(others), one.dtype)
            score.append(one.row_groups.curvature(given._replace(values=at), own[k].copy())[1])
        self.linear = product(self.information, own) + np.array(score)[..., None] + self._weighed(predictors)
        factor = cholesky(self.information[..., 0] + precision[..., None])
        identity = np.tile(np.eye(self.q)[:, :, None], self.n)
        self._set_directions(np.stack([solve_transposed(factor, one) for one in np.swapaxes(identity, 0, 1)], axis=1))

    def _weighed(self, predictors):
        """sum w_i x~_i eta_i over the rows of each group (q, n, m)."""
        weighed = (predictors * self.weight[:, None]).astype(self.components[0].dtype)
        return np.stack([one.row_groups.sums(weighed) for one in self.components])

    def _set_directions(self, directions):
        """Take directions (q, q, n), that of step k is [:, k]."""
        self.directions = directions
        self.along = []
        for d in np.moveaxis(directions, 1, 0)[..., None]:
            slope, information = self.in_rows(d)[:, 0], (d * product(self.information, d)).sum(axis=(0, 2))
            self.along.append((np.ascontiguousarray(d), information, self.rows(slope, self.codes, self.n)))

    # Moves.

    @guarded  # a proposal far out has no density, and is rejected
    def move(self, block, given, beta, tau_sq_inv, t):
        own = self.of(block.effects).copy()
        self._move_effects(own, given, t)
        self.root = draw_root(own, self.root, self.prior_scales, block.ops, [one.key for one in self.components], t)
        others = [one for one in block.units if one is not self]
        c = self._along_lines(own, given, BetaAndOthers(block, beta, tau_sq_inv, others), block.ops, t)
        for other in others:
            other.grow(c)
            block.effects[other.part] *= c
        block.effects[self.part] = own.reshape(-1, self.n_chains)
        return c

    def _along_lines(self, own, given, rest, ops, t):
        """Move Sigma and effects (q, n, n_chains), in place, along the lines of a sweep: c of the last line."""
        lines, m, held, loglik = self._lines_of(t), self.n_chains, None, None
        weighed = 0.0 if self.weight is None else self._weighed(given.values * given.factor)
        laws = (self.linear[..., 0], self.information[..., 0], weighed), (0.0, 0.0, 0.0)
        uniform = ops.uniform((m, len(lines) * N_UNIFORMS), self.key, t, GROUP_LINE_PURPOSE).reshape(-1, N_UNIFORMS)
        proposals, _ = ops.proposals(uniform, np.tile([self.widths[line] for line in lines], m))
        of_lines = uniform.reshape(m, len(lines), -1), proposals.reshape(m, len(lines), -1)
        for line, uniform, proposals in zip(lines, *(np.moveaxis(one, 1, 0) for one in of_lines), strict=True):
            (by_prior, k), r = line, proposals.T
            if by_prior != held:
                self.lines.hold(laws[by_prior], own, inverse(self.root))
                held = by_prior
            root, inverse_root, c, terms = self._at(self.kinds[k], r, rest)
            taken, loglik = self.lines.step(given, inverse_root, c, terms, uniform[:, 0], own, loglik)
            at = taken, np.arange(m)
            # In C order: NumPy 1 rounds powers of strided arrays, such as scales, by where the result lies in memory.
            self.root, c, moved = np.ascontiguousarray(root[:, :, *at]), c[at], r[at]
            self.steps[:, by_prior, k] += 1, (moved**2).mean()
        self._tell()
        return c

    def _at(self, kind, r, rest):
        """At r (n_steps, n_chains): the root of Sigma and its inverse (q, q, n_steps, n_chains), c, the factor
        of beta and tau, and the terms of the log-density beside those of effects and rows.

        kind : "row" and its number twice; "entry" of the root on its diagonal, or what row j gets of row k; "all" for
        the root, with ``rest``, ``BetaAndOthers``.
        """
        root, terms = self._moved(*kind, r)
        inverse_root, c = inverse(root), np.ones(r.shape)
        terms = terms + log_prior(inverse_root, self.prior_scales) - self.n * log_determinant(root)
        if kind[0] == "all":
            variance = np.einsum("ikc,jkc,ij->c", self.root, self.root, self.mean_square)  # v
            c = np.sqrt((1.0 + np.exp(2 * r) * variance) / (1.0 + variance))
            terms = terms + rest.log_density(c**2)
        return root, inverse_root, c, terms

    def _moved(self, kind, j, k, r):
        """The root of Sigma at r (n_steps, n_chains), and the logarithm of the Jacobian."""
        q = self.q
        root = np.broadcast_to(self.root[:, :, None], (q, q, *r.shape)).copy()
        if kind == "all":
            return root * np.exp(r), q * (q + 1) * r
        if kind == "row":
            root[j] *= np.exp(r)
            return root, (q + 1) * r
        if j == k:
            root[k, k] *= np.exp(r)
            return root, (1 + q - k) * r
        root[j] += r * root[k]
        return root, 0.0

    def _lines_of(self, t):
        """The lines of a sweep: whether b follows Sigma by the prior alone, and the number of the line."""
        last = len(self.kinds) - 1  # the line with beta
        # One line by the prior in each sweep: far out, where rows do not bound b, b follows Sigma so.
        return (1, t % last), *((0, k) for k in range(last)), (t % 2, last)

    def _move_effects(self, own, given, t):
        """Move effects (q, n, n_chains), in place, along each direction."""
        eta, ones = given.values * given.factor + self.in_rows(own), np.ones(self.n_chains)
        for k, (d, information, row_groups) in enumerate(self.along):
            by_prior = product(self.precision[:, :, None], d)
            precision = (d * by_prior).sum(axis=0)
            mean = -(by_prior * own).sum(axis=0) / precision
            step, key = np.zeros(mean.shape), self.components[k].key
            at = eta.astype(given.values.dtype)
            row_groups.move_effects(step, given._replace(values=at, factor=ones), precision, information, t, key, mean)
            own += d * step
            eta += row_groups.in_rows(step)

    def grow(self, c):
        self.root = self.root * c
        self._tell()

    def log_density_grown(self, c_sq):
        """Terms of the log-density that change with scales and effects times c, as c^2 (n_chains,) or (k, n_chains)."""
        c, root = np.sqrt(c_sq), np.expand_dims(self.root, tuple(range(2, 1 + c_sq.ndim)))
        return log_prior(inverse(root * c), self.prior_scales) + self.q * (self.q + 1) * np.log(c)

    # What is kept and saved.

    def deviations(self):
        """Standard deviations (n_chains, q), and correlations of pairs of components (n_chains, n_pairs)."""
        covariance = np.einsum("ikc,jkc->cij", self.root, self.root)
        deviations = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        correlation = covariance / deviations[:, :, None] / deviations[:, None]
        return deviations, correlation[:, *np.triu_indices(self.q, 1)]

    def arrays(self):
        saved = {name: getattr(self, name) for name in _SAVED}
        return {f"group_slopes_{self.number}_{name}": value for name, value in saved.items() if value is not None}

    def restore(self, saved):
        for name in _SAVED:
            value = saved.get(f"group_slopes_{self.number}_{name}")
            setattr(self, name, None if value is None else value.copy())
        for one in self.components:
            one.family = self
        self._set_directions(self.directions)
        self._tell()


def slopes_to_predict(factors, families, rows):
    """What predictions need to know of slopes: of each effect of a group the number of its factor, the column of X or
    -1, what is subtracted of it; and the mean product of two columns, less that, of a factor over rows."""
    columns = [-1 if column is None else column for column in rows.groups.columns]
    centre = [0.0 if k < 0 else rows.columns.mean_of_X[k] for k in columns]
    products = np.diag([1.0 if k < 0 else 0.0 for k in columns])
    for family in families:
        numbers, unit = [one.number for one in family.components], np.array([one.sd for one in family.components])
        products[np.ix_(numbers, numbers)] = family.mean_square * unit * unit[:, None]
    factor = np.cumsum([k < 0 for k in columns]) - 1
    return {"factor": factor, "column": np.array(columns), "centre": np.array(centre), "products": products}
