"""Split Hamiltonian Monte Carlo whose mass matrix is diagonal: of the rows it needs products alone, see ``hmc.py``.

Of the information of the reference only the diagonal is kept, in coordinates in which it is nearly all: the intercept
is that at the means of the columns, weighted by the information of the rows (``exports/diagonal_mass_matrix.hpp``).
The reference is at the median of the posterior; at a mode, or with another intercept, steps are half as long. After
each trajectory tau moves with u held, and single coefficients move with their local scales
(``core/column_moves.hpp``), both with tests of their own. What the levels of a category have in common moves in
``flat_directions.py``.
"""

from typing import NamedTuple

from .._backends import SECOND_TRAJECTORY
from . import hmc


class DiagonalReference(NamedTuple):
    """The quadratic that stands for the log-likelihood and the fixed prior, in the coordinates with the intercept at
    ``centre``; float64, (q,)."""

    point: object
    score: object  # of the log-likelihood less the energy of the fixed prior
    information: object  # its diagonal, with that of the fixed prior
    centre: object  # means of the columns, 0 for the intercept and without one
    size: float  # the sum of the informations of the rows


def sweep(state, problem, references, tuning, moves):
    """Draw every unknown once from its law given the others; returns the new state.

    references : ``hmc.Reference`` with its mass matrix, and with one for moves of tau, of whole information. tuning :
    ``hmc.Tuning``, whose moves of tau are apart. moves : ``ColumnMoves``.
    """
    t = state.sweep
    state = hmc.along_trajectory(state, problem, references[0], tuning._replace(tau_moves=0))
    acceptance, scales_only = state.acceptance, tuning._replace(step=0.0, n_steps=1)
    state = state._replace(sweep=t + SECOND_TRAJECTORY)
    state = hmc.along_trajectory(state, problem, references[1], scales_only)  # tau | u
    state = state._replace(acceptance=acceptance, sweep=t)
    beta, lambda_sq_inv = moves.move(state, problem.key)  # (beta_j, lambda_j) | u_j
    loglik, score = problem.rows.score(beta)
    state = state._replace(beta=beta, lambda_sq_inv=lambda_sq_inv, loglik=loglik, score=score)
    return hmc.draw_scales(state, problem)._replace(sweep=t + 1)
