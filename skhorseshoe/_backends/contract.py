"""The protocol of back ends, which are modules, one for each kind of device. mypy checks their names and arguments.

Arrays of coefficients and scales have chains as the leading axis, arrays by row or by group as the last; all are on the
device. Above each block of names is the file of ``_cpu`` that documents them.
"""

from typing import TYPE_CHECKING, Any, Protocol

from .._model import PROBIT


class PrecisionSolver(Protocol):
    """What ``Precision`` makes: draws from N(Q^-1 b, Q^-1) with Q = H + diag(d), with b and d of each chain."""

    H: Any
    work: Any  # matrices that may be overwritten between two uses

    def noise(self, ops, shape, key, sweep, /): ...
    def draw(self, b, d, noise, total=None, gamma=None): ...
    def inverse_diagonal(self, d, sweep): ...


class Trajectories(Protocol):
    """What ``MassMatrix`` makes: the Gaussian of split Hamiltonian Monte Carlo, and leapfrog steps."""

    H: Any
    b: Any

    def set_reference(self, H, b): ...
    def begin(self, reference, state, key, same_scales=False): ...
    def kick_and_rotate(self, trajectory, angle): ...
    def to_beta(self, trajectory): ...
    def kick(self, trajectory, angle, reference, beta, loglik, score): ...
    def move_scales(self, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key): ...


class HostTrajectories(Trajectories, Protocol):
    """What ``MassMatrix`` of the host makes: with groups of rows, b changes from sweep to sweep."""

    def set_b(self, b): ...


class Root(Protocol):
    """L with L L' = H."""

    def times(self, x): ...


class Outbox(Protocol):
    """Values on their way to the host."""

    def put(self, use, values): ...
    def flush(self): ...


class Watch(Protocol):
    """Whether an iteration goes on, which ends when no flag is set."""

    def any_left(self, flags, step, /): ...


class BackEnd(Protocol):
    """The functions that every back end has."""

    # Largest number of rows in memory that take fused calls: one call of the core does a whole move. 0 if the functions
    # ``fused_...`` of ``HostBackEnd`` do not exist.
    MOST_FUSED_ROWS: int
    SEGMENTED: bool  # whether ``Rows`` calls the passes segment by segment
    PREDICTORS_AT_ONCE: int  # number of linear predictors of which Hermite functions are computed at a time

    # As those of NumPy and SciPy.
    empty_like: Any
    where: Any
    concatenate: Any
    exp: Any
    minimum: Any
    special: Any  # the module of SciPy with this name

    # The device: dense.py.
    def using(self, name, /): ...  # a context in which everything is computed on this device
    def place(self, X, n_chains, kind): ...  # X where passes will read it, and the forecast of memory in words
    def to_device(self, values): ...
    def to_host(self, values): ...
    def Outbox(self) -> Outbox: ...
    def Watch(self) -> Watch: ...

    # Rows: dense.py.
    def hold(self, X, y, weight): ...
    def latent(self, X, y, coef, bounds, sweep, key, threads, first_row=0): ...
    def score(self, X, y, weight, coef, bounds, threads): ...  # log-likelihoods and their gradients
    def line(self, X, y, weight, coef, direction, steps, bounds, threads): ...
    def gram(self, X, weight, centre, scale, fit_intercept, threads, beta=None, spare=()): ...
    def moments(self, X, weight): ...

    # Random numbers and scales: variates.py.
    def normal(self, shape, key, sweep, purpose, attempt=0): ...
    def uniform(self, shape, key, sweep, purpose): ...
    def exponential(self, rate, key, sweep, purpose): ...
    def gamma(self, shape, rate, key, sweep, purpose): ...
    def draw_tau_given_beta(self, beta, tau_sq_inv, tau_0, key, sweep): ...
    def draw_lambda_given_beta(self, beta, tau_sq_inv, key, sweep): ...

    # Gaussians and trajectories: gaussian.py, mass_matrix.py; the last two, dense.py.
    def Precision(self, H: Any, threads: Any, memory_from: Any = None, n_workers: Any = None) -> PrecisionSolver: ...
    def MassMatrix(
        self, H: Any, b: Any, n_chains: int, p: int, threads: Any, memory_from: Any = None
    ) -> Trajectories: ...
    def Root(self, H: Any) -> Root: ...
    def times_symmetric(self, v, M, threads=None): ...
    def metropolis(self, change, new, old, key, sweep): ...  # the state after a test, and acceptances

    # Line moves: dense.py, line_proposals.py.
    def move_along_lines(self, beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, key, sweep): ...
    def proposals(self, uniform, width): ...  # r, and e^r - 1
    def first_inside(self, value, steps, uniform): ...

    # Answers of a fitted model: predict.py.
    def each_block(self, X, coef, threads, budget, use): ...
    def average_probabilities(self, eta, likelihood): ...  # averages over draws of P(y = 0) and of P(y = 1), (n, 2)
    def next_hermite(self, x, current, last, k): ...
    def quantiles(self, values, levels, increasing=None): ...


class HostBackEnd(BackEnd, Protocol):
    """For rows of the host: also fused calls, functions for groups of rows and for the coordinates of the prior."""

    # dense.py.
    def latent(self, X, y, coef, bounds, sweep, key, threads, first_row=0, shift=None, likelihood=PROBIT): ...
    def score(self, X, y, weight, coef, bounds, threads, shift=None, likelihood=PROBIT): ...
    def line(self, X, y, weight, coef, direction, steps, bounds, threads, shift=None, likelihood=PROBIT): ...
    def gram(self, X, weight, centre, scale, fit_intercept, threads, beta=None, spare=(), likelihood=PROBIT): ...
    def fused_trajectories(self, state, rows, reference, tuning, tau_0, key, with_scales): ...
    def fused_score(self, rows, beta): ...
    def average_class_probabilities(self, eta, likelihood): ...  # averages over draws of P(y = k), unordered; (n, K)
    def class_probabilities(self, eta, likelihood): ...  # of each draw; (n, K, m)
    def fused_trajectory_in_prior_coordinates(self, state, rows, coordinates, step, n_steps, key): ...
    def fused_exchanges(self, state, rows, exchanges, numbers, stride, key): ...

    def MassMatrix(
        self, H: Any, b: Any, n_chains: int, p: int, threads: Any, memory_from: Any = None
    ) -> HostTrajectories: ...

    Shift: Any  # passes.py
    RowGroups: Any  # row_groups.py

    def sums_by_group(self, X, codes, n_groups, weight): ...

    ColumnMoves: Any  # column_moves.py

    def move_tau_with_diagonal(self, H, b, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key, threads): ...

    PriorCoordinates: Any  # prior_coordinates.py
    Exchanges: Any
    ShrinkageByRows: Any  # shrinkage_by_rows.py


class SparseBackEnd(HostBackEnd, Protocol):
    """For sparse rows (sparse.py), of which even X'X may not fit into memory."""

    def gram_product(self, X, weight, vectors, bounds, threads): ...
    def gram_noise(self, X, weight, shape, bounds, key, sweep, purpose, attempt, threads): ...


if TYPE_CHECKING:
    from ._cpu import dense, sparse
    from ._gpu import dense as gpu

    _DENSE: HostBackEnd = dense
    _SPARSE: SparseBackEnd = sparse
    _GPU: BackEnd = gpu
