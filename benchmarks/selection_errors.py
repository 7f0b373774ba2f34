"""How often what the package claims of columns is false, and how much it finds; parts of selection.py."""

import warnings
from copy import copy
from functools import partial
from pathlib import Path

import numpy as np
from _child import resident
from _measure import in_turns
from joblib import Parallel, delayed
from selection_data import SLAB, Blocks
from selection_peers import ANY, SHARES

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.groups import credible_sets

EFFECT = 0.1  # the least that counts, in all rates of false signs and sets
N_JOBS = 2  # processes, each of which does one fit at a time
RULES = ("interval", "dss")  # beside "fsr" and sets
# burn_in and n_iter of four chains
SHORT, WIDE, DEFAULT, QUICK = (300, 500), (500, 1000), (1000, 1000), (100, 200)


def fit(X, y, seed, length=DEFAULT, **parameters):
    burn_in, n_iter = length
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the length that is asked for, converged or not
        model = HorseshoeProbitClassifier(burn_in=burn_in, n_iter=n_iter, random_state=seed, **parameters)
        return model.fit(X, y)


def for_each_seed(function, n_seeds):
    return Parallel(N_JOBS)(delayed(function)(seed) for seed in range(n_seeds))


def claims_of(model, X, rule, q=None):
    """What a rule claims: pairs of columns and of weights with which their coefficients add up to an effect above 0.

    Sets have a level of 1/2 here, so that it is q which limits them; with q = None all their defaults.
    """
    if rule == "sets":
        limits = {} if q is None else {"level": 0.5, "q": q}
        found = credible_sets(model, X, effect=EFFECT, **limits)
        return [members(found.members, title, np.sign(found.sets.loc[title, "mean"])) for title in found.sets.index]
    limits = {} if q is None else {"q": q, "effect": EFFECT}
    kept = HorseshoeSelector(model, rule=rule, prefit=True, **limits).fit(X).get_support(indices=True)
    sized, sd = model.coef_draws_ * X.std(axis=0), X.std(axis=0)
    least = EFFECT if rule == "fsr" else 0.0
    positive = (sized > least).mean(axis=(0, 1)) >= (sized < -least).mean(axis=(0, 1))
    return [(np.array([j]), np.array([sd[j] if positive[j] else -sd[j]])) for j in kept]


def members(frame, title, side=1.0):
    """Numbers and weights of the columns of a set."""
    rows = frame.loc[title]
    return np.array([int(name.removeprefix("x")) for name in rows.index]), side * rows["weight"].to_numpy()


def judged(claims, coef, sd):
    """Counts of what is claimed of one data set. A claim without weights is that one of its columns has an effect."""
    effects, false, wrong, located = coef * sd, 0, 0, 0.0
    signals, covered = abs(effects) > EFFECT, np.zeros(len(coef), bool)
    for columns, weights in claims:
        value = abs(effects[columns]).max() if weights is None else coef[columns] @ weights
        false, wrong = false + (value <= EFFECT), wrong + (value < 0)
        located += (value > EFFECT) / len(columns)
        covered[columns] = True
    n = len(claims)
    return {
        "claims": n,
        "false share": float(false / n) if n else 0.0,
        "wrong sign": float(wrong / n) if n else 0.0,
        "columns": int(sum(len(columns) for columns, _ in claims)),
        "located": float(located),
        "found": int((covered & signals).sum()),
        "signals": int(signals.sum()),
    }


def realised(case, seed, length=SHORT, **parameters):
    """What each rule claims of one data set and how much of it is false: {(rule, q, of what): counts}."""
    X, y, truths = case.make_judged(seed, case.n)
    model, sd, counts = fit(X, y, seed, length, n_jobs=1, **case.prior(), **parameters), X.std(axis=0), {}
    for rule, q in [("fsr", q) for q in SHARES] + [("sets", q) for q in SHARES] + [(rule, None) for rule in RULES]:
        claims = claims_of(model, X, rule, q)
        counts |= {(rule, q, what): judged(claims, coef, sd) for what, coef in truths.items()}
    return counts


def summed(counts):
    """Rates over data sets, with the Monte Carlo error of the mean share of false claims."""
    total = {name: sum(one[name] for one in counts) for name in counts[0]}
    false = np.array([one["false share"] for one in counts])
    return {
        "data sets": len(counts),
        "false share": float(false.mean()),
        "false share, Monte Carlo error": float(false.std() / np.sqrt(len(false))),
        "false of all claims": sum(one["false share"] * one["claims"] for one in counts) / max(1, total["claims"]),
        "wrong sign": total["wrong sign"] / len(counts),
        "data sets with a claim": sum(one["claims"] > 0 for one in counts),
        "signals": total["signals"],
        "signals found": total["found"] / max(1, total["signals"]),
        "signals located": total["located"] / max(1, total["signals"]),
        "columns per claim": total["columns"] / max(1, total["claims"]),
    }


def rates(report, case, n_seeds, length, *, exact):
    """Rows for the mean share of false claims at each q, where the model is exact at most q but for chance."""
    counts = for_each_seed(partial(realised, case, length=length), n_seeds)
    for rule, q, what in counts[0]:
        title, figures = _title(case, rule, q, what), summed([count[rule, q, what] for count in counts])
        report.figures[title] = figures
        if q:
            goal = q + 2 * figures["false share, Monte Carlo error"] if exact else None
            report.add(f"{title}, share false", figures["false share"], at_most=goal)
    return counts


def _title(case, rule, q, what="effects"):
    return f"{case}: {rule}" + (f", q = {q}" if q else "") + (f" ({what})" if what != "effects" else "")


def compared(report, case, counts, n_sets, environment):
    """Rows for the rules of others on the first data sets of ``rates``, and for ours on the same ones."""
    made = [case.make_judged(seed, case.n) for seed in range(n_sets)]
    claims, seconds = environment.claims([made_one[:2] for made_one in made], N_JOBS)
    title, every = f"{case}, the first {n_sets}", {}
    for rule, q, what in counts[0]:
        every[_title(title, rule, q)] = summed([count[rule, q, what] for count in counts[:n_sets]])
    for rule, asked in claims.items():
        for q, found in asked.items():
            kept = [
                judged([(columns, None) for columns in one], truths["effects"], X.std(axis=0))
                for one, (X, _, truths) in zip(found, made, strict=True)
                if one is not None
            ]
            if kept:
                every[_title(title, rule, q)] = {**summed(kept), "processor seconds a data set": seconds[rule]}
    for what, figures in every.items():
        report.add(f"{what}, share of signals found", figures["signals found"])
        report.add(f"{what}, located", figures["signals located"])
    report.figures |= every


def twins(report, case, n_seeds, length):
    """Rows for twins: in how many data sets the pair is a set, and in how many one of the two, or the wrong one, is."""
    every = for_each_seed(partial(_sets, case, length=length), n_seeds)
    pairs = sum({0, 2} in found for found in every)
    alone = sum({0} in found or {2} in found for found in every)
    wrong = sum({2} in found for found in every)
    report.add(f"{case}, r = {case.r:g}: sets that are the pair, of {n_seeds}", pairs, at_least=n_seeds)
    report.add(f"{case}, r = {case.r:g}: data sets with one of the two alone", alone, at_most=0)
    report.add(f"{case}, r = {case.r:g}: data sets with the wrong one alone", wrong, at_most=0)


def noise(report, case, n_seeds, length):
    """A row for noise: in how many data sets there is a set."""
    some = sum(len(found) > 0 for found in for_each_seed(partial(_sets, case, length=length), n_seeds))
    report.add(f"{case}: data sets with any set, of {n_seeds}", some, at_most=n_seeds // 20)


def sizes(report, case, n_seeds, length):
    """A row for noise: in how many data sets five folds ask for any column."""
    found = for_each_seed(partial(_size, case, length=length), n_seeds)
    report.figures[f"{case}: suggested sizes"] = tuple(found)
    some = sum(size > 0 for size in found)
    report.add(f"{case}: data sets with a suggested size above 0, of {n_seeds}", some, at_most=0)


def _size(case, seed, length):
    X, y, _ = case.make(seed, case.n)
    burn_in, n_iter = length
    model = HorseshoeProbitClassifier(burn_in=burn_in, n_iter=n_iter, n_jobs=1, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HorseshoeSelector(model, cv=5).fit(X, y).suggested_size_


def _sets(case, seed, length):
    X, y, _ = case.make(seed, case.n)
    return [set(columns.tolist()) for columns, _ in claims_of(fit(X, y, seed, length, n_jobs=1), X, "sets")]


def blocks(report, case, n_seeds, length, environment=None):
    """Rows for blocks: how many of the three are found, and how many others, by each rule and by sets."""
    every = for_each_seed(partial(_block_claims, case, length=length), n_seeds)
    found = {rule: [one[rule] for one in every] for rule in every[0]}
    if environment is not None:
        theirs, seconds = environment.claims([case.make(seed, case.n)[:2] for seed in range(n_seeds)], N_JOBS)
        for rule, asked in theirs.items():
            if asked:
                found[rule] = asked[ANY] if ANY in asked else asked["0.1"]
        report.figures[f"{case}: processor seconds a data set"] = seconds
    right, wrong = {}, {}
    for rule, claims in found.items():
        named = [{_block(columns) for columns in one} for one in claims if one is not None]
        right[rule] = sum(len(blocks & {0, 1, 2}) for blocks in named) / (3 * max(1, len(named)))
        wrong[rule] = sum(len(blocks - {0, 1, 2}) for blocks in named) / max(1, len(named))
    best = max(share for rule, share in right.items() if not rule.startswith("sets"))
    for rule, share in right.items():
        report.add(f"{case}: {rule}, share of blocks found", share, at_least=best if rule == "sets" else None)
        report.add(f"{case}: {rule}, wrong blocks, mean", wrong[rule])
        sizes = [len(columns) for one in found[rule] for columns in one or []]
        report.add(f"{case}: {rule}, columns in a claim, mean", float(np.mean(sizes)) if sizes else 0.0)
        report.figures[f"{case}: {rule}, columns in a claim"] = sizes


def _block(columns):
    """The number of the block that all of these columns are in, or -1."""
    return columns[0] // 20 if len({j // 20 for j in columns}) == 1 else -1


def _block_claims(case, seed, length):
    X, y, _ = case.make(seed, case.n)
    # The columns separate the classes: without a slab nothing limits the coefficients, those of noise either.
    model = fit(X, y, seed, length, n_jobs=1, slab_scale=SLAB, expected_nonzero=3)
    asked = {rule: (rule, None) for rule in ("sets", "fsr", "shrinkage", *RULES)} | {"sets, level 0.5": ("sets", 0.1)}
    return {name: [columns.tolist() for columns, _ in claims_of(model, X, *rule)] for name, rule in asked.items()}


def speed(report, p, n_draws, at_most):
    """Rows for the time and memory of sets of made-up draws, columns in blocks of 20 with r = 0.7."""
    X, _, _ = Blocks(200, p).make(0, 200)
    rng = np.random.default_rng(0)
    draws = 0.02 * rng.standard_normal((4, n_draws // 4, p))
    draws[..., 0] += 1
    first = rng.random((4, n_draws // 4)) < 0.5
    draws[..., 20] += first
    draws[..., 21] += ~first
    model = copy(fit(X[:, :3], np.arange(200) % 2, 0, (20, 20)))
    model.coef_draws_, model.global_scale_draws_ = draws, np.ones(draws.shape[:2])
    model.shrinkage_ = model.inclusion_score_ = np.full(p, 0.5)
    model.ess_, model._column_sd, model.n_features_in_ = np.full(p, float(n_draws)), X.std(axis=0), p
    forget, before = Path("/proc/self/clear_refs"), 0
    if forget.exists():  # Linux: the peak of the first run, what it imports included
        before = resident("VmRSS")
        forget.write_text("5")
    credible_sets(model, X)
    if forget.exists():
        grown = (resident("VmHWM") - before) / 2**30
        report.add(f"sets of {p} columns, memory beside the draws", grown, "GiB", at_most=1)
    seconds = in_turns({"sets": lambda: credible_sets(model, X)}, 9 if p <= 100 else 2)["sets"]
    report.add(f"sets of {p} columns, {n_draws} draws", seconds, "s", at_most=at_most)
