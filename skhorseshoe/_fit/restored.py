"""Whether the arrays of a saved run can be those of this one: kernels read them as far as their shapes should go."""

import numpy as np

from .._backends.limits import MAX_STEPS
from .._mcmc.burn_in import AUTO, MOST_EXTENSIONS, BurnIn, of_no_tuning, of_tuning

# Shapes, a letter for each axis: C chains, n rows, P columns of X, p of them shrunk, q coefficients, M = P + 2 moments,
# s = 1 + p widths; * is any number above 0, k any at all.
_STATES = {
    "gibbs": {"nu_inv": "Cp", "xi_inv": "C", "points": "*q"},
    "collapsed": {"z": "Cn", "points": "*q"},
    "hmc": {
        "loglik": "C",
        "score": "Cq",
        "acceptance": "C",
        "tau_acceptance": "C",
        "settings": "4",
        "slow": "k",
        "accepted": "2",
        "every": "",
    },
}
_STATE = {"beta": "Cq", "lambda_sq_inv": "Cp", "tau_sq_inv": "C", "sweep": ""}
_REFERENCE = {"reference_point": "q", "reference_score": "q", "reference_information": "qq", "spread": "s"}
_STAGE = {"length": "", "n": "", "step": "4", "tau_step": "4", "rates": "2"}
_SEEN = {"beta": "q", "score": "q", "points": "*q", "first": "q", "last": "Cq", "squares": "q", "lagged": "q"}
_NOT_YET = {"points": "00", **dict.fromkeys(("beta", "score", "first", "last", "squares", "lagged"), "")}
_DRAWS = {"coef": "C*P", "intercept": "C*", "global_scale": "C*", "acceptance": "C*"}
_COUNTS = {"seen": "", "stride": "", "next_kappa": "", "kappa_sum": "p", "kappa_weight": ""}
_MOMENTS = {"all_n_draws": "", "all_mean": "CM", "all_squares": "CM", "all_positive": "CM"}
_WHOLE = {"n_iter", "key", "sweep", "extensions", "slow", "every", "stage_length", "stage_n"}
_WHOLE |= {"seen", "stride", "next_kappa", "kappa_weight", "all_n_draws"}
_ABOVE_0 = "lambda_sq_inv", "tau_sq_inv", "nu_inv", "xi_inv", "global_scale", "spread"


def check(saved, problem, settings):
    """Raise a ValueError where arrays that ``Run`` is to go on from are missing, or do not agree with one another.

    saved : as ``Run.arrays`` gives it, with the draws. problem, settings : of ``Run``.
    """
    p, all_of_X, q = problem.rows.columns.n_shrunk, problem.rows.shape[1], len(problem.fixed.anchor)
    sizes = {"C": settings.n_chains, "n": problem.rows.shape[0], "p": p, "P": all_of_X, "q": q, "s": 1 + p}
    sizes |= {"M": all_of_X + 2, "0": 0, "2": 2, "4": 4}
    chains, draws = saved["chains"], saved["draws"]
    top = {name: value for name, value in saved.items() if name not in ("chains", "draws")}
    _check_arrays(top, {"n_iter": "", "key": "2"}, sizes)
    _require("sweep" in chains and {"seen", "stride"} <= draws.keys(), "'sweep', 'seen' or 'stride' is missing")
    sweep, done, burn_in = int(chains["sweep"]), int(saved["n_iter"]), _burn_in(chains, settings)
    _require(done == max(0, sweep - burn_in.end) and sweep >= 0, f"it has made {sweep} sweeps, and {done} to keep")
    _check_chains(chains, sweep, burn_in, settings, sizes)
    _check_draws(draws, done, settings, sizes)


def _burn_in(chains, settings):
    """``BurnIn`` as it was planned by then."""
    if settings.burn_in == AUTO:
        _require("extensions" in chains, "'extensions' is missing")
        _require(int(chains["extensions"]) in range(MOST_EXTENSIONS + 1), "its burn-in is longer than any")
    return BurnIn(settings.burn_in, of_tuning if settings.sampler == "hmc" else of_no_tuning, chains)


def _check_chains(chains, sweep, burn_in, settings, sizes):
    sampler = "gibbs" if settings.sampler == "pxda" else settings.sampler
    expected = {**_STATE, **_STATES[sampler], **burn_in.shapes(sweep)}
    if sampler == "hmc":
        stages = burn_in.phases.ends
        expected |= {"H": "qq"} if sweep < stages[0] else _REFERENCE
        if stages[0] <= sweep < stages[-1]:
            start, stop = max(t for t in stages if t <= sweep), min(t for t in stages if t > sweep)
            # Of the half that it looks at, before which there is nothing to keep.
            seen = _SEEN if sweep - start > (stop - start) // 2 else _NOT_YET
            expected |= {f"stage_{name}": shape for name, shape in (_STAGE | seen).items()}
    _check_arrays(chains, expected, sizes)
    if sampler == "hmc":
        step, n_steps, tau_moves, tau_step = chains["settings"].tolist()
        right = 0 < step < 4 and n_steps in range(1, MAX_STEPS + 1) and tau_moves in range(5) and 0 < tau_step < 100
        _require(right and int(chains["every"]) > 0, "no burn-in chooses the steps that it has")
        _require(np.isin(chains["slow"], range(sizes["p"])).all(), "it names columns that there are not")
        if "stage_n" in chains:
            now = int(chains["stage_length"]), int(chains["stage_n"])
            _require(now == (stop - start, sweep - start), "its stage of burn-in is not that of its sweep")


def _check_draws(draws, done, settings, sizes):
    seen, stride = int(draws["seen"]), int(draws["stride"])
    _require(seen == done // settings.thin, f"it has seen {seen} draws in {done} sweeps")
    few = settings.max_draws is not None
    _require(stride == 1 or (few and stride > 1 and stride & (stride - 1) == 0), f"it keeps every {stride}-th draw")
    n = seen // stride
    _require(not few or n <= settings.max_draws, f"it has {n} draws, more than max_draws={settings.max_draws}")
    expected = _COUNTS | (_DRAWS if n else {}) | (_MOMENTS if stride > 1 else {})
    _check_arrays(draws, expected, sizes | ({"*": n} if n else {}), settings.draws_dtype)
    weight = int(draws["kappa_weight"])
    _require((weight > 0) == (seen > 0) and (draws["kappa_sum"] >= 0).all(), "its mean shrinkage is of no draws")
    _require(stride == 1 or int(draws["all_n_draws"]) == seen, "its moments are not those of its draws")


def _check_arrays(arrays, expected, sizes, dtype_of_coef="float64"):
    """Raise a ValueError unless these are the arrays of these shapes, of finite numbers."""
    for name in sorted(expected.keys() ^ arrays.keys()):
        _require(False, f"the array {name!r} is {'missing' if name in expected else 'not one of this run'}")
    for name, letters in expected.items():
        array = np.asarray(arrays[name])
        pairs = [*zip(letters, array.shape, strict=False)]
        fits = all(sizes.get(letter, size) == size and (letter != "*" or size) for letter, size in pairs)
        dtype = dtype_of_coef if name == "coef" else float
        fits &= array.dtype.kind in "iu" if name in _WHOLE else array.dtype == dtype
        fits &= array.ndim == len(letters)
        _require(fits, f"the array {name!r} is {array.shape} of {array.dtype}, which does not fit this run")
        _require(np.isfinite(array).all(), f"the array {name!r} holds numbers that are not finite")
        _require(name not in _ABOVE_0 or (array > 0).all(), f"the array {name!r} holds numbers that are not above 0")


def _require(right, why):
    if not right:
        raise ValueError(why)
