"""How much of what rules and credible sets claim of columns is false, and how much they find.

    python benchmarks/selection.py                # an hour or so on two free cores
    python benchmarks/selection.py --only peers   # other packages, in an environment that the first run makes
    python benchmarks/selection.py --only components --seeds 10  # principal components beside their columns

rates  500 data sets of 200 x 50 from the model: the share of false columns among those that "fsr" keeps, and of false
       sets, at most q and two Monte Carlo errors; signals found, also by "interval" and "dss"
wrong  the same where the model is wrong, 200 data sets of each kind
classes  the same with three classes without an order, whose columns have sizes and no sets, and with four in order, 200
       data sets of each
terms  300 data sets of 500 rows with three categories of two to eight levels, a spline and ten single columns
sets   twins with a correlation of 0.99, and noise: sets of them
peers  the first 200 data sets of rates, and blocks of 20 correlated columns, by us and by other packages
components  sets in 50 such blocks, without and with their five leading components, with and without batches;
       components-few: in five blocks, which the components are

An effect counts from 0.1 of the noise's standard deviation on, per standard deviation of its column. A data set in
which nothing is claimed has a share of false claims of 0. A signal is found if a claim has its column, and located if
that is true of a single column; a true claim of k columns counts as 1 / k.
"""

import argparse
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _data import SLAB, TERMS_TAU_0, ClassesFromModel, FromModel, few, three_in_blocks, twins, with_terms
from _measure import HERE, environment, fit, in_child, run
from _other_rules import ANY, PACKAGES, SHARES
from _other_rules import claims as claims_of_others
from joblib import Parallel, delayed

from skhorseshoe import HorseshoeSelector
from skhorseshoe.sets import credible_sets

# Claims --------------------------------------------------------------------------------------------------------------

EFFECT = 0.1  # the least that counts, in all rates of false signs and sets
N_JOBS = 2  # processes, each of which does one fit at a time
RULES = ("interval", "dss")  # beside "fsr" and sets
# burn_in and n_iter of four chains, converged or not
SHORT, WIDE, DEFAULT, QUICK = (300, 500), (500, 1000), (1000, 1000), (100, 200)


def fit_of(X, y, seed, length=DEFAULT, **parameters):
    return fit(X, y, {"burn_in": length[0], "n_iter": length[1], "random_state": seed, **parameters})


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
    sized = np.linalg.norm(sized, axis=2) if sized.ndim > 3 else sized  # over classes
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


def realised(case, seed, length=SHORT, limited=("fsr", "sets"), **parameters):
    """What each rule claims of one data set and how much of it is false: {(rule, q, of what): counts}."""
    X, y, truths = case.make_judged(seed, case.n)
    model, sd, counts = fit_of(X, y, seed, length, n_jobs=1, **case.prior(), **parameters), X.std(axis=0), {}
    for rule, q in [(rule, q) for rule in limited for q in SHARES] + [(rule, None) for rule in RULES]:
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


# Rates of errors ------------------------------------------------------------------------------------------------------

TRUE = FromModel(200, 50, pairs=10)
WRONG = [TRUE._replace(**one) for one in ({"noise": "logistic"}, {"noise": "t3"}, {"columns": "t3"})]
WRONG += [TRUE._replace(omitted=10), TRUE._replace(nonzero=5)]
CLASSES = [ClassesFromModel(200, 50, *kind, pairs=10) for kind in ((3, False), (4, True))]
NOISE = few(500, 50), few(200, 20, rho=0.7)


def rates(report, options):
    """The mean share of false claims at each q, where the model is exact at most q but for chance."""
    rates_of(report, TRUE, 2 if options.quick else options.rates, options.quick, is_exact=True)


def wrong(report, options):
    for case in WRONG:
        rates_of(report, case, 1 if options.quick else options.wrong, options.quick, is_exact=False)


def classes(report, options):
    """As ``rates``."""
    for case in CLASSES:
        limited = ("fsr", "sets")[: 1 + case.ordered]
        rates_of(report, case, 1 if options.quick else options.wrong, options.quick, is_exact=True, limited=limited)


def rates_of(report, case, n_seeds, is_quick, is_exact, **rules):
    counts = for_each_seed(partial(realised, case, length=QUICK if is_quick else SHORT, **rules), n_seeds)
    for rule, q, what in counts[0]:
        title, figures = _title(case, rule, q, what), summed([count[rule, q, what] for count in counts])
        report.figures[title] = figures
        if q:
            goal = q + 2 * figures["false share, Monte Carlo error"] if is_exact else None
            report.add(f"{title}, share false", figures["false share"], at_most=goal)


def _title(case, rule, q, what="effects"):
    return f"{case}: {rule}" + (f", q = {q}" if q else "") + (f" ({what})" if what != "effects" else "")


def sets(report, options):
    """In how many data sets twins are a set, one of the two is, or the wrong one; and in how many noise has a set."""
    n_seeds, length = (1, QUICK) if options.quick else (options.seeds, DEFAULT)
    case, r = twins(100, 20, r=0.99), "r = 0.99"
    every = for_each_seed(partial(_sets, case, length=length), n_seeds)
    pairs, alone = sum({0, 2} in found for found in every), sum({0} in found or {2} in found for found in every)
    report.add(f"{case}, {r}: sets that are the pair, of {n_seeds}", pairs, at_least=n_seeds)
    report.add(f"{case}, {r}: data sets with one of the two alone", alone, at_most=0)
    report.add(f"{case}, {r}: data sets with the wrong one alone", sum({2} in found for found in every), at_most=0)
    for case in NOISE:
        some = sum(len(found) > 0 for found in for_each_seed(partial(_sets, case, length=length), n_seeds))
        report.add(f"{case}: data sets with any set, of {n_seeds}", some, at_most=n_seeds // 20)


def _sets(case, seed, length):
    X, y, _ = case.make(seed, case.n)
    return [set(columns.tolist()) for columns, _ in claims_of(fit_of(X, y, seed, length, n_jobs=1), X, "sets")]


# Other packages -------------------------------------------------------------------------------------------------------


def peers(report, options):
    """On data from the model, and on blocks."""
    python, failed = None, {}
    if not options.quick:
        packages = {name: [f"{name}=={number}"] for name, number in PACKAGES.items()}
        python, failed = environment(options.environment, packages)

    def asked(data):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "data.npz"
            np.savez(file, X=[X for X, _ in data], y=[y for _, y in data])
            answer = in_child(claims_of_others, **({"python": python} if python else {}), data=file, n_jobs=N_JOBS)
        report.figures["other packages"] = answer["versions"] | failed
        return answer["claims"], answer["seconds"]

    n_sets = 2 if options.quick else min(options.rates, 200)
    from_model(report, n_sets, QUICK if options.quick else SHORT, asked)
    case = three_in_blocks(100, 60 if options.quick else 2000)
    blocks(report, case, 1 if options.quick else options.seeds, QUICK if options.quick else WIDE, asked)


def from_model(report, n_sets, length, asked):
    """Signals found by each rule, and the figures of the page."""
    title, every = f"{TRUE}, the first {n_sets}", {}
    counts = for_each_seed(partial(realised, TRUE, length=length), n_sets)
    for rule, q, what in counts[0]:
        every[_title(title, rule, q)] = summed([count[rule, q, what] for count in counts])
    made = [TRUE.make_judged(seed, TRUE.n) for seed in range(n_sets)]
    claims, seconds = asked([one[:2] for one in made])
    for rule, shares in claims.items():
        for q, found in shares.items():
            kept = [
                judged([(columns, None) for columns in one], truths["effects"], X.std(axis=0))
                for one, (X, _, truths) in zip(found, made, strict=True)
                if one is not None
            ]
            if kept:
                every[_title(title, rule, q)] = summed(kept) | {"processor seconds a data set": seconds[rule]}
    for what, figures in every.items():
        report.add(f"{what}, share of signals found", figures["signals found"])
        report.add(f"{what}, located", figures["signals located"])
    report.figures |= every


def blocks(report, case, n_seeds, length, asked):
    """How many of the three blocks are found, and how many others, by each rule and by sets."""
    every = for_each_seed(partial(_block_claims, case, length=length), n_seeds)
    found = {rule: [one[rule] for one in every] for rule in every[0]}
    theirs, seconds = asked([case.make(seed, case.n)[:2] for seed in range(n_seeds)])
    found |= {rule: shares[ANY] if ANY in shares else shares["0.1"] for rule, shares in theirs.items() if shares}
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
    model = fit_of(X, y, seed, length, n_jobs=1, slab_scale=SLAB, expected_nonzero=3)
    asked = {rule: (rule, None) for rule in ("sets", "fsr", "shrinkage", *RULES)} | {"sets, level 0.5": ("sets", 0.1)}
    return {name: [columns.tolist() for columns, _ in claims_of(model, X, *rule)] for name, rule in asked.items()}


# Components -----------------------------------------------------------------------------------------------------------

N_COMPONENTS = 5
BATCHES = {"shift": 0.7, "of_batch": 1.0}


def components(report, options, p=1000, kinds=({}, BATCHES)):
    """Sets, false ones, and signals found, where leading components stand beside their columns in several ways."""
    n, p, length = (60, 60, QUICK) if options.quick else (100, p, SHORT)
    for batches in kinds:
        case = three_in_blocks(n, p, **batches)
        every = for_each_seed(partial(_components, case, length=length), 1 if options.quick else options.seeds)
        for way in every[0]:
            figures = summed([one[way] for one in every])
            report.figures[f"{case}: components {way}"] = figures
            claims = sum(one[way]["claims"] for one in every)
            report.add(f"{case}: components {way}, sets", claims)
            report.add(f"{case}: components {way}, false ones", round(claims * figures["false of all claims"]))
            report.add(f"{case}: components {way}, share of signals found", figures["signals found"])


def _components(case, seed, length):
    """Counts of what sets claim, by how components stand beside their columns."""
    X, y, coef = case.make(seed, case.n)
    along, _, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    both = np.hstack([X, along[:, :N_COMPONENTS] * np.sqrt(len(X))])  # of unit variance
    places, counts = list(range(X.shape[1], both.shape[1])), {}
    small = {"prior_scale": dict.fromkeys(places, 0.1)}
    ways = {"none": {}, "shrunk": {}, "unpenalized": {"unpenalized": places}}
    for way, how in (ways | {"of prior_scale 0.1": ways["unpenalized"] | small}).items():
        used = X if way == "none" else both
        model = fit_of(used, y, seed, length, n_jobs=1, slab_scale=SLAB, expected_nonzero=3, **how)
        padded = np.append(coef, np.zeros(used.shape[1] - len(coef)))
        counts[way] = judged(claims_of(model, used, "sets"), padded, used.std(axis=0))
    return counts


# Terms ----------------------------------------------------------------------------------------------------------------


def terms(report, options):
    """How many of the terms that each rule claims are false, and how much is found."""
    n_sets, n, length = (2, 200, QUICK) if options.quick else (options.terms, 500, SHORT)
    every = for_each_seed(partial(_terms, n=n, length=length), n_sets)
    for rule, q in every[0]:
        figures, several = (summed([one[rule, q][k] for one in every]) for k in (0, 1))
        title = _title("terms", rule, q)
        report.figures[title] = figures
        most = q + 2 * figures["false share, Monte Carlo error"] if q else None
        report.add(f"{title}, share false", figures["false share"], at_most=most)
        report.add(f"{title}, signals found", figures["signals found"])
        report.add(f"{title}, signals found, of terms of several columns", several["signals found"])


def _terms(seed, n, length):
    """For each rule what its claims are worth, of all terms, and beside signals that are terms of several columns."""
    X, y, terms, sizes = with_terms(seed, n)
    model, claims = fit_of(X, y, seed, length, n_jobs=1, global_scale=TERMS_TAU_0, slab_scale=SLAB), {}
    names = {name: own.tolist() for name, own in terms.items()}

    def kept(rule, **limits):
        return (
            HorseshoeSelector(model, rule=rule, prefit=True, terms=names, **limits).fit(X, y).get_support(indices=True)
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the data do not tell or bound
        for q in SHARES:
            claims["fsr", q] = [kept("fsr", q=q, effect=EFFECT)]
            found = credible_sets(model, X, level=0.5, q=q, effect=EFFECT, terms=names)
            claims["sets", q] = [members(found.members, title)[0] for title in found.sets.index]
        claims |= {(rule, None): [kept(rule)] for rule in ("interval", "dss", "shrinkage")}
    counts, several = {}, sizes * [len(own) > 1 for own in terms.values()]
    for rule, places in claims.items():
        touched = [([k], None) for some in places for k, own in enumerate(terms.values()) if np.isin(own, some).any()]
        counts[rule] = judged(touched, sizes, 1.0), judged(touched, several, 1.0)
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20, help="data sets of each kind whose columns are known")
    parser.add_argument("--rates", type=int, default=500, help="data sets from the model")
    parser.add_argument("--wrong", type=int, default=200, help="data sets of each kind of wrong models, and of classes")
    parser.add_argument("--terms", type=int, default=300, help="data sets with terms of several columns")
    parser.add_argument("--environment", type=Path, default=HERE.parent / ".venv-selection-peers", help="of the others")
    parts = {"rates": rates, "wrong": wrong, "classes": classes, "terms": terms, "sets": sets, "peers": peers}
    apart = {"components": components, "components-few": partial(components, p=100, kinds=({},))}
    run(__file__, __doc__, parts | apart, parser, apart=["peers", *apart])


if __name__ == "__main__":
    main()
