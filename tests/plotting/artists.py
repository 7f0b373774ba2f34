"""What the displays have drawn, as the tests read it."""

import numpy as np
from matplotlib.legend import Legend
from matplotlib.text import Text

NAMES = ["age", "bmi", "dose", "pulse", "weight", "height", "sodium", "potassium"]


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


def outside(figure):
    """Texts and legends that are drawn and do not lie on the page, to a pixel."""
    figure.canvas.draw()
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
