"""Rows that belong together: what groups find, what the other advice finds, and what groups cost.

    python benchmarks/repeated_rows.py --output ...     # an hour: an environment with NumPyro, for nuts and slopes
    python benchmarks/repeated_rows.py --only cohort    # two minutes

cohort  8 sets of 500 patients with 20 hours each; ten columns of patients and ten of hours, one effect in each.
large   the paper's size, 26,000 patients with 0.5 % of events: with groups beside the same rows without.
nuts    10,000 groups of ten rows and 50 columns, beside NumPyro's NUTS with non-centred effects, compilation apart.
slopes  300 patients with ten rows, a column whose effect differs between them, beside the same; three sets.

Seconds are ours of the processor, NUTS's by the clock: nothing else may run.
"""

import os
import time

import numpy as np
from _measure import ONE_THREAD, run
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.diagnostics import ess_bulk

EFFECTS = {0: 0.3, 10: 0.1}  # of columns of the cohort given the patient: of a patient, of an hour
OF_PATIENTS = 1.0  # standard deviation of what patients do beside the columns
AVERAGED = 1 / np.sqrt(1 + OF_PATIENTS**2)  # factor on effects given the patient that are averaged over patients


def patients(rng, n_patients, n_hours, of_patients, of_hours, dtype=np.float64):
    """Columns in which those of patients come first, and the numbers of the patients."""
    groups = np.repeat(np.arange(n_patients), n_hours)
    X = rng.standard_normal((len(groups), of_patients + of_hours), dtype)
    X[:, :of_patients] = rng.standard_normal((n_patients, of_patients), dtype)[groups]
    return X, groups


def cohort_set(seed, n_patients=500, n_hours=20):
    """X, y, groups, and the probabilities of each row's patient and of new patients; then X, y of other patients."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(2):
        X, groups = patients(rng, n_patients, n_hours, 10, 10)
        of_columns = -1.0 + sum(effect * X[:, j] for j, effect in EFFECTS.items())
        score = of_columns + rng.normal(0.0, OF_PATIENTS, n_patients)[groups]
        y = (score + rng.standard_normal(len(X)) > 0).astype(int)
        out += [X, y, groups, {"own": ndtr(score), "new": ndtr(of_columns * AVERAGED)}]
    return out[:4], out[4:6]


def design_weight(model, X, y, groups):
    """1 / design effect: the mean eigenvalue of H^-1 J, J from the sums of scores over groups."""
    eta = X @ model.coef_[0] + model.intercept_[0]
    p = np.clip(ndtr(eta), 1e-12, 1 - 1e-12)
    density = np.exp(-(eta**2) / 2) / np.sqrt(2 * np.pi)
    rows = np.column_stack([X, np.ones(len(X))])
    scores = rows * ((y - p) * density / (p * (1 - p)))[:, None]
    by_group = np.zeros((groups.max() + 1, rows.shape[1]))
    np.add.at(by_group, groups, scores)
    H = rows.T @ (rows * (density**2 / (p * (1 - p)))[:, None])
    return 1 / np.linalg.eigvals(np.linalg.solve(H, by_group.T @ by_group)).real.mean()


def judged(model, data, new, **groups):
    """What a fit has found of its set, and how well it predicts other patients.

    A fit without groups estimates effects and probabilities that are averaged over patients, and is judged by these.
    """
    (X, _, codes, truth), (other_X, other_y) = data, new
    low, high = np.quantile(model.coef_draws_.reshape(-1, X.shape[1]), [0.05, 0.95], axis=0)
    kept = (low > 0) | (high < 0)
    noise = np.setdiff1d(np.arange(X.shape[1]), list(EFFECTS))
    true = np.zeros(X.shape[1])
    true[list(EFFECTS)] = np.array(list(EFFECTS.values())) * (1.0 if groups else AVERAGED)
    truth = truth["own" if groups else "new"]
    covers = (low <= true) & (true <= high)
    rows = np.unique(codes, return_index=True)[1]
    ends = model.predict_interval(X[rows], **{name: codes[rows] for name in groups})
    return {
        "patient": float(kept[0]),
        "hourly": float(kept[10]),
        "noise": float(kept[noise].sum()),
        "covers effects": float(covers[list(EFFECTS)].mean()),
        "covers zeros": float(covers[noise].mean()),
        "covers probabilities": float(((ends[:, 0] <= truth[rows]) & (truth[rows] <= ends[:, 1])).mean()),
        "log loss": log_loss(other_y, model.predict_proba(other_X)),
    }


def cohort(report, options):
    kinds = {}
    for seed in range(1 if options.quick else 8):
        data, new = cohort_set(seed, *((50, 5) if options.quick else ()))
        X, y, groups, _ = data
        sizes = np.bincount(groups)[groups]
        made = {"n_iter": 20, "burn_in": 100} if options.quick else {}
        model = HorseshoeProbitClassifier(random_state=seed, **made)
        naive = judged(model.fit(X, y), data, new)
        by_design = np.full(len(X), min(1.0, design_weight(model, X, y, groups)))
        found = {
            "groups": judged(model.fit(X, y, groups=groups), data, new, groups=groups),
            "naive": naive,
            "weights 1/m": judged(model.fit(X, y, sample_weight=1 / sizes), data, new),
            "weights 1/design effect": judged(model.fit(X, y, sample_weight=by_design), data, new),
        }
        lasso = LogisticRegressionCV(Cs=20, penalty="l1", solver="saga", tol=1e-3, scoring="neg_log_loss").fit(X, y)
        kept = abs(lasso.coef_[0]) > 1e-6
        found["L1"] = {"patient": float(kept[0]), "hourly": float(kept[10])}
        found["L1"] |= {"noise": float(kept.sum() - kept[0] - kept[10])}
        found["L1"]["log loss"] = log_loss(new[1], lasso.predict_proba(new[0]))
        for kind, figures in found.items():
            for name, value in figures.items():
                kinds.setdefault(kind, {}).setdefault(name, []).append(value)
    report.figures["cohort"] = {kind: {k: float(np.mean(v)) for k, v in all_.items()} for kind, all_ in kinds.items()}
    for kind, figures in report.figures["cohort"].items():
        targets = {
            "patient": {"at_least": 1.0},
            "hourly": {"at_least": 1.0},
            "noise": {"at_most": 0.5},
            "covers effects": {"at_least": 0.85},
            "covers probabilities": {"at_least": 0.85},
        }
        for name, value in figures.items():
            report.add(f"{kind}: {name}", value, **(targets.get(name, {}) if kind == "groups" else {}))


def to_400(model, X, y, **groups):
    """Seconds of processor time to 400 effective draws of everything, and what a fit has taken for that."""
    begin = time.process_time()
    model.fit(X, y, **groups)
    seconds = time.process_time() - begin
    draws = [model.coef_draws_, model.intercept_draws_[..., None], model.global_scale_draws_[..., None]]
    if groups:
        of_groups = [model.group_scale_draws_, getattr(model, "group_correlation_draws_", {})]
        each = [values for one in of_groups for values in (one.values() if type(one) is dict else [one])]
        draws += [values[..., None] for values in each]
    ess = ess_bulk(np.concatenate(draws, axis=2))
    burn_in = seconds * model.burn_in_ / (model.burn_in_ + model.n_iter_)
    return {
        "seconds": burn_in + (seconds - burn_in) * 400 / float(np.nanmin(ess)),
        "of the fit": seconds,
        "sweeps": model.n_iter_,
        "least ESS": float(np.nanmin(ess)),
        "ESS of the intercept": float(ess[X.shape[1]]),
        "ESS of scales": ess[X.shape[1] + 2 :].tolist(),
    }


def large(report, options):
    n_patients, n_hours, n_iter = (100, 5, 20) if options.quick else (26_000, 50, 400)
    rng = np.random.default_rng(0)
    X, groups = patients(rng, n_patients, n_hours, 40, 101, np.float32)
    X, groups = X[:1_295_848], groups[:1_295_848]
    score = X[:, 0] * 0.4 - X[:, 1] * 0.3 + X[:, 40] * 0.3 + X[:, 41] * 0.2 + rng.standard_normal(n_patients)[groups]
    noise = score + rng.standard_normal(len(X))
    y = noise > np.quantile(noise, 0.9 if options.quick else 0.995)
    model = HorseshoeProbitClassifier(n_iter=n_iter, burn_in=240, random_state=1)
    found = {"groups": to_400(model, X, y, groups=groups), "none": to_400(model, X, y)}
    report.figures["large"] = found
    report.add("large: seconds to 400 with groups", found["groups"]["seconds"], "s")
    report.add("large: without", found["none"]["seconds"], "s")
    report.add("large: times", found["groups"]["seconds"] / found["none"]["seconds"], at_most=3.0)


def nuts(report, options):
    os.environ["XLA_FLAGS"] = ONE_THREAD["XLA_FLAGS"]
    from _samplers import numpyro_nuts

    n_groups = 50 if options.quick else 10_000
    rng = np.random.default_rng(0)
    X, groups = patients(rng, n_groups, 10, 10, 40)
    score = -1.0 + 0.5 * X[:, 0] + 0.3 * X[:, 10] + rng.standard_normal(n_groups)[groups]
    y = score + rng.standard_normal(len(X)) > 0
    model = HorseshoeProbitClassifier(n_iter=20 if options.quick else 400, burn_in=240, n_jobs=1, random_state=1)
    ours = to_400(model, X, y, groups=groups)
    burn_in, n = (10, 10) if options.quick else (100, 50)
    theirs = numpyro_nuts(X, y, np.inf, burn_in, n, 0, groups=groups, n_chains=1, accept=0.8)
    scales = np.stack([theirs.intercept, theirs.tau, theirs.group_scale], axis=2)
    least = max(1.0, float(ess_bulk(np.concatenate([theirs.coef, scales], axis=2)).min()))
    seconds = theirs.burn_in + theirs.sampling * 400 / least
    report.figures["nuts"] = {"ours": ours, "NumPyro": {"seconds": seconds, "ESS": least}}
    report.add("nuts: effective draws a second", 400 / ours["seconds"], "/s")
    report.add("nuts: NumPyro's", 400 / seconds, "/s")
    report.add("nuts: times as many", seconds / ours["seconds"], at_least=40.0)
    bound = (theirs.burn_in + theirs.sampling * 400 / n) / ours["seconds"]
    report.add("nuts: were each of its draws effective", bound, at_least=40.0)


def slopes(report, options):
    os.environ["XLA_FLAGS"] = ONE_THREAD["XLA_FLAGS"]
    from _samplers import numpyro_nuts

    n_groups, burn_in, n = (20, 10, 10) if options.quick else (300, 500, 500)
    for seed in range(1 if options.quick else 3):
        rng = np.random.default_rng(seed)
        X, groups = patients(rng, n_groups, 10, 3, 7)
        effects = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.3], [0.3, 0.25]], n_groups)[groups]
        score = -0.3 + 0.6 * X[:, 3] + 0.4 * X[:, 0] + effects[:, 0] + effects[:, 1] * X[:, 3]
        y = score + rng.standard_normal(len(X)) > 0
        how = {"n_iter": 20 if options.quick else 1500, "burn_in": 240, "n_jobs": 1, "random_state": seed}
        model = HorseshoeProbitClassifier(group_slopes={"patient": [3]}, **how)
        ours = to_400(model, X, y, groups={"patient": groups})
        theirs = numpyro_nuts(X, y, np.inf, burn_in, n, seed, groups=groups, slope=3, n_chains=1, accept=0.8)
        scales = np.dstack([theirs.intercept, theirs.tau, theirs.group_scale])
        least = max(1.0, float(ess_bulk(np.dstack([theirs.coef, scales])).min()))
        seconds = theirs.burn_in + theirs.sampling * 400 / least
        of_groups = [*model.group_scale_draws_.values(), *model.group_correlation_draws_.values()]
        about = {"ours": ours, "NumPyro": {"seconds": seconds, "ESS": least, "divergent": theirs.divergent}}
        means = [float(draws.mean()) for draws in of_groups], theirs.group_scale.mean(axis=(0, 1)).tolist()
        about["means of deviations and correlation"] = means
        report.figures[f"slopes, set {seed}"] = about
        report.add(
            f"slopes, set {seed}: times as many effective draws as NUTS", seconds / ours["seconds"], at_least=20.0
        )


if __name__ == "__main__":
    run(__file__, __doc__, {"cohort": cohort, "large": large, "nuts": nuts, "slopes": slopes})
