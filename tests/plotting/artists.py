"""What the displays have drawn, as the tests read it."""

import numpy as np

NAMES = ["age", "bmi", "dose", "pulse", "weight", "height", "sodium", "potassium"]


def drawn(lines, along):
    """Data of lines, put together and sorted by the coordinate that counts the rows: 0 for x, 1 for y."""
    points = np.concatenate([line.get_xydata() for line in lines])
    return points[np.argsort(points[:, along]), 1 - along]


def segments(collections, along):
    """Ends of intervals (2, n), likewise."""
    ends = np.concatenate([np.array(c.get_segments()).reshape(-1, 2, 2) for c in collections])
    return ends[np.argsort(ends[:, 0, along])][:, :, 1 - along].T


def texts(ax):
    return [text.get_text() for text in ax.legend_.get_texts()]
