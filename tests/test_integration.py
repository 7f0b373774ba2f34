"""A frame of numbers and text through a Pipeline, and what an import brings along."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import skhorseshoe
from skhorseshoe import HorseshoeProbitClassifier


def test_mixed_frame_through_a_column_transformer(seed):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["blue", "green", "red"], size=400)
    frame = pd.DataFrame({"age": rng.normal(50, 10, 400), "colour": pd.Categorical(colour), "dose": rng.random(400)})
    y = np.where((frame.age - 50) / 10 + 2 * (colour == "red") + rng.standard_normal(400) > 0.5, "sick", "well")
    columns = make_column_transformer(
        (StandardScaler(), ["age", "dose"]), (OneHotEncoder(sparse_output=False), ["colour"])
    )
    classifier = HorseshoeProbitClassifier(n_iter=100, burn_in=50, random_state=seed)
    model = make_pipeline(columns, classifier).set_output(transform="pandas").fit(frame, y)
    summary = model[-1].summary()
    assert list(summary.index[:5]) == list(model[:-1].get_feature_names_out())
    assert summary.loc["standardscaler__age", "95%"] < 0
    assert roc_auc_score(y == "well", model.predict_proba(frame)[:, 1]) > 0.8
    assert set(model.predict(frame)) == {"sick", "well"}


def test_the_import_is_light(run_python):
    code = """
import sys, sklearn
before = set(sys.modules)
import skhorseshoe
print(*(set(sys.modules) - before))
"""
    assert not {"matplotlib", "arviz", "cupy", "dask"} & set(run_python(code).split())
    assert set(dir(skhorseshoe)) == {*skhorseshoe.__all__, "__version__"}
