"""What tests of effects of groups share: effects that follow beta, and the density that rows then have."""

import numpy as np


def let_follow(block, beta):
    """Let the effects of ``GroupEffects`` follow beta (m, q), about its mean, as the end of a window does, and begin a
    sweep; the information of beta, which must be positive."""
    block.begin_sweep(beta)
    block.follows = True
    H = block.rows.information(beta)
    block.set_reference(beta.mean(axis=0))
    block.begin_sweep(beta)
    assert np.linalg.eigvalsh(H).min() > 0
    return H


def check_density_and_score(rows, density, there, rng, **close):
    """``score`` of rows there is this density, and its gradient by differences along a direction, which is returned."""
    value, score = rows.score(there)
    np.testing.assert_allclose(value, density(there), rtol=1e-9)
    direction, step = rng.standard_normal(there.shape), 2.0**-6  # the map has 24 digits
    slope = (density(there + step * direction) - density(there - step * direction)) / (2 * step)
    np.testing.assert_allclose((score * direction).sum(axis=1), slope, **close)
    return direction
