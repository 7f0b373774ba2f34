"""Displays of made-up statistics, and what displays have drawn, as the tests read it."""

from itertools import pairwise

import numpy as np
from matplotlib.legend import Legend
from matplotlib.text import Text
from scipy.special import ndtri

from skhorseshoe import plotting

NAMES = ["age", "bmi", "dose", "pulse", "weight", "height", "sodium", "potassium"]
EVERY = [getattr(plotting, name) for name in plotting.__all__]


def made(display, names=NAMES, label="well"):
    """A display of made-up statistics, not yet drawn."""
    rng = np.random.default_rng(0)
    n = len(names)
    mean = rng.uniform(0.2, 0.8, n)
    classes, p = np.array(["ill", label], dtype=object), np.linspace(0, 1, 9)
    of_rows = {"names": names, "mean": mean, "interval": mean + np.array([[-0.5], [0.1]]) * rng.random(n)}
    of_rows |= {"level": 0.9, "classes": classes}
    arguments = {
        "Coefficients": of_rows,
        "GroupEffects": of_rows,
        "Effects": of_rows | {"level": "90 %", "features": names},
        "CredibleSets": of_rows | {"level": "90 %", "is_set": np.arange(n) % 3 == 0},
        "ProbabilityInterval": of_rows | {"y": classes[rng.integers(2, size=n)]},
        "Contributions": {
            **of_rows,
            **{"rows": [names[0], names[-1]], "score": -0.5, "probability": np.tile([0.5, 0.3, 0.7], (2, 1))},
            "predictor": ndtri,
        },
        "Shrinkage": {"names": names, "shrinkage": mean},
        "PosteriorCalibration": {
            **{"predicted": p, "observed": p, "band": np.stack([p, p]), "counts": np.ones(9)},
            **{"level": 0.9, "label": label},
        },
        "DecisionCurve": {
            **{"thresholds": p, "net_benefit": 0.3 - 0.1 * p, "interval": np.stack([0.2 - 0.1 * p, 0.4 - 0.1 * p])},
            **{"treat_all": 0.3 - p, "level": 0.9, "label": label},
        },
        "SelectionPath": {
            **{"names": names, "supports": np.tri(n, n, -1, bool), "distances": np.geomspace(9, 0.1, n)},
            **{"radius": 2.0, "level": 0.5},
        },
        "ModelSize": {"sizes": np.arange(9), "difference": 5 * p - 5, "se": p + 0.1, "suggested_size": 5},
        "PredictiveCheck": {
            **{"names": names, "observed": mean, "predicted": 0.9 * mean, "band": mean + np.array([[-0.2], [0.1]])},
            **{"outside": np.arange(n) % 3 == 0, "level": 0.9, "label": label, "by": "age"},
        },
        "Prior": {
            **{"prior": np.full(14, 1 / 14), "posterior": np.full(14, 1 / 14), "n_columns": n},
            **{"share_certain": (0.8, 0.1), "n_relevant": (7.0, 2.0)},
        },
        "Trace": {"names": names[:3], "draws": rng.standard_normal((min(n, 3), 4, 50))},
        "Autocorrelation": {
            **{"names": names[:8], "autocorrelations": 0.8 ** np.arange(30) * np.ones((min(n, 8), 1))},
            **{"ess": np.full(min(n, 8), 1234.5)},
        },
    }
    return display(**arguments[display.__name__.removesuffix("Display")])


def drawn(lines, along):
    """Data of lines, put together and sorted by the coordinate that counts the rows: 0 for x, 1 for y."""
    points = np.concatenate([line.get_xydata() for line in lines])
    return points[np.argsort(points[:, along]), 1 - along]


def segments(collections, along):
    """Ends of intervals (2, n), likewise."""
    ends = np.concatenate([np.array(c.get_segments()).reshape(-1, 2, 2) for c in collections])
    return ends[np.argsort(ends[:, 0, along])][:, :, 1 - along].T


def row_names(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def texts(ax):
    return [text.get_text() for text in ax.legend_.get_texts()]


def dashed(ax, along=0):
    """Where a dashed line stands that crosses the axis."""
    (line,) = [line for line in ax.lines if line.get_linestyle() == "--"]
    return line.get_xydata()[0, along]


def overlap(labels):
    """Whether a label lies on the next one."""
    return any(one.overlaps(two) for one, two in pairwise([label.get_window_extent() for label in labels]))


def outside(figure):
    """Texts and legends that are drawn and do not lie on the page, to a pixel."""
    figure.draw_without_rendering()
    parts, hidden = figure.findobj(Text) + figure.findobj(Legend), set()
    for ax in figure.axes:
        for axis, (low, high) in ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim()))):
            ticks = [tick for tick in axis.get_major_ticks() if not low <= tick.get_loc() <= high]
            hidden |= {label for tick in ticks for label in (tick.label1, tick.label2)}
    page = figure.bbox.padded(1)
    return [
        part
        for part in parts
        if part not in hidden
        and part.get_visible()
        and not (isinstance(part, Text) and not part.get_text())
        and not all(page.contains(*corner) for corner in part.get_window_extent().corners())
    ]
