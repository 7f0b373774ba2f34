"""slab_scale="auto" and "per_contrast": by X alone, and said wherever the prior is."""

import pickle

import numpy as np
import pytest
from laws import same_draws
from sklearn.base import clone

from skhorseshoe import HorseshoeProbitClassifier, disk
from skhorseshoe._posterior.arviz import log_prior

CHOSEN = "slab of 4 per contrast of each column, chosen because columns outnumber rows"


@pytest.fixture(scope="module")
def wide(seed):
    """20 rows of 30 columns in different units."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((20, 30))
    return X * np.exp(rng.standard_normal(30)), X[:, 0] + rng.standard_normal(20) > 0


def model(**params):
    return HorseshoeProbitClassifier(**{"n_iter": 20, "burn_in": 100, "random_state": 0, **params})


def contrast(X, weight=None):
    d = X - np.average(X, axis=0, weights=weight)
    return 2 * np.average(d**2, axis=0, weights=weight) / np.average(abs(d), axis=0, weights=weight)


def header(fitted):
    return " ".join(fitted.summary().attrs["header"].split())


@pytest.mark.parametrize(("p", "has_one"), [(19, False), (20, False), (21, True), (30, True)])
@pytest.mark.parametrize("standardize", [True, False])
def test_columns_that_outnumber_rows_have_a_slab(wide, p, has_one, standardize):
    X, y = wide[0][:, :p], wide[1]
    fitted = model(standardize=standardize).fit(X, y)
    slab = fitted.prior_["slab_scale"]
    assert (CHOSEN in header(fitted)) == has_one
    unit = X.std(axis=0) if standardize else 1.0
    if has_one:
        np.testing.assert_allclose(slab, 4 / contrast(X / unit), rtol=1e-9)
    else:
        assert slab is None
    same = model(standardize=standardize, slab_scale="per_contrast" if has_one else None).fit(X, y)
    assert same_draws(fitted, same)
    assert ("slab of 4 per contrast of each column" in header(same)) == has_one
    assert CHOSEN not in header(same)
    assert np.isfinite(log_prior(fitted, None)["global_scale"]).all()


def test_what_the_rows_weigh_does_not_matter_unless_it_counts_them(wide):
    X, y = wide
    counts = 1 + np.arange(20) % 3
    for p in (30, counts.sum() - 1, counts.sum(), counts.sum() + 1):
        columns = np.resize(X, (20, p)) + np.arange(p) * X[:, :1]
        weighted = model(standardize=True, n_iter=4).fit(columns, y, counts)
        assert (weighted.prior_["slab_scale"] is None) == (p <= counts.sum())
        repeated = model(standardize=True, n_iter=4).fit(np.repeat(columns, counts, axis=0), np.repeat(y, counts))
        assert same_draws(weighted, repeated)
    for weight in (np.full(20, 5), np.linspace(0.1, 9, 20)):
        slab = model().fit(X, y, weight).prior_["slab_scale"]
        np.testing.assert_allclose(slab, 4 / contrast(X, weight), rtol=1e-9)
        assert model().fit(X[:, :20], y, weight).prior_["slab_scale"] is None
    assert np.ndim(model(class_weight={0: 3, 1: 4}).fit(X, y).prior_["slab_scale"])


@pytest.mark.parametrize("params", [{"slab_scale": None}, {"slab_scale": 1.5}])
def test_none_and_a_number_are_that_for_every_shape(wide, params, said):
    fitted = model(**params)
    texts = said(fitted, *wide, "slab_scale='per_contrast' bounds them")
    assert fitted.prior_["slab_scale"] == params["slab_scale"]
    assert CHOSEN not in header(fitted)
    assert len(texts) == (params["slab_scale"] is None)


def test_a_model_saved_before_there_was_this_choice_is_read(wide):
    for slab, words in ((None, None), (2.0, "slab of standard deviation 2")):
        fitted = model(slab_scale=slab).fit(*wide)
        del fitted._fit_facts["slab_scale"]
        text = header(pickle.loads(pickle.dumps(fitted)))
        assert (words in text) if words else ("slab of" not in text)


def test_chains_go_on_with_the_same_prior_alone(wide, tmp_path):
    for start in (model(warm_start=True), model(warm_start=True, standardize=True)):
        whole = clone(start).set_params(n_iter=40).fit(*wide)
        fitted = start.fit(*wide).set_params(slab_scale="per_contrast")
        assert same_draws(fitted.fit(*wide), whole)
        with pytest.raises(ValueError, match=r"slab_scale \(was 4 per contrast of each column, is 2.0\)"):
            fitted.set_params(slab_scale=2.0).fit(*wide)
    kept = model(checkpoint=tmp_path / "run").fit(*wide).set_params(n_iter=40)
    assert same_draws(kept.fit(*wide), model(n_iter=40).fit(*wide))
    with pytest.raises(ValueError, match="was 4 per contrast"):
        kept.set_params(slab_scale=2).fit(*wide)


def test_rows_on_disk_have_it(wide, tmp_path):
    X, y = disk.convert(wide[0], tmp_path / "rows", y=wide[1])
    fitted = model().fit(X, y)
    np.testing.assert_allclose(fitted.prior_["slab_scale"], 4 / contrast(wide[0]), rtol=1e-9)
    assert fitted.sampler_ == "hmc"


def test_separated_classes_are_bound_by_it(wide, said):
    """Columns without a slab are told to have it, those that have it nothing."""
    X, y = wide[0], wide[0][:, 0] > 0
    for slab, told in ((None, True), ("auto", False)):
        fitted = model(slab_scale=slab, n_iter=300)
        texts = said(fitted, X, y)
        assert any("separate the classes" in text for text in texts) == told
        assert any("Fit again with slab_scale='per_contrast'" in text for text in texts) == told
        assert ("slab_scale='per_contrast' bounds them" in header(fitted)) == told
