"""Groups of rows that belong together, such as the visits of a patient."""

from typing import NamedTuple

import numpy as np


class Groups(NamedTuple):
    """To which group each of the rows belongs, as the sampler has them."""

    codes: np.ndarray  # (n,) int32, from 0
    n: int  # number of groups
    scale: float  # of the half-Cauchy prior of s, the standard deviation of the groups' effects
